import type { Scope } from './database/scope.ts'
import {
  DELIVERY_COLUMNS,
  type Delivery,
  type DeliveryRow,
  type DeliveryState,
  deliveryFromRow,
  undeliveredCondition,
} from './deliveries.ts'
import { lowestIdAt } from './ids.ts'

export interface DeliverySearch {
  webhookId: string
  state?: DeliveryState
  eventType?: string
  /** The ID of the delivery or of its event. */
  id?: string
  bulkJobId?: string
  /** Created at or after this time, in epoch milliseconds. */
  since?: number
  /** Created before this time. */
  until?: number
  /** Only deliveries with an ID below `olderThan`, or above `newerThan`. At most one is set. */
  olderThan?: string
  newerThan?: string
  limit: number
}

export interface FoundDeliveries {
  /** Newest first. */
  deliveries: Delivery[]
  /** The delivery ID from which the search continues in its direction. Null: there are no more. */
  nextFrom: string | null
  /** The search reached its limit of rows before the page was full. */
  isCutShort: boolean
}

/** The most rows read for a page with a filter by event type, by bulk job or by the state
 *  `delivered`: no index serves these filters. */
const MAX_ROWS_READ = 10_000
/** The limit when the page also has a filter by an undelivered state: each row may cost one read of
 *  the disk. */
const MAX_UNDELIVERED_ROWS_READ = 2_000

/** A page of a webhook's deliveries. Takes as long with a million deliveries as with ten
 *  thousand. */
export async function searchDeliveries(
  scope: Scope,
  search: DeliverySearch,
): Promise<FoundDeliveries> {
  const { state, eventType, bulkJobId, newerThan, limit } = search
  const direction = newerThan === undefined ? 'desc' : 'asc'
  const maxRowsRead =
    state === undefined || state === 'delivered' ? MAX_ROWS_READ : MAX_UNDELIVERED_ROWS_READ
  const filtersWithoutIndex =
    state === 'delivered' || eventType !== undefined || bulkJobId !== undefined
  const inRange = searchRange(scope, search).orderBy('deliveries.id', direction)
  const query = filtersWithoutIndex
    ? scope
        .sql(inRange.clone().select(DELIVERY_COLUMNS).limit(maxRowsRead).as('deliveries'))
        .orderBy('deliveries.id', direction)
    : inRange.clone()
  if (state === 'delivered') query.where('deliveries.state', state)
  if (eventType !== undefined) query.where('deliveries.event_type', eventType)
  if (bulkJobId !== undefined) query.where('deliveries.bulk_job_id', bulkJobId)
  const rows = ((await query.select(DELIVERY_COLUMNS).limit(limit + 1)) as DeliveryRow[]).map(
    deliveryFromRow,
  )
  const deliveries = rows.slice(0, limit)
  const page = direction === 'desc' ? deliveries : deliveries.toReversed()
  if (rows.length > limit)
    return { deliveries: page, nextFrom: deliveries.at(-1)?.id ?? null, isCutShort: false }
  if (!filtersWithoutIndex) return { deliveries: page, nextFrom: null, isCutShort: false }
  // Undefined: the range has fewer rows than the search may read.
  const last: { id: string } | undefined = await inRange
    .offset(maxRowsRead - 1)
    .first('deliveries.id')
  return { deliveries: page, nextFrom: last?.id ?? null, isCutShort: last !== undefined }
}

/** The conditions that indexes serve. */
function searchRange(
  scope: Scope,
  { webhookId, state, id, since, until, olderThan, newerThan }: DeliverySearch,
): ReturnType<Scope['rows']> {
  const range = scope.rows('deliveries').where('deliveries.webhook_id', webhookId)
  if (state !== undefined && state !== 'delivered')
    range.whereRaw(undeliveredCondition(scope, state))
  // With an `or` instead of the union, SQLite would read all deliveries of the webhook.
  if (id !== undefined)
    range.whereRaw(
      `deliveries.id in (
         select id from deliveries where account_id = ? and id = ?
         union all
         select id from deliveries where account_id = ? and event_id = ?
       )`,
      [scope.accountId, id, scope.accountId, id],
    )
  if (since !== undefined) range.where('deliveries.id', '>=', lowestIdAt(since))
  if (until !== undefined) range.where('deliveries.id', '<', lowestIdAt(until))
  if (olderThan !== undefined) range.where('deliveries.id', '<', olderThan)
  if (newerThan !== undefined) range.where('deliveries.id', '>', newerThan)
  return range
}
