/** How deliveries have gone in the last 24 hours. Costs the same with a million deliveries as with some thousands: what is counted is bounded,
 *  and the answer says when it was. */

import type { Scope } from '../database/scope.ts'
import { jsonRows, select } from '../database/statements.ts'
import { TEST_EVENT, undeliveredCondition } from '../deliveries.ts'
import { lowestIdAt } from '../ids.ts'

const HOUR_MS = 3_600_000
const HOURS = 24
/** Deliveries that are looked at for one page, over all its webhooks and all hours. */
const LOOKED_AT = 10_000
/** And of each state that needs somebody's eye, for one webhook. Each may be in a page of its own of the database's file. */
const MAX_COUNTED = 1_000

export interface HourHealth {
  /** Epoch milliseconds, as all times of records. */
  startsAt: number
  delivered: number
  failed: number
  /** Neither one nor the other yet. */
  waiting: number
}

export interface DeliveryHealth {
  /** Of the last 24 hours, the oldest first. Tests do not count, here and below. */
  hours: HourHealth[]
  /** Not all of an hour that was busy: the newest, as many as `sampleSize`. */
  isSample: boolean
  sampleSize: number
  /** Of what has ended, how much was delivered: from 0 to 1. Null: nothing has. */
  share: number | null
  /** So far is counted: a figure that has reached it means that many or more. */
  countedUpTo: number
  /** In the last 24 hours. */
  failed: number
  /** Now, whenever they were made. */
  retrying: number
  pending: number
  /** When the oldest delivery was made that is pending or retrying. */
  oldestWaitingSince: number | null
}

/** By the webhook's id. */
export async function findDeliveryHealth(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, DeliveryHealth>> {
  if (webhookIds.length === 0) return new Map()
  const lookedAt = Math.ceil(LOOKED_AT / webhookIds.length)
  const sampleSize = Math.ceil(lookedAt / HOURS)
  const countedUpTo = Math.min(MAX_COUNTED, lookedAt)
  const [hours, standing] = await Promise.all([
    sampleHours(scope, webhookIds, sampleSize, now),
    countUndelivered(scope, webhookIds, countedUpTo, now),
  ])
  return new Map(
    webhookIds.map((id) => {
      const own = hours.get(id) ?? []
      const [delivered, failed] = [
        sum(own.map((hour) => hour.delivered)),
        sum(own.map((hour) => hour.failed)),
      ]
      const health = {
        hours: own,
        isSample: own.some((hour) => hour.delivered + hour.failed + hour.waiting >= sampleSize),
        sampleSize,
        countedUpTo,
        share: delivered + failed === 0 ? null : delivered / (delivered + failed),
        ...(standing.get(id) ?? { failed: 0, retrying: 0, pending: 0, oldestWaitingSince: null }),
      }
      return [id, health]
    }),
  )
}

/** Not the account of the deliveries: told of it, SQLite takes the wrong index. */
const OWN = 'join webhooks on webhooks.id = input.webhook and webhooks.account_id = ?'

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0)

/** Each hour begins where the one before ended, and the last one ends now. */
async function sampleHours(
  scope: Scope,
  webhookIds: string[],
  size: number,
  now: Date,
): Promise<Map<string, HourHealth[]>> {
  const starts = Array.from(
    { length: HOURS },
    (_, hour) => now.getTime() - (HOURS - hour) * HOUR_MS,
  )
  const wanted = webhookIds.flatMap((webhookId) =>
    starts.map((startsAt, hour) => ({
      webhook: webhookId,
      hour,
      low: lowestIdAt(startsAt),
      high: lowestIdAt(startsAt + HOUR_MS),
    })),
  )
  // The three counts in one text: no other shape of it is the same in both databases and reads the rows once.
  const rows = await select<{ webhook: string; hour: number; counts: string }>(
    scope.sql,
    `select input.webhook, input.hour, (
       select count(case when state = 'delivered' then 1 end) || ' ' || count(case when state = 'failed' then 1 end) || ' ' || count(*)
       from (select state from deliveries
             where webhook_id = webhooks.id and id >= input.low and id < input.high and event_type <> '${TEST_EVENT}'
             order by id desc limit ${size}) as newest
     ) as counts
     from ${jsonRows(scope.dialect, { webhook: 'uuid', hour: 'int', low: 'uuid', high: 'uuid' })} ${OWN}`,
    [JSON.stringify(wanted), scope.accountId],
  )
  const found = new Map<string, HourHealth[]>(webhookIds.map((id) => [id, []]))
  for (const { webhook, hour, counts } of rows.toSorted((one, other) => one.hour - other.hour)) {
    const [delivered = 0, failed = 0, all = 0] = counts.split(' ').map(Number)
    found
      .get(webhook)
      ?.push({ startsAt: starts[hour] ?? 0, delivered, failed, waiting: all - delivered - failed })
  }
  return found
}

const WAITING = ['retrying', 'pending'] as const
type Waiting = (typeof WAITING)[number]
type Standing = Pick<DeliveryHealth, 'failed' | 'retrying' | 'pending' | 'oldestWaitingSince'>

async function countUndelivered(
  scope: Scope,
  webhookIds: string[],
  upTo: number,
  now: Date,
): Promise<Map<string, Standing>> {
  const inState = (state: Waiting | 'failed'): string =>
    `from deliveries where webhook_id = webhooks.id and ${undeliveredCondition(scope, state)} and event_type <> '${TEST_EVENT}'`
  const newest = (state: Waiting | 'failed', more = ''): string =>
    `(select count(*) from (select id ${inState(state)}${more} order by id desc limit ${upTo}) as newest) as ${state}`
  const oldest = (state: Waiting): string =>
    `(select created_at ${inState(state)} order by id limit 1) as oldest_${state}`
  const rows = await select<
    { webhook: string } & Record<Waiting | 'failed', number> &
      Record<`oldest_${Waiting}`, number | null>
  >(
    scope.sql,
    `select input.webhook, ${newest('failed', ' and id >= ?')}, ${WAITING.map((state) => newest(state)).join(', ')}, ${WAITING.map(oldest).join(', ')}
     from ${jsonRows(scope.dialect, { webhook: 'uuid' })} ${OWN}`,
    [
      lowestIdAt(now.getTime() - HOURS * HOUR_MS),
      JSON.stringify(webhookIds.map((webhook) => ({ webhook }))),
      scope.accountId,
    ],
  )
  return new Map(
    rows.map(({ webhook, failed, retrying, pending, oldest_retrying, oldest_pending }) => {
      const waiting = [oldest_retrying, oldest_pending].filter((at) => at !== null)
      const oldestWaitingSince = waiting.length === 0 ? null : Math.min(...waiting)
      return [
        webhook,
        {
          failed: Number(failed),
          retrying: Number(retrying),
          pending: Number(pending),
          oldestWaitingSince,
        },
      ]
    }),
  )
}
