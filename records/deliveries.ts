/** Deliveries and their attempts. The rows are the truth: whatever the queue holds can be made again from them. */
import type { Db, Scope, Sql, Trx, WriteScope } from './db.ts'
import { Refused } from './refused.ts'

export type DeliveryState = 'pending' | 'retrying' | 'delivered' | 'failed'
/** Why an attempt is made: by the schedule, or once, by hand. */
export type Trigger = 'schedule' | 'retry' | 'resend' | 'test'
export type Outcome = 'success' | 'http_error' | 'timeout' | 'unreachable' | 'blocked'
export type FailureReason = 'attempts_exhausted' | 'attempt_failed' | 'webhook_disabled' | 'webhook_deleted'

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
  id: string
  deliveryId: string
  /** From 1. */
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
  id: string
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
    id: row.id,
    deliveryId: row.delivery_id,
    number: row.number,
    trigger: row.trigger,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    responseHeaders: row.response_headers === null ? null : (JSON.parse(row.response_headers) as Record<string, string>),
    responseBody: row.response_body,
    error: row.error,
  }
}

// ---- What people and handlers ask for

export interface NewDelivery {
  id: string
  webhookId: string
  eventId: string | null
  eventType: string
  /** The exact bytes of every attempt. */
  body: Buffer
  trigger: Trigger
}

/** Plans the first attempt of each, due now, and wakes the engine after the commit. */
export async function insertDeliveries(scope: WriteScope, deliveries: NewDelivery[], now: Date): Promise<void> {
  if (deliveries.length === 0) return
  await scope.insert(
    'deliveries',
    deliveries.map((delivery) => ({
      id: delivery.id,
      webhook_id: delivery.webhookId,
      event_id: delivery.eventId,
      event_type: delivery.eventType,
      body: delivery.body,
      state: 'pending',
      attempts: 0,
      next_attempt_at: now.getTime(),
      next_trigger: delivery.trigger,
      created_at: now.getTime(),
      updated_at: now.getTime(),
    })),
  )
  scope.trx.markDue()
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
  const query = scope.rows('deliveries').select(COLUMNS).orderBy('deliveries.id', 'desc').limit(filter.limit)
  if (filter.webhookId) query.where('webhook_id', filter.webhookId)
  if (filter.eventId) query.where('event_id', filter.eventId)
  if (filter.state) query.where('state', filter.state)
  if (filter.beforeId) query.where('deliveries.id', '<', filter.beforeId)
  const rows: DeliveryRow[] = await query
  return rows.map(deliveryFromRow)
}

/** How many deliveries of a webhook are in each state. */
export async function countDeliveries(scope: Scope, webhookId: string): Promise<Record<DeliveryState, number>> {
  const rows = (await scope.rows('deliveries').where({ webhook_id: webhookId }).groupBy('state').select('state').count({ count: '*' })) as {
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
  const row: { body: Buffer } | undefined = await scope.rows('deliveries').where({ id }).first('body')
  return row?.body
}

/** The account that a delivery belongs to: for the operator's command line, which names no account. */
export async function findAccountOfDelivery(sql: Sql, id: string): Promise<string | undefined> {
  const row: { account_id: string } | undefined = await sql('deliveries').where({ id }).first('account_id')
  return row?.account_id
}

/** In the order in which they were made. */
export async function listAttempts(scope: Scope, deliveryId: string): Promise<Attempt[]> {
  const rows: AttemptRow[] = await scope.rows('attempts').where({ delivery_id: deliveryId }).orderBy('number')
  return rows.map(attemptFromRow)
}

const REFUSALS = {
  not_failed: 'Only a failed delivery can be retried.',
  not_delivered: 'Only a delivered delivery can be resent.',
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
export async function retryDelivery(scope: WriteScope, id: string, now: Date): Promise<Delivery | undefined> {
  return attemptByHand(scope, id, { from: 'failed', trigger: 'retry', refusal: 'not_failed' }, now)
}

/** The same for a delivered one. */
export async function resendDelivery(scope: WriteScope, id: string, now: Date): Promise<Delivery | undefined> {
  return attemptByHand(scope, id, { from: 'delivered', trigger: 'resend', refusal: 'not_delivered' }, now)
}

interface ByHand {
  from: DeliveryState
  trigger: Trigger
  refusal: 'not_failed' | 'not_delivered'
}

async function attemptByHand(scope: WriteScope, id: string, how: ByHand, now: Date): Promise<Delivery | undefined> {
  const delivery = await findDelivery(scope, id)
  if (!delivery) return undefined
  await assertSendable(scope, delivery.webhookId)
  // Conditional, so that of two clicks at once only the first plans an attempt.
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id, state: how.from })
    .whereNull('next_attempt_at')
    .update({ next_attempt_at: now.getTime(), next_trigger: how.trigger, queued_at: null })
    .returning(COLUMNS)
  if (row) {
    scope.trx.markDue()
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== how.from) throw new DeliveryRefused(how.refusal)
  return current
}

/** Retries by hand every delivery of a webhook that failed at or after `since`. How many; throws `DeliveryRefused`. */
export async function retryAllFailedSince(scope: WriteScope, webhookId: string, since: Date, now: Date): Promise<number> {
  await assertSendable(scope, webhookId)
  const planned = await scope
    .rows('deliveries')
    .where({ webhook_id: webhookId, state: 'failed' })
    .whereNull('next_attempt_at')
    .where('updated_at', '>=', since.getTime())
    .update({ next_attempt_at: now.getTime(), next_trigger: 'retry', queued_at: null })
  if (planned > 0) scope.trx.markDue()
  return planned
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
  await scope.rows('deliveries').where({ webhook_id: webhookId }).whereIn('state', ['pending', 'retrying']).update({
    state: 'failed',
    failure_reason: reason,
    next_attempt_at: null,
    next_trigger: null,
    queued_at: null,
    updated_at: now.getTime(),
  })
}

// ---- What the delivery engine asks for, over all accounts

/** One planned attempt. Number and due time together tell it from every other that the delivery had or will have. */
export interface PlannedAttempt {
  deliveryId: string
  webhookId: string
  number: number
  dueAt: number
}

interface PlannedRow {
  id: string
  webhook_id: string
  attempts: number
  next_attempt_at: number
}

const plannedFromRow = (row: PlannedRow): PlannedAttempt => ({
  deliveryId: row.id,
  webhookId: row.webhook_id,
  number: row.attempts + 1,
  dueAt: row.next_attempt_at,
})

/** Attempts due up to `dueUntil` that the queue has not got, earliest first, none of the webhooks to leave out. */
export async function listUnqueued(sql: Sql, dueUntil: Date, leaveOut: string[], limit: number): Promise<PlannedAttempt[]> {
  const query = sql('deliveries')
    .whereNull('queued_at')
    .where('next_attempt_at', '<=', dueUntil.getTime())
    .orderBy(['next_attempt_at', 'id'])
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  if (leaveOut.length > 0) query.whereNotIn('webhook_id', leaveOut)
  const rows: PlannedRow[] = await query
  return rows.map(plannedFromRow)
}

/** Attempts overdue at `overdueAt` that were given to the queue at or before `queuedUntil`: their jobs may have been lost. */
export async function listOverdueQueued(db: Db, overdueAt: Date, queuedUntil: Date, limit: number): Promise<PlannedAttempt[]> {
  const rows: PlannedRow[] = await db
    .read('deliveries')
    .where('next_attempt_at', '<=', overdueAt.getTime())
    .where('queued_at', '<=', queuedUntil.getTime())
    .orderBy('next_attempt_at')
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  return rows.map(plannedFromRow)
}

/** Notes that the queue has these, unless one has been made or replaced since, or is at this moment. */
export async function markQueued({ dialect, sql }: Trx, planned: PlannedAttempt[], now: Date): Promise<void> {
  const columns = { deliveryId: 'uuid', number: 'integer', dueAt: 'bigint' }
  const isPostgres = dialect === 'postgres'
  // After a crash of the database they are queued again: no need to wait for the disk.
  if (isPostgres) await sql.raw('set local synchronous_commit = off')
  // Waiting for rows in another order than those who settle them would be a deadlock.
  await sql.raw(
    `update deliveries set queued_at = ? where id in (
       select deliveries.id from ${given(dialect, columns)} join deliveries
       on deliveries.id = given."deliveryId" and attempts = given.number - 1 and next_attempt_at = given."dueAt"
       ${isPostgres ? 'for update of deliveries skip locked' : ''})`,
    [now.getTime(), JSON.stringify(planned)],
  )
}

/** Forgets what the queue had: it is empty after a start of the embedded database. */
export async function markNoneQueued(db: Db): Promise<void> {
  await db.write('deliveries').whereNotNull('queued_at').whereNotNull('next_attempt_at').update({ queued_at: null })
}

/** When the next attempt after `now` is planned, of those the queue has. */
export async function findNextQueuedDueAt(db: Db, now: Date): Promise<number | undefined> {
  const row: { next_attempt_at: number } | undefined = await db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '>', now.getTime())
    .orderBy('next_attempt_at')
    .first('next_attempt_at')
  return row?.next_attempt_at
}

/** The webhooks of which the queue has at least `atLeast` attempts that are due. */
export async function listCrowdedWebhookIds(db: Db, atLeast: number, now: Date): Promise<string[]> {
  // Materialised, or SQLite walks a whole index to group by it.
  const due = db.read('deliveries').whereNotNull('queued_at').where('next_attempt_at', '<=', now.getTime()).select('webhook_id')
  const rows: { webhook_id: string }[] = await db.read
    .withMaterialized('due', due)
    .from('due')
    .groupBy('webhook_id')
    .havingRaw('count(*) >= ?', [atLeast])
    .select('webhook_id')
  return rows.map((row) => row.webhook_id)
}

/** When the attempt that has waited longest was due. Undefined: none is planned. */
export async function findOldestDueAt(db: Db): Promise<number | undefined> {
  // Two seeks, one in each partial index.
  const oldest = async (queued: boolean): Promise<number | undefined> => {
    const query = db.read('deliveries').whereNotNull('next_attempt_at').orderBy('next_attempt_at')
    const row: { next_attempt_at: number } | undefined = await (queued
      ? query.whereNotNull('queued_at')
      : query.whereNull('queued_at')
    ).first('next_attempt_at')
    return row?.next_attempt_at
  }
  const times = (await Promise.all([oldest(true), oldest(false)])).filter((time) => time !== undefined)
  return times.length > 0 ? Math.min(...times) : undefined
}

/** All that one attempt needs. */
export interface Sendable {
  id: string
  attempts: number
  nextAttemptAt: number | null
  trigger: Trigger
  body: Buffer
  webhook: { id: string; url: string; sealedSecret: string; enabled: boolean; deleted: boolean }
}

export async function loadSendables(db: Db, ids: string[]): Promise<Map<string, Sendable>> {
  const rows: {
    id: string
    attempts: number
    next_attempt_at: number | null
    next_trigger: Trigger | null
    body: Buffer
    webhook_id: string
    url: string
    secret_encrypted: string
    enabled: boolean | number
    deleted_at: number | null
  }[] = await db
    .read('deliveries')
    .join('webhooks', 'webhooks.id', 'deliveries.webhook_id')
    .whereIn('deliveries.id', ids)
    .select(
      'deliveries.id',
      'attempts',
      'next_attempt_at',
      'next_trigger',
      'body',
      'webhook_id',
      'url',
      'secret_encrypted',
      'enabled',
      'deleted_at',
    )
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        attempts: row.attempts,
        nextAttemptAt: row.next_attempt_at,
        trigger: row.next_trigger ?? 'schedule',
        body: row.body,
        webhook: {
          id: row.webhook_id,
          url: row.url,
          sealedSecret: row.secret_encrypted,
          enabled: Boolean(row.enabled),
          deleted: row.deleted_at !== null,
        },
      },
    ]),
  )
}

export type MadeAttempt = Omit<Attempt, 'deliveryId' | 'number'>

/** An attempt that ended, or one that was not made because its webhook is gone. */
export interface Settlement {
  planned: PlannedAttempt
  result: { attempt: MadeAttempt } | { notMade: 'webhook_disabled' | 'webhook_deleted' }
  endedAt: number
}

/** A delivery as it is now, locked, while the result of its attempt is stored. */
export interface SettlingDelivery {
  id: string
  accountId: string
  state: DeliveryState
  failureReason: FailureReason | null
  attempts: number
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
  webhook: { enabled: boolean; deleted: boolean }
}

/** What becomes of it. */
export interface DeliveryPlan {
  state: DeliveryState
  failureReason: FailureReason | null
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
}

/** Stores results, in the caller's transaction. `decide` says what becomes of each delivery; a result whose number was stored before, by
 *  whoever else made the same attempt, changes nothing. Returns how many were stored. */
export async function settle(
  trx: Trx,
  settlements: Settlement[],
  decide: (current: SettlingDelivery, settlement: Settlement) => DeliveryPlan,
): Promise<number> {
  const current = await lockForSettling(
    trx,
    settlements.map(({ planned }) => planned.deliveryId),
  )
  const attempts: Record<string, unknown>[] = []
  const plans: Record<string, unknown>[] = []
  for (const settlement of settlements) {
    const { planned, result, endedAt } = settlement
    const delivery = current.get(planned.deliveryId)
    if (delivery?.attempts !== planned.number - 1) continue
    // One result an attempt number, also within a batch.
    delivery.attempts = planned.number
    const made = 'attempt' in result
    if (made) attempts.push(attemptToRow(delivery, planned, result.attempt))
    const plan = decide(delivery, settlement)
    plans.push({
      id: delivery.id,
      state: plan.state,
      failure_reason: plan.failureReason,
      next_attempt_at: plan.nextAttemptAt,
      next_trigger: plan.nextTrigger,
      attempts: made ? planned.number : planned.number - 1,
      updated_at: endedAt,
    })
  }
  if (attempts.length > 0) {
    const columns = Object.keys(ATTEMPT_COLUMNS).join(', ')
    await trx.sql.raw(
      `insert into attempts (${columns}) select ${columns} from ${given(trx.dialect, ATTEMPT_COLUMNS)} where true
       on conflict (delivery_id, number) do nothing`,
      [JSON.stringify(attempts)],
    )
  }
  if (plans.length > 0) {
    const changed = Object.keys(PLAN_COLUMNS).filter((column) => column !== 'id')
    await trx.sql.raw(
      `update deliveries set ${changed.map((column) => `${column} = given.${column}`).join(', ')}, queued_at = null
       from ${given(trx.dialect, PLAN_COLUMNS)} where deliveries.id = given.id`,
      [JSON.stringify(plans)],
    )
  }
  return plans.length
}

const ATTEMPT_COLUMNS = {
  id: 'uuid',
  account_id: 'uuid',
  delivery_id: 'uuid',
  number: 'integer',
  trigger: 'text',
  started_at: 'bigint',
  duration_ms: 'integer',
  outcome: 'text',
  status: 'integer',
  response_headers: 'text',
  response_body: 'text',
  error: 'text',
}

const PLAN_COLUMNS = {
  id: 'uuid',
  state: 'text',
  failure_reason: 'text',
  next_attempt_at: 'bigint',
  next_trigger: 'text',
  attempts: 'integer',
  updated_at: 'bigint',
}

function attemptToRow(delivery: SettlingDelivery, planned: PlannedAttempt, attempt: MadeAttempt): Record<string, unknown> {
  return {
    id: attempt.id,
    account_id: delivery.accountId,
    delivery_id: delivery.id,
    number: planned.number,
    trigger: attempt.trigger,
    started_at: attempt.startedAt,
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    response_headers: attempt.responseHeaders === null ? null : JSON.stringify(attempt.responseHeaders),
    response_body: attempt.responseBody,
    error: attempt.error,
  }
}

async function lockForSettling(trx: Trx, ids: string[]): Promise<Map<string, SettlingDelivery>> {
  const query = trx
    .sql('deliveries')
    .join('webhooks', 'webhooks.id', 'deliveries.webhook_id')
    .whereIn('deliveries.id', ids)
    // In one order everywhere, so that two transactions never wait for each other.
    .orderBy('deliveries.id')
    .select(
      'deliveries.id',
      'deliveries.account_id',
      'state',
      'failure_reason',
      'attempts',
      'next_attempt_at',
      'next_trigger',
      'enabled',
      'deleted_at',
    )
  const rows: (DeliveryRow & { enabled: boolean | number; deleted_at: number | null })[] = await (trx.dialect === 'postgres'
    ? query.forUpdate('deliveries')
    : query)
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        accountId: row.account_id,
        state: row.state,
        failureReason: row.failure_reason,
        attempts: row.attempts,
        nextAttemptAt: row.next_attempt_at,
        nextTrigger: row.next_trigger,
        webhook: { enabled: Boolean(row.enabled), deleted: row.deleted_at !== null },
      },
    ]),
  )
}

/** A statement's `from`: the rows of one JSON parameter, as `given`. One parameter however many rows, and one plan. */
function given(dialect: Db['dialect'], columns: Record<string, string>): string {
  const names = Object.keys(columns)
  return dialect === 'postgres'
    ? `json_to_recordset(?::json) as given(${names.map((name) => `"${name}" ${columns[name]}`).join(', ')})`
    : `(select ${names.map((name) => `json_extract(value, '$.${name}') as "${name}"`).join(', ')} from json_each(?)) as given`
}
