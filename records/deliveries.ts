/** Deliveries and their attempts, as people and handlers ask for them. */

import { Refused } from '../errors.ts'
import type { DeliveredType } from '../generated/asyncapi.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'
import { lowestIdAt } from './ids.ts'

/** The type of a test, which is no event: nobody counts, retries or misses many of those. */
export const TEST_EVENT = 'webhook.test' satisfies DeliveredType

export const deliveryStates = ['pending', 'retrying', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]
/** Why an attempt is made: by the schedule, or once, by hand. */
export type Trigger = 'schedule' | 'retry' | 'resend' | 'test'
export type Outcome = 'success' | 'http_error' | 'timeout' | 'unreachable' | 'blocked'
export type FailureReason =
  | 'attempts_exhausted'
  | 'attempt_failed'
  | 'webhook_disabled'
  | 'webhook_deleted'
  | 'cancelled'

export interface Delivery {
  /** Also the `id` of the body, the same in all attempts. */
  id: string
  accountId: string
  webhookId: string
  eventId: string | null
  eventType: string
  state: DeliveryState
  failureReason: FailureReason | null
  /** Attempts made. */
  attempts: number
  /** Epoch milliseconds, as all times of records. Null: nothing more is planned. */
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
  createdAt: number
  /** When the state last changed or an attempt last ended. */
  updatedAt: number
}

export interface Attempt {
  deliveryId: string
  /** From 1. Names the attempt within its delivery. */
  number: number
  trigger: Trigger
  startedAt: number
  durationMs: number
  outcome: Outcome
  /** The HTTP status, when there was a response. */
  status: number | null
  responseHeaders: Record<string, string> | null
  /** Its first 16 KiB. */
  responseBody: string | null
  /** What went wrong, in a sentence. */
  error: string | null
  /** The IP address that was connected to, when one was. */
  address: string | null
  phases: Phases | null
}

/** How long each part of an attempt took, in milliseconds. Null: it did not come to that, or, as to connecting, a connection was open. */
export interface Phases {
  dns: number | null
  connect: number | null
  tls: number | null
  /** From the request being sent to the first byte of the response. */
  first_byte: number | null
  body: number | null
}

interface DeliveryRow {
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
  created_at: number
  updated_at: number
}

interface AttemptRow {
  delivery_id: string
  number: number
  trigger: Trigger
  started_at: number
  duration_ms: number
  outcome: Outcome
  status: number | null
  response_headers: string | null
  response_body: string | null
  error: string | null
  address: string | null
  phases: string | null
}

/** All but the body, which only the sender and a detail page need. */
const COLUMNS = [
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
  'created_at',
  'updated_at',
].map((column) => `deliveries.${column}`)

function deliveryFromRow(row: DeliveryRow): Delivery {
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
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

function attemptFromRow(row: AttemptRow): Attempt {
  return {
    deliveryId: row.delivery_id,
    number: row.number,
    trigger: row.trigger,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    responseHeaders:
      row.response_headers === null
        ? null
        : (JSON.parse(row.response_headers) as Record<string, string>),
    responseBody: row.response_body,
    error: row.error,
    address: row.address,
    phases: row.phases === null ? null : (JSON.parse(row.phases) as Phases),
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
  /** The resource, when the webhook wants its events in order. */
  orderingKey?: string
}

/** Plans the first attempt of each, due now, and wakes the engine after the commit. */
export async function insertDeliveries(
  scope: WriteScope,
  deliveries: NewDelivery[],
  now: Date,
): Promise<void> {
  if (deliveries.length === 0) return
  const taken = await listOrderingKeysTaken(scope, deliveries)
  const dueAt = now.getTime()
  const rows = deliveries.map((delivery) => ({
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    body: delivery.body,
    state: 'pending',
    attempts: 0,
    ordering_key: delivery.orderingKey ?? null,
    next_attempt_at: isTurnOf(delivery, taken) ? dueAt : null,
    next_trigger: delivery.trigger,
    created_at: dueAt,
    updated_at: dueAt,
  }))
  const due = rows.filter((row) => row.next_attempt_at !== null)
  const inserted = scope.insert('deliveries', rows)
  scope.trx.announce(
    ATTEMPTS_SCHEDULED,
    due.map((row) => ({ deliveryId: row.id, webhookId: row.webhook_id, number: 1, dueAt })),
  )
  await inserted
}

/** Of those that want an order: webhook and key of each that has another delivery under way. That one cannot end before the transaction does,
 *  or nobody would plan the new one. */
async function listOrderingKeysTaken(
  scope: WriteScope,
  deliveries: Pick<NewDelivery, 'webhookId' | 'orderingKey'>[],
): Promise<Set<string>> {
  const ordered = deliveries.filter(({ orderingKey }) => orderingKey !== undefined)
  if (ordered.length === 0) return new Set()
  const query = scope
    .rows('deliveries')
    .whereIn('webhook_id', [...new Set(ordered.map(({ webhookId }) => webhookId))])
    .whereIn('ordering_key', [...new Set(ordered.map(({ orderingKey }) => orderingKey ?? ''))])
    // Word for word as in the index.
    .whereRaw("ordering_key is not null and state in ('pending', 'retrying')")
    .orderBy('id')
    .select('webhook_id', 'ordering_key')
  const rows: { webhook_id: string; ordering_key: string }[] = await (scope.dialect === 'postgres'
    ? query.forShare()
    : query)
  return new Set(rows.map((row) => `${row.webhook_id} ${row.ordering_key}`))
}

/** Takes the turn, too. */
function isTurnOf(
  { webhookId, orderingKey }: Pick<NewDelivery, 'webhookId' | 'orderingKey'>,
  taken: Set<string>,
): boolean {
  if (orderingKey === undefined) return true
  const key = `${webhookId} ${orderingKey}`
  const isFirst = !taken.has(key)
  taken.add(key)
  return isFirst
}

export interface DeliveryFilter {
  webhookId?: string
  eventId?: string
  state?: DeliveryState
  /** Only those older than this delivery: the last id of the page before. */
  beforeId?: string
  limit: number
}

/** Newest first. */
export async function listDeliveries(scope: Scope, filter: DeliveryFilter): Promise<Delivery[]> {
  const query = scope
    .rows('deliveries')
    .select(COLUMNS)
    .orderBy('deliveries.id', 'desc')
    .limit(filter.limit)
  if (filter.webhookId) query.where('webhook_id', filter.webhookId)
  if (filter.eventId) query.where('event_id', filter.eventId)
  if (filter.state) query.where('state', filter.state)
  if (filter.beforeId) query.where('deliveries.id', '<', filter.beforeId)
  const rows: DeliveryRow[] = await query
  return rows.map(deliveryFromRow)
}

export interface DeliverySearch {
  webhookId: string
  state?: DeliveryState
  eventType?: string
  /** Of the delivery, or of its event. */
  id?: string
  /** When it was made: from this moment on, epoch milliseconds. */
  since?: number
  /** Before this moment. */
  until?: number
  /** Those next to this delivery: the page before or after. At most one of the two. */
  olderThan?: string
  newerThan?: string
  limit: number
}

export interface FoundDeliveries {
  /** Newest first. */
  deliveries: Delivery[]
  /** Where the search goes on in its direction, if there may be more. */
  nextFrom: string | null
  /** So many were looked at that the search ended before its page was full. */
  isCutShort: boolean
}

/** So many deliveries are looked at for a page: no index has their types, and none those that were delivered. Of those that were not, each may
 *  be in a page of its own of the database's file. */
const LOOKED_AT = 10_000
const UNDELIVERED_LOOKED_AT = 2_000

/** A page of a webhook's log. Takes as long with a million deliveries as with ten thousand. */
export async function searchDeliveries(
  scope: Scope,
  search: DeliverySearch,
): Promise<FoundDeliveries> {
  const { state, eventType, newerThan, limit } = search
  const direction = newerThan === undefined ? 'desc' : 'asc'
  const lookedAt = state === undefined || state === 'delivered' ? LOOKED_AT : UNDELIVERED_LOOKED_AT
  const isFiltered = state === 'delivered' || eventType !== undefined
  const inRange = searchRange(scope, search).orderBy('deliveries.id', direction)
  const found = isFiltered
    ? scope
        .sql(inRange.clone().select(COLUMNS).limit(lookedAt).as('deliveries'))
        .orderBy('deliveries.id', direction)
    : inRange.clone()
  if (state === 'delivered') found.where('deliveries.state', state)
  if (eventType !== undefined) found.where('deliveries.event_type', eventType)
  const rows = ((await found.select(COLUMNS).limit(limit + 1)) as DeliveryRow[]).map(
    deliveryFromRow,
  )
  const deliveries = rows.slice(0, limit)
  const page = direction === 'desc' ? deliveries : deliveries.toReversed()
  if (rows.length > limit)
    return { deliveries: page, nextFrom: deliveries.at(-1)?.id ?? null, isCutShort: false }
  if (!isFiltered) return { deliveries: page, nextFrom: null, isCutShort: false }
  const last: { id: string } | undefined = await inRange.offset(lookedAt - 1).first('deliveries.id')
  return { deliveries: page, nextFrom: last?.id ?? null, isCutShort: last !== undefined }
}

/** What indexes serve. */
function searchRange(
  scope: Scope,
  { webhookId, state, id, since, until, olderThan, newerThan }: DeliverySearch,
): ReturnType<Scope['rows']> {
  const range = scope.rows('deliveries').where('deliveries.webhook_id', webhookId)
  if (state !== undefined && state !== 'delivered') range.whereRaw(isUndelivered(scope, state))
  // With an `or`, SQLite would look at all of the webhook's.
  if (id !== undefined)
    range.whereRaw(
      'deliveries.id in (select id from deliveries where id = ? union all select id from deliveries where event_id = ?)',
      [id, id],
    )
  if (since !== undefined) range.where('deliveries.id', '>=', lowestIdAt(since))
  if (until !== undefined) range.where('deliveries.id', '<', lowestIdAt(until))
  if (olderThan !== undefined) range.where('deliveries.id', '<', olderThan)
  if (newerThan !== undefined) range.where('deliveries.id', '>', newerThan)
  return range
}

/** A condition that the index of what is not delivered serves. SQLite wants the index's own words. PostgreSQL finds out by itself, and if both
 *  were said it would expect so few rows that it would rather sort them all. */
export function isUndelivered(
  { dialect }: Scope,
  state: Exclude<DeliveryState, 'delivered'>,
): string {
  return `deliveries.state = '${state}'${dialect === 'sqlite' ? " and deliveries.state <> 'delivered'" : ''}`
}

export interface Undelivered extends Delivery {
  /** What went wrong in the last attempt, in a sentence. Null also when none was made, or it was long ago. */
  lastError: string | null
}

/** Events that have not arrived, over all webhooks: deliveries that are pending, retrying or failed, newest first. */
export async function listUndelivered(
  scope: Scope,
  filter: Omit<DeliveryFilter, 'eventId' | 'state'>,
): Promise<Undelivered[]> {
  const query = scope
    .rows('deliveries')
    // Word for word as in the index.
    .whereRaw("deliveries.state <> 'delivered'")
    .whereNot('deliveries.event_type', TEST_EVENT)
    .leftJoin('attempts', (join) =>
      join.on('attempts.delivery_id', 'deliveries.id').on('attempts.number', 'deliveries.attempts'),
    )
    .select(COLUMNS)
    .select({ last_error: 'attempts.error' })
    .orderBy('deliveries.id', 'desc')
    .limit(filter.limit)
  if (filter.webhookId) query.where('deliveries.webhook_id', filter.webhookId)
  if (filter.beforeId) query.where('deliveries.id', '<', filter.beforeId)
  const rows: (DeliveryRow & { last_error: string | null })[] = await query
  return rows.map((row) => ({ ...deliveryFromRow(row), lastError: row.last_error }))
}

/** How many deliveries of a webhook are in each state. */
export async function countDeliveries(
  scope: Scope,
  webhookId: string,
): Promise<Record<DeliveryState, number>> {
  const rows = (await scope
    .rows('deliveries')
    .where({ webhook_id: webhookId })
    .groupBy('state')
    .select('state')
    .count({ count: '*' })) as {
    state: DeliveryState
    count: number
  }[]
  const counts = { pending: 0, retrying: 0, delivered: 0, failed: 0 }
  for (const row of rows) counts[row.state] = Number(row.count)
  return counts
}

export async function findDelivery(scope: Scope, id: string): Promise<Delivery | undefined> {
  const row: DeliveryRow | undefined = await scope.rows('deliveries').where({ id }).first(COLUMNS)
  return row && deliveryFromRow(row)
}

export async function findDeliveryBody(scope: Scope, id: string): Promise<Buffer | undefined> {
  const row: { body: Buffer } | undefined = await scope
    .rows('deliveries')
    .where({ id })
    .first('body')
  return row?.body
}

/** The account that a delivery belongs to: for the operator's command line, which names no account. */
export async function findAccountOfDelivery(sql: Sql, id: string): Promise<string | undefined> {
  const row: { account_id: string } | undefined = await sql('deliveries')
    .where({ id })
    .first('account_id')
  return row?.account_id
}

/** In the order in which they were made. */
export async function listAttempts(scope: Scope, deliveryId: string): Promise<Attempt[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .where({ delivery_id: deliveryId })
    .orderBy('number')
  return rows.map(attemptFromRow)
}

/** The last of them, at most so many: the newest first. By hand there may be any number. */
export async function listLastAttempts(
  scope: Scope,
  deliveryId: string,
  limit: number,
): Promise<Attempt[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .where({ delivery_id: deliveryId })
    .orderBy('number', 'desc')
    .limit(limit)
  return rows.map(attemptFromRow)
}

/** An attempt without what was answered. */
export type AttemptSummary = Pick<
  Attempt,
  'deliveryId' | 'number' | 'trigger' | 'durationMs' | 'outcome' | 'status' | 'error'
>

/** The last attempts of some deliveries, at most so many of each, in the order in which they were made. */
export async function listAttemptSummaries(
  scope: Scope,
  deliveryIds: string[],
  limit: number,
): Promise<AttemptSummary[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .whereIn('attempts.delivery_id', deliveryIds)
    .whereRaw('attempts.number > deliveries.attempts - ?', [limit])
    .orderBy(['attempts.delivery_id', 'attempts.number'])
    .select(
      ['delivery_id', 'number', 'trigger', 'duration_ms', 'outcome', 'status', 'error'].map(
        (column) => `attempts.${column}`,
      ),
    )
  return rows.map((row) => ({
    deliveryId: row.delivery_id,
    number: row.number,
    trigger: row.trigger,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
  }))
}

const REFUSALS = {
  not_failed: 'Only a failed delivery can be retried.',
  not_delivered: 'Only a delivered delivery can be resent.',
  not_scheduled: 'Only a pending or retrying delivery is on the schedule, and this one has ended.',
  webhook_disabled: 'The webhook is disabled. Enable it first.',
  webhook_deleted: 'The webhook was deleted.',
}

/** The delivery is not in a state that allows this. */
export class DeliveryRefused extends Refused {
  override name = 'DeliveryRefused'
  code: keyof typeof REFUSALS
  constructor(code: keyof typeof REFUSALS) {
    super(REFUSALS[code])
    this.code = code
  }
}

/** Plans one attempt of a failed delivery, at once and outside the schedule. Asking again before it was made changes nothing.
 *  Undefined when there is no such delivery; throws `DeliveryRefused`. */
export async function retryDelivery(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  return attemptByHand(scope, id, { from: 'failed', trigger: 'retry', refusal: 'not_failed' }, now)
}

/** The same for a delivered one. */
export async function resendDelivery(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  return attemptByHand(
    scope,
    id,
    { from: 'delivered', trigger: 'resend', refusal: 'not_delivered' },
    now,
  )
}

/** Now, or a millisecond after what was last, so that no two attempts of a delivery are due at the same time. */
function notBefore({ sql }: Scope, now: Date): ReturnType<Sql['raw']> {
  return sql.raw('case when updated_at < ? then cast(? as bigint) else updated_at + 1 end', [
    now.getTime(),
    now.getTime(),
  ])
}

interface ByHand {
  from: DeliveryState
  trigger: Trigger
  refusal: 'not_failed' | 'not_delivered'
}

async function attemptByHand(
  scope: WriteScope,
  id: string,
  how: ByHand,
  now: Date,
): Promise<Delivery | undefined> {
  const delivery = await findDelivery(scope, id)
  if (!delivery) return undefined
  await assertSendable(scope, delivery.webhookId)
  // Conditional, so that of two clicks at once only the first plans an attempt.
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id, state: how.from })
    .whereNull('next_attempt_at')
    .update({ next_attempt_at: notBefore(scope, now), next_trigger: how.trigger, queued_at: null })
    .returning(COLUMNS)
  if (row) {
    scope.trx.announce(ATTEMPTS_SCHEDULED)
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== how.from) throw new DeliveryRefused(how.refusal)
  return current
}

/** Retries by hand those of them that are failed and wait for no attempt, and whose webhook is enabled. How many that were. */
export async function retryFailedDeliveries(
  scope: WriteScope,
  ids: string[],
  now: Date,
): Promise<number> {
  await lockInOrder(scope, ids)
  const enabled = scope
    .rows('webhooks')
    .where({ enabled: true })
    .whereNull('deleted_at')
    .select('webhooks.id')
  const planned = await scope
    .rows('deliveries')
    .whereIn('id', ids)
    .where({ state: 'failed' })
    .whereNull('next_attempt_at')
    .whereIn('webhook_id', enabled)
    .update({ next_attempt_at: notBefore(scope, now), next_trigger: 'retry', queued_at: null })
  if (planned > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return planned
}

/** Takes up the schedule again, where it was, for those of them that ended because their webhook was disabled. How many that were. */
export async function reschedule(scope: WriteScope, ids: string[], now: Date): Promise<number> {
  await lockInOrder(scope, ids)
  const rows: { id: string; webhook_id: string; ordering_key: string | null; attempts: number }[] =
    await scope
      .rows('deliveries')
      .whereIn('id', ids)
      .where({ state: 'failed', failure_reason: 'webhook_disabled' })
      .whereNull('next_attempt_at')
      .orderBy('id')
      .select('id', 'webhook_id', 'ordering_key', 'attempts')
  const ordered = rows.map((row) => ({
    ...row,
    webhookId: row.webhook_id,
    orderingKey: row.ordering_key ?? undefined,
  }))
  const taken = await listOrderingKeysTaken(scope, ordered)
  for (const row of ordered) {
    const nextAttemptAt = isTurnOf(row, taken) ? now.getTime() : null
    await scope
      .rows('deliveries')
      .where({ id: row.id })
      .update({
        // Whoever ends the one before plans those that are pending.
        state: row.attempts === 0 || nextAttemptAt === null ? 'pending' : 'retrying',
        failure_reason: null,
        next_attempt_at: nextAttemptAt,
        next_trigger: 'schedule',
        queued_at: null,
        updated_at: now.getTime(),
      })
  }
  if (rows.length > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return rows.length
}

/** Before many are updated: two transactions that lock the same rows in different orders wait for each other. */
async function lockInOrder(scope: WriteScope, ids: string[]): Promise<void> {
  if (scope.dialect === 'postgres')
    await scope.rows('deliveries').whereIn('id', ids).orderBy('id').forUpdate().select('id')
}

/** Makes the planned attempt of the schedule at once. It keeps its number, and what follows counts from its end. Where the attempt is due
 *  already, or waits for its turn, nothing changes. Undefined when there is no such delivery; throws `DeliveryRefused`. */
export async function attemptNow(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id })
    .whereIn('state', ['pending', 'retrying'])
    // What is about to be made may be under way, by the clock of the machine that makes it.
    .where('next_attempt_at', '>', now.getTime() + ABOUT_TO_BE_MADE_MS)
    .update({ next_attempt_at: notBefore(scope, now), queued_at: null })
    .returning(COLUMNS)
  if (row) {
    scope.trx.announce(ATTEMPTS_SCHEDULED)
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== 'pending' && current.state !== 'retrying')
    throw new DeliveryRefused('not_scheduled')
  return current
}

const ABOUT_TO_BE_MADE_MS = 1_000

/** Takes a delivery off the schedule: it has failed. An attempt that is under way may still deliver it. Undefined when there is no such
 *  delivery; throws `DeliveryRefused` when it has ended, also for the second of two at once. */
export async function cancelDelivery(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id })
    .whereIn('state', ['pending', 'retrying'])
    .update({
      state: 'failed',
      failure_reason: 'cancelled',
      next_attempt_at: null,
      next_trigger: null,
      queued_at: null,
      updated_at: now.getTime(),
    })
    .returning(COLUMNS)
  if (row) return deliveryFromRow(row)
  if (await findDelivery(scope, id)) throw new DeliveryRefused('not_scheduled')
  return undefined
}

async function assertSendable(scope: Scope, webhookId: string): Promise<void> {
  const webhook: { enabled: boolean | number; deleted_at: number | null } | undefined = await scope
    .rows('webhooks')
    .where({ id: webhookId })
    .first('enabled', 'deleted_at')
  if (!webhook || webhook.deleted_at !== null) throw new DeliveryRefused('webhook_deleted')
  if (!webhook.enabled) throw new DeliveryRefused('webhook_disabled')
}

/** Ends what is on the schedule of a webhook. An attempt by hand, due at once, is ended by the engine when it comes to make it. */
export async function endScheduledDeliveries(
  scope: WriteScope,
  webhookId: string,
  reason: 'webhook_disabled' | 'webhook_deleted',
  now: Date,
): Promise<void> {
  await scope
    .rows('deliveries')
    .where({ webhook_id: webhookId })
    .whereIn('state', ['pending', 'retrying'])
    .update({
      state: 'failed',
      failure_reason: reason,
      next_attempt_at: null,
      next_trigger: null,
      queued_at: null,
      updated_at: now.getTime(),
    })
}
