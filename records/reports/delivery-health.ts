/** The health of webhooks in the last 24 hours. It reads a limited number of rows and reports when it
 *  reached the limit, so its cost does not grow with the number of deliveries. */

import type { Scope } from '../database/scope.ts'
import { jsonRows, select } from '../database/statements.ts'
import { TEST_EVENT, undeliveredCondition } from '../deliveries.ts'
import { lowestIdAt } from '../ids.ts'

const HOUR_MS = 3_600_000
const HOURS = 24
/** Deliveries read for one page, over all its webhooks and hours. */
const MAX_ROWS_READ = 10_000
/** Undelivered rows read per webhook and state: each may be in a different page of the database file. */
const MAX_UNDELIVERED_ROWS_READ = 1_000

export interface HourHealth {
  /** Epoch milliseconds, like all times of records. */
  startsAt: number
  delivered: number
  failed: number
  /** Pending or retrying. */
  waiting: number
}

export interface DeliveryHealth {
  /** The last 24 hours, oldest first. Without tests, like all counts. */
  hours: HourHealth[]
  /** At least one hour was busier: it counts only its newest `sampleSize` deliveries. */
  isSample: boolean
  sampleSize: number
  /** Delivered of all ended deliveries, from 0 to 1. Null: none has ended. */
  share: number | null
  /** The limit of the counts: a count that reaches it means "this many or more". */
  countedUpTo: number
  /** In the last 24 hours. */
  failed: number
  /** Now, of any age. */
  retrying: number
  pending: number
  /** The creation of the oldest pending or retrying delivery. */
  oldestWaitingSince: number | null
}

/** By webhook ID. */
export async function findDeliveryHealth(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, DeliveryHealth>> {
  if (webhookIds.length === 0) return new Map()
  const rowsPerWebhook = Math.ceil(MAX_ROWS_READ / webhookIds.length)
  const sampleSize = Math.ceil(rowsPerWebhook / HOURS)
  const countedUpTo = Math.min(MAX_UNDELIVERED_ROWS_READ, rowsPerWebhook)
  const [hours, undelivered] = await Promise.all([
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
        ...(undelivered.get(id) ?? {
          failed: 0,
          retrying: 0,
          pending: 0,
          oldestWaitingSince: null,
        }),
      }
      return [id, health]
    }),
  )
}

/** Filters by the account of the webhook: with the account of the deliveries, SQLite uses the wrong index. */
const JOIN_OWN_WEBHOOKS = 'join webhooks on webhooks.id = input.webhook and webhooks.account_id = ?'

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0)

/** The last hour ends now. */
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
  const ranges = webhookIds.flatMap((webhookId) =>
    starts.map((startsAt, hour) => ({
      webhook: webhookId,
      hour,
      low: lowestIdAt(startsAt),
      high: lowestIdAt(startsAt + HOUR_MS),
    })),
  )
  // The three counts are one text: it is the only form that both databases accept and that reads the rows
  // once.
  const rows = await select<{ webhook: string; hour: number; counts: string }>(
    scope.sql,
    `select input.webhook, input.hour, (
       select count(case when state = 'delivered' then 1 end)
         || ' ' || count(case when state = 'failed' then 1 end)
         || ' ' || count(*)
       from (
         select state from deliveries
         where webhook_id = webhooks.id and id >= input.low and id < input.high
           and event_type <> '${TEST_EVENT}'
         order by id desc
         limit ${size}
       ) as newest
     ) as counts
     from ${jsonRows(scope.dialect, { webhook: 'uuid', hour: 'int', low: 'uuid', high: 'uuid' })}
     ${JOIN_OWN_WEBHOOKS}`,
    [JSON.stringify(ranges), scope.accountId],
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

const UNFINISHED_STATES = ['retrying', 'pending'] as const
type UnfinishedState = (typeof UNFINISHED_STATES)[number]
type UndeliveredCounts = Pick<
  DeliveryHealth,
  'failed' | 'retrying' | 'pending' | 'oldestWaitingSince'
>

async function countUndelivered(
  scope: Scope,
  webhookIds: string[],
  countedUpTo: number,
  now: Date,
): Promise<Map<string, UndeliveredCounts>> {
  const inState = (state: UnfinishedState | 'failed'): string =>
    `from deliveries
     where webhook_id = webhooks.id and ${undeliveredCondition(scope, state)}
       and event_type <> '${TEST_EVENT}'`
  const newest = (state: UnfinishedState | 'failed', more = ''): string =>
    `(select count(*) from (
       select id ${inState(state)}${more} order by id desc limit ${countedUpTo}
     ) as newest) as ${state}`
  const oldest = (state: UnfinishedState): string =>
    `(select created_at ${inState(state)} order by id limit 1) as oldest_${state}`
  const columns = [
    newest('failed', ' and id >= ?'),
    ...UNFINISHED_STATES.map((state) => newest(state)),
    ...UNFINISHED_STATES.map(oldest),
  ]
  const rows = await select<
    { webhook: string } & Record<UnfinishedState | 'failed', number> &
      Record<`oldest_${UnfinishedState}`, number | null>
  >(
    scope.sql,
    `select input.webhook, ${columns.join(', ')}
     from ${jsonRows(scope.dialect, { webhook: 'uuid' })} ${JOIN_OWN_WEBHOOKS}`,
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
