import type { Knex } from 'knex'
import type { Scope } from './database/scope.ts'
import { inBatches } from './database/statements.ts'
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
  /** At least one. */
  webhookIds: string[]
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

/** A page of the deliveries of webhooks. Takes as long with a million deliveries as with ten thousand: an
 *  index has those of a webhook in the order of IDs, so this reads as many of each as may be on the page. */
export async function searchDeliveries(
  scope: Scope,
  search: DeliverySearch,
): Promise<FoundDeliveries> {
  const { webhookIds, state, eventType, bulkJobId, newerThan, limit } = search
  const direction = newerThan === undefined ? 'desc' : 'asc'
  const maxRowsRead =
    state === undefined || state === 'delivered' ? MAX_ROWS_READ : MAX_UNDELIVERED_ROWS_READ
  const filtersWithoutIndex =
    state === 'delivered' || eventType !== undefined || bulkJobId !== undefined
  const rowsOfEach = filtersWithoutIndex ? Math.ceil(maxRowsRead / webhookIds.length) : limit + 1
  const order = `deliveries.webhook_id ${direction}, deliveries.id ${direction}`
  const ranges = webhookIds.map((id) => searchRange(scope, search, id).orderByRaw(order))
  const read = ranges.map((range) => range.clone().select(DELIVERY_COLUMNS).limit(rowsOfEach))
  const query = scope.sql(unionAll(scope, read).as('deliveries'))
  if (state === 'delivered') query.where('deliveries.state', state)
  if (eventType !== undefined) query.where('deliveries.event_type', eventType)
  if (bulkJobId !== undefined) query.where('deliveries.bulk_job_id', bulkJobId)
  const rows: DeliveryRow[] = await query.orderBy('deliveries.id', direction).limit(limit + 1)
  const mayBeIncomplete = filtersWithoutIndex && (rows.length <= limit || ranges.length > 1)
  const end = mayBeIncomplete ? await findEnd(scope, ranges, rowsOfEach, direction) : undefined
  const isComplete = ({ id }: DeliveryRow): boolean =>
    end === undefined || (direction === 'desc' ? id >= end : id <= end)
  const complete = rows.filter(isComplete).map(deliveryFromRow)
  const deliveries = complete.slice(0, limit)
  const page = direction === 'desc' ? deliveries : deliveries.toReversed()
  if (complete.length > limit)
    return { deliveries: page, nextFrom: deliveries.at(-1)?.id ?? null, isCutShort: false }
  return { deliveries: page, nextFrom: end ?? null, isCutShort: end !== undefined }
}

/** The ID up to which the rows of all webhooks were read. Undefined: there are no others. */
async function findEnd(
  scope: Scope,
  ranges: Knex.QueryBuilder[],
  rowsOfEach: number,
  direction: 'asc' | 'desc',
): Promise<string | undefined> {
  const lastRows = ranges.map((range) => range.clone().select('deliveries.id').limit(1))
  const ends: { id: string }[] = await unionAll(
    scope,
    lastRows.map((last) => last.offset(rowsOfEach - 1)),
  )
  const ids = ends.map(({ id }) => id).toSorted()
  return direction === 'desc' ? ids.at(-1) : ids[0]
}

/** SQLite accepts 500 parts in a union. */
const MAX_PARTS = 400

function unionAll(scope: Scope, queries: Knex.QueryBuilder[]): Knex.QueryBuilder {
  const parts =
    queries.length > MAX_PARTS
      ? inBatches(queries, MAX_PARTS).map((some) => unionAll(scope, some))
      : queries
  const [first, ...others] = parts.map((part) => scope.sql(part.as('part')))
  return (first as Knex.QueryBuilder).unionAll(others)
}

/** The conditions that indexes serve. */
function searchRange(
  scope: Scope,
  { state, id, since, until, olderThan, newerThan }: DeliverySearch,
  webhookId: string,
): Knex.QueryBuilder {
  const range = scope.rows('deliveries')
  // With `=`, PostgreSQL may choose the primary key, and read the newer rows of other webhooks: see `isOfAccount`.
  if (scope.dialect === 'postgres')
    range.whereRaw('deliveries.webhook_id = any (?::uuid[])', [`{${webhookId}}`])
  else range.where('deliveries.webhook_id', webhookId)
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
