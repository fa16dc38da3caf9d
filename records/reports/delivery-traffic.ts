/** Deliveries of the last 24 hours, hour by hour. Counted in indexes alone and only so far, so that it costs the same with a million of them. */

import type { Scope } from '../database/scope.ts'
import { jsonRows, select } from '../database/statements.ts'
import { lowestIdAt } from '../ids.ts'
import { HOUR_MS } from './request-counts.ts'

const HOURS = 24
/** Deliveries of one hour, over all webhooks. */
const MAX_COUNTED = 10_000

export interface DeliveryCounts {
  delivered: number
  failed: number
  /** Neither one nor the other yet. */
  waiting: number
}

export interface DeliveryTraffic {
  /** The oldest first. The last hour is the one that is running. Tests are among them. */
  hours: (DeliveryCounts & { startsAt: number })[]
  /** Over all hours, by the webhook's id. */
  webhooks: Map<string, DeliveryCounts>
  /** Null: all is counted. Otherwise so many of a webhook in an hour, and no more. */
  countedUpTo: number | null
}

interface CountRow {
  webhook: string
  hour: number
  made: number
  failed: number
  retrying: number
  pending: number
}

/** `webhookIds` are of the account. */
export async function findDeliveryTraffic(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<DeliveryTraffic> {
  const first = now.getTime() - (now.getTime() % HOUR_MS) - (HOURS - 1) * HOUR_MS
  const hours = Array.from({ length: HOURS }, (_, hour) => ({
    startsAt: first + hour * HOUR_MS,
    ...NONE,
  }))
  const webhooks = new Map(webhookIds.map((id) => [id, { ...NONE }]))
  const upTo = Math.ceil(MAX_COUNTED / Math.max(1, webhookIds.length))
  const rows = webhookIds.length === 0 ? [] : await countHours(scope, webhookIds, hours, upTo)
  for (const { webhook, hour, made, failed, retrying, pending } of rows) {
    const waiting = Number(retrying) + Number(pending)
    // One may have been delivered between two counts.
    const counts = {
      failed: Number(failed),
      waiting,
      delivered: Math.max(0, Number(made) - Number(failed) - waiting),
    }
    for (const sum of [hours[hour], webhooks.get(webhook)]) if (sum) add(sum, counts)
  }
  return {
    hours,
    webhooks,
    countedUpTo: rows.some(({ made }) => Number(made) >= upTo) ? upTo : null,
  }
}

const NONE: DeliveryCounts = { delivered: 0, failed: 0, waiting: 0 }

function add(sum: DeliveryCounts, { delivered, failed, waiting }: DeliveryCounts): void {
  sum.delivered += delivered
  sum.failed += failed
  sum.waiting += waiting
}

/** Not by the account, which is in no index of these: the webhooks are the account's. */
function countHours(
  scope: Scope,
  webhookIds: string[],
  hours: { startsAt: number }[],
  upTo: number,
): Promise<CountRow[]> {
  const inHour = 'webhook_id = input.webhook and id >= input.low and id < input.high'
  const counted = (name: string, where: string): string =>
    `(select count(*) from (select 1 as one from deliveries where ${where} and ${inHour} limit ${upTo}) as bounded) as ${name}`
  // Word for word as in the index.
  const inState = (state: string): string =>
    counted(state, `state <> 'delivered' and state = '${state}'`)
  const wanted = webhookIds.flatMap((webhook) =>
    hours.map(({ startsAt }, hour) => ({
      webhook,
      hour,
      low: lowestIdAt(startsAt),
      high: lowestIdAt(startsAt + HOUR_MS),
    })),
  )
  return select<CountRow>(
    scope.sql,
    `select input.webhook, input.hour, ${[counted('made', 'true'), ...['failed', 'retrying', 'pending'].map(inState)].join(', ')}
     from ${jsonRows(scope.dialect, { webhook: 'uuid', hour: 'int', low: 'uuid', high: 'uuid' })}`,
    [JSON.stringify(wanted)],
  )
}
