/** Deliveries of the last 24 hours by hour. It reads only indexes and a limited number of rows, so its
 *  cost does not grow with the number of deliveries. */

import type { Scope } from '../database/scope.ts'
import { jsonRows, select } from '../database/statements.ts'
import { lowestIdAt } from '../ids.ts'
import { UNDELIVERED } from '../index-predicates.ts'
import { HOUR_MS } from './request-counts.ts'

const HOURS = 24
/** Deliveries per hour, over all webhooks. */
const MAX_COUNTED_PER_HOUR = 10_000

export interface DeliveryCounts {
  delivered: number
  failed: number
  /** Pending or retrying. */
  waiting: number
}

export interface DeliveryTraffic {
  /** Oldest first; the last is the current hour. Includes tests. */
  hours: (DeliveryCounts & { startsAt: number })[]
  /** All hours, by webhook ID. */
  webhooks: Map<string, DeliveryCounts>
  /** The limit per webhook and hour, if one reached it. Null: the counts are complete. */
  countedUpTo: number | null
}

interface CountRow {
  webhook: string
  hour: number
  total: number
  failed: number
  retrying: number
  pending: number
}

/** The webhooks must belong to the account. */
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
  const countedUpTo = Math.ceil(MAX_COUNTED_PER_HOUR / Math.max(1, webhookIds.length))
  const rows =
    webhookIds.length === 0 ? [] : await countHours(scope, webhookIds, hours, countedUpTo)
  for (const { webhook, hour, total, failed, retrying, pending } of rows) {
    const waiting = Number(retrying) + Number(pending)
    // A delivery may change its state between two counts.
    const counts = {
      failed: Number(failed),
      waiting,
      delivered: Math.max(0, Number(total) - Number(failed) - waiting),
    }
    for (const sum of [hours[hour], webhooks.get(webhook)]) if (sum) add(sum, counts)
  }
  return {
    hours,
    webhooks,
    countedUpTo: rows.some(({ total }) => Number(total) >= countedUpTo) ? countedUpTo : null,
  }
}

const NONE: DeliveryCounts = { delivered: 0, failed: 0, waiting: 0 }

function add(sum: DeliveryCounts, { delivered, failed, waiting }: DeliveryCounts): void {
  sum.delivered += delivered
  sum.failed += failed
  sum.waiting += waiting
}

/** The query has no account ID, which these indexes do not contain: the webhooks belong to the account. */
function countHours(
  scope: Scope,
  webhookIds: string[],
  hours: { startsAt: number }[],
  countedUpTo: number,
): Promise<CountRow[]> {
  const inHour = 'webhook_id = input.webhook and id >= input.low and id < input.high'
  const counted = (name: string, where: string): string =>
    `(select count(*) from (
       select 1 as one from deliveries where ${where} and ${inHour} limit ${countedUpTo}
     ) as bounded) as ${name}`
  const inState = (state: string): string => counted(state, `${UNDELIVERED} and state = '${state}'`)
  const counts = [counted('total', 'true'), ...['failed', 'retrying', 'pending'].map(inState)]
  const ranges = webhookIds.flatMap((webhook) =>
    hours.map(({ startsAt }, hour) => ({
      webhook,
      hour,
      low: lowestIdAt(startsAt),
      high: lowestIdAt(startsAt + HOUR_MS),
    })),
  )
  return select<CountRow>(
    scope.sql,
    `select input.webhook, input.hour, ${counts.join(', ')}
     from ${jsonRows(scope.dialect, { webhook: 'uuid', hour: 'int', low: 'uuid', high: 'uuid' })}`,
    [JSON.stringify(ranges)],
  )
}
