import type { DeliveredType } from '../generated/asyncapi.ts'
import type { components } from '../generated/openapi.ts'
import type { Trigger } from './attempt.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import type { Condition, Dialect } from './database/statements.ts'
import { findFirstInOrder } from './delivery-order.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'
import { lowestIdAt } from './ids.ts'
import { UNDELIVERED } from './index-predicates.ts'
import { type Listing, toMillis, toNullableTimestamp, toTimestamp } from './list.ts'
import { toStoredId } from './references.ts'
import { DAY_MS } from './time-units.ts'

/** The event type of test deliveries, which have no event. Bulk jobs, `listUndelivered` and the
 *  health of webhooks leave test deliveries out. */
export const TEST_EVENT = 'webhook.test' satisfies DeliveredType

export const deliveryStates = ['pending', 'retrying', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]
export type FailureReason =
  /** The last attempt of the schedule failed. */
  | 'attempts_exhausted'
  /** A retry, resend or test that a person requested has failed. It is not repeated. */
  | 'attempt_failed'
  | 'webhook_disabled'
  | 'webhook_deleted'
  | 'cancelled'

export interface Delivery {
  /** Also the `id` in the body, the same in all attempts. */
  id: string
  accountId: string
  webhookId: string
  eventId: string | null
  eventType: string
  state: DeliveryState
  failureReason: FailureReason | null
  /** Number of completed attempts. */
  attempts: number
  /** Epoch milliseconds, like all times of records. Null: no attempt is scheduled. */
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
  /** The trace of the request that caused the event. */
  traceparent: string | null
  /** The bulk job that last created or retried the delivery. */
  bulkJobId: string | null
  createdAt: number
  /** When the state last changed, or an attempt last ended. */
  updatedAt: number
}

export interface DeliveryRow {
  id: string
  account_id: string
  webhook_id: string
  event_id: string | null
  event_type: string
  state: DeliveryState
  failure_reason: FailureReason | null
  attempts: number
  next_attempt_at: number | null
  next_trigger: Trigger | null
  traceparent: string | null
  bulk_job_id: string | null
  created_at: number
  updated_at: number
}

/** Without the body, which can be large. */
export const DELIVERY_COLUMNS = [
  'id',
  'account_id',
  'webhook_id',
  'event_id',
  'event_type',
  'state',
  'failure_reason',
  'attempts',
  'next_attempt_at',
  'next_trigger',
  'traceparent',
  'bulk_job_id',
  'created_at',
  'updated_at',
].map((column) => `deliveries.${column}`)

export function deliveryFromRow(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    accountId: row.account_id,
    webhookId: row.webhook_id,
    eventId: row.event_id,
    eventType: row.event_type,
    state: row.state,
    failureReason: row.failure_reason,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    nextTrigger: row.next_trigger,
    traceparent: row.traceparent,
    bulkJobId: row.bulk_job_id,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** A delivery as the public API shows it. */
export type PublicDelivery = components['schemas']['Delivery']

/** Without its attempts. */
export function toPublicDelivery(delivery: Delivery): PublicDelivery {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    // `emit` and `emitTest` (webhooks/emit.ts) write no other types.
    event_type: delivery.eventType as PublicDelivery['event_type'],
    state: delivery.state,
    failure_reason: delivery.failureReason,
    attempt_count: delivery.attempts,
    next_attempt_at: toNullableTimestamp(delivery.nextAttemptAt),
    created_at: toTimestamp(delivery.createdAt),
    updated_at: toTimestamp(delivery.updatedAt),
  }
}

/** More than the difference between `created_at` of a delivery and the time in its ID. */
const MAX_ID_DIFFERENCE_MS = DAY_MS

export const deliveryListing: Listing<DeliveryRow, PublicDelivery> = {
  table: 'deliveries',
  fromRow: (row) => toPublicDelivery(deliveryFromRow(row)),
  filters: {
    state: (states, { dialect }) => stateCondition(states.split(','), dialect),
    // The range of IDs is that of an index.
    created_after: (time) => ({
      sql: 'deliveries.created_at > ? and deliveries.id >= ?',
      bindings: [toMillis(time), lowestIdAt(toMillis(time) - MAX_ID_DIFFERENCE_MS)],
    }),
  },
}

/** Repeats the predicate of the indexes on undelivered deliveries for SQLite: see
 *  `undeliveredCondition`. */
function stateCondition(states: string[], dialect: Dialect): Condition {
  const isIndexed = dialect === 'sqlite' && !states.includes('delivered')
  const placeholders = states.map(() => '?').join(', ')
  return {
    sql: `deliveries.state in (${placeholders})${isIndexed ? ` and deliveries.${UNDELIVERED}` : ''}`,
    bindings: states,
  }
}

export interface NewDelivery {
  id: string
  webhookId: string
  eventId: string | null
  eventType: string
  /** The exact bytes of every attempt. */
  body: Buffer
  trigger: Trigger
  /** The ID of the resource. Undefined: the webhook wants no order. */
  orderingKey?: string
  bulkJobId?: string
}

/** Stores the deliveries. Their first attempts are due now, except those that must wait for an
 *  earlier delivery of the same resource. */
export async function insertDeliveries(
  scope: WriteScope,
  deliveries: NewDelivery[],
  now: Date,
): Promise<void> {
  if (deliveries.length === 0) return
  const firstInOrder = await findFirstInOrder(scope, deliveries)
  const nowMs = now.getTime()
  const rows = deliveries.map((delivery) => ({
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    body: delivery.body,
    state: 'pending',
    attempts: 0,
    ordering_key: delivery.orderingKey ?? null,
    traceparent: scope.traceparent ?? null,
    bulk_job_id: delivery.bulkJobId ?? null,
    next_attempt_at: firstInOrder.has(delivery) ? nowMs : null,
    next_trigger: delivery.trigger,
    created_at: nowMs,
    updated_at: nowMs,
  }))
  const due = rows.filter((row) => row.next_attempt_at !== null)
  await scope.insert('deliveries', rows)
  scope.trx.announce(
    ATTEMPTS_SCHEDULED,
    due.map((row) => ({
      deliveryId: row.id,
      webhookId: row.webhook_id,
      accountId: scope.accountId,
      number: 1,
      scheduledAt: nowMs,
    })),
  )
}

interface DeliveryFilter {
  webhookId?: string
  state?: DeliveryState
  /** Only older deliveries: the last ID of the previous page. */
  beforeId?: string
  limit: number
}

/** Newest first. */
export async function listDeliveries(scope: Scope, filter: DeliveryFilter): Promise<Delivery[]> {
  const query = scope
    .rows('deliveries')
    .select(DELIVERY_COLUMNS)
    .orderBy('deliveries.id', 'desc')
    .limit(filter.limit)
  if (filter.webhookId) query.where('webhook_id', filter.webhookId)
  if (filter.state) query.where('state', filter.state)
  if (filter.beforeId) query.where('deliveries.id', '<', filter.beforeId)
  const rows: DeliveryRow[] = await query
  return rows.map(deliveryFromRow)
}

/** The first deliveries of an event, in the order of creation. */
export async function listDeliveriesOfEvent(
  scope: Scope,
  eventId: string,
  limit: number,
): Promise<Delivery[]> {
  const rows: DeliveryRow[] = await scope
    .rows('deliveries')
    .where('event_id', eventId)
    .orderBy('id')
    .limit(limit)
    .select(DELIVERY_COLUMNS)
  return rows.map(deliveryFromRow)
}

/** How many deliveries of each event are in each state. */
export async function countDeliveriesByEvent(
  scope: Scope,
  eventIds: string[],
): Promise<{ eventId: string; state: DeliveryState; count: number }[]> {
  const rows: { event_id: string; state: DeliveryState; deliveries: number | string }[] =
    await scope
      .rows('deliveries')
      .whereIn('event_id', eventIds)
      .groupBy('event_id', 'state')
      .select('event_id', 'state')
      .count({ deliveries: '*' })
  return rows.map((row) => ({
    eventId: row.event_id,
    state: row.state,
    count: Number(row.deliveries),
  }))
}

/** A condition for a state, as SQL. With it, the database reads the rows in the order of an index
 *  on undelivered deliveries. SQLite uses such a partial index only if the query repeats the
 *  predicate of the index. On PostgreSQL the predicate stays out: with it, the planner would expect
 *  too few rows, and sort all rows instead of using the order of the index. */
export function undeliveredCondition(
  { dialect }: Scope,
  state: Exclude<DeliveryState, 'delivered'>,
): string {
  return `deliveries.state = '${state}'${dialect === 'sqlite' ? ` and deliveries.${UNDELIVERED}` : ''}`
}

export interface Undelivered extends Delivery {
  /** A sentence about the failure of the last attempt. Null: there was no attempt, or it was
   *  deleted. */
  lastError: string | null
}

/** Pending, retrying and failed deliveries, newest first, without tests. */
export async function listUndelivered(
  scope: Scope,
  filter: Omit<DeliveryFilter, 'state'>,
): Promise<Undelivered[]> {
  const query = scope
    .rows('deliveries')
    .whereRaw(`deliveries.${UNDELIVERED}`)
    .whereNot('deliveries.event_type', TEST_EVENT)
    .leftJoin('attempts', (join) =>
      join
        .on('attempts.account_id', 'deliveries.account_id')
        .on('attempts.delivery_id', 'deliveries.id')
        .on('attempts.number', 'deliveries.attempts'),
    )
    .select(DELIVERY_COLUMNS)
    .select({ last_error: 'attempts.error' })
    .orderBy('deliveries.id', 'desc')
    .limit(filter.limit)
  if (filter.webhookId) query.where('deliveries.webhook_id', filter.webhookId)
  if (filter.beforeId) query.where('deliveries.id', '<', filter.beforeId)
  const rows: (DeliveryRow & { last_error: string | null })[] = await query
  return rows.map((row) => ({ ...deliveryFromRow(row), lastError: row.last_error }))
}

/** `forUpdate` locks the delivery until the transaction ends. */
export async function findDelivery(
  scope: Scope,
  id: string,
  { forUpdate = false } = {},
): Promise<Delivery | undefined> {
  const query = scope
    .rows('deliveries')
    .where({ id: toStoredId(id) })
    .select(DELIVERY_COLUMNS)
  const [row]: DeliveryRow[] = await (forUpdate ? query.forUpdate() : query)
  return row && deliveryFromRow(row)
}

export async function findDeliveryBody(scope: Scope, id: string): Promise<Buffer | undefined> {
  const row: { body: Buffer } | undefined = await scope
    .rows('deliveries')
    .where({ id })
    .first('body')
  return row?.body
}
