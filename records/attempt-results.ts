/** Stores the results of attempts and updates their deliveries, for all accounts. */
import type { Attempt, AttemptWith, SendResult, Trigger } from './attempt.ts'
import { idIn, jsonRows, select } from './database/statements.ts'
import type { Source, Trx } from './database/transaction.ts'
import type { DeliveryState, FailureReason } from './deliveries.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'

/** State and next attempt of a delivery. */
export interface DeliveryProgress {
  state: DeliveryState
  failureReason: FailureReason | null
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
}

/** A delivery while the result of its attempt is stored: its row is locked. */
export interface LockedDelivery extends DeliveryProgress {
  id: string
  accountId: string
  attempts: number
  webhook: { enabled: boolean; deleted: boolean }
}

/** The progress of a delivery after a success, from any state. */
export const AFTER_SUCCESS: DeliveryProgress = {
  state: 'delivered',
  failureReason: null,
  nextAttemptAt: null,
  nextTrigger: null,
}

/** Stores results, and assigns the final attempt numbers. Ignores a result that was stored before,
 *  even by another process. Returns the progress of the delivery for each new result, in any order.
 *  `decide` determines the progress after a failed or skipped attempt. */
export async function storeResults(
  trx: Trx,
  attempts: AttemptWith<'result'>[],
  decide: (current: LockedDelivery, attempt: AttemptWith<'result'>) => DeliveryProgress,
): Promise<DeliveryProgress[]> {
  const successes = attempts.filter(hasSucceeded)
  const failedOrSkipped = attempts.filter((attempt) => !hasSucceeded(attempt))
  const stored = successes.length > 0 ? await storeSuccesses(trx, successes) : []
  const progress =
    failedOrSkipped.length > 0 ? await storeFailedOrSkipped(trx, failedOrSkipped, decide) : []
  const ordered = attempts.filter(({ result }) => result.orderingKey !== null)
  if (ordered.length > 0) await scheduleNextInOrder(trx, ordered)
  return [...stored, ...progress]
}

/** For each ordering key of the attempts, schedules the first unfinished delivery, unless one is
 *  already scheduled. */
async function scheduleNextInOrder(
  { dialect, sql, announce }: Trx,
  attempts: AttemptWith<'result'>[],
): Promise<void> {
  const keys = attempts.map(({ accountId, webhookId, result }) => ({
    account_id: accountId,
    webhook_id: webhookId,
    ordering_key: result.orderingKey,
  }))
  const at = Math.max(...attempts.map(({ result }) => result.endedAt))
  const result = await sql.raw(
    `update deliveries set next_attempt_at = ?, queued_at = null
     from (
       select input.account_id, (
         -- A scheduled delivery comes first here, and the condition below leaves it alone.
         select candidate.id from deliveries as candidate
         where candidate.account_id = input.account_id and candidate.webhook_id = input.webhook_id
           and candidate.ordering_key = input.ordering_key and candidate.state in ('pending', 'retrying')
         order by candidate.next_attempt_at is null, candidate.id limit 1) as id
       from ${jsonRows(dialect, { account_id: 'uuid', webhook_id: 'uuid', ordering_key: 'uuid' })}
     ) as first
     where deliveries.account_id = first.account_id and deliveries.id = first.id
       and state = 'pending' and next_attempt_at is null
     returning deliveries.id`,
    [at, JSON.stringify(keys)],
  )
  const scheduled = dialect === 'postgres' ? result.rows : result
  if (scheduled.length > 0) announce(ATTEMPTS_SCHEDULED)
}

export type SentAttempt = AttemptWith<'result'> & { result: { sent: SendResult } }

function isSent(attempt: AttemptWith<'result'>): attempt is SentAttempt {
  return 'sent' in attempt.result
}

export function hasSucceeded(attempt: AttemptWith<'result'>): attempt is SentAttempt {
  return isSent(attempt) && attempt.result.sent.outcome === 'success'
}

/** A result counts if it belongs to the scheduled attempt. The result of an attempt that was
 *  cancelled while it was in flight counts, too, as long as its number is unused. `isNewResult`
 *  applies the same rule. */
const IS_NEW_RESULT =
  '(deliveries.next_attempt_at = input.scheduled_at or deliveries.attempts = input.number - 1)'

/** Nearly all results are successes. They need no read first: a success leads to the same progress
 *  from any state. On PostgreSQL this is one statement, which needs no transaction around it. Does
 *  not schedule the next deliveries of ordering keys. Returns as `storeResults` does. */
export async function storeSuccesses(
  source: Source,
  successes: SentAttempt[],
): Promise<DeliveryProgress[]> {
  const { dialect, sql } = source
  // Sorted, so that concurrent transactions lock rows in the same order.
  const rows = successes
    .map((attempt) => ({
      ...attemptToRow(attempt),
      ended_at: attempt.result.endedAt,
      scheduled_at: attempt.scheduledAt,
    }))
    .sort((a, b) => (a.delivery_id < b.delivery_id ? -1 : 1))
  const input = jsonRows(dialect, {
    ...ATTEMPT_COLUMNS,
    ended_at: 'bigint',
    scheduled_at: 'bigint',
  })
  const json = JSON.stringify(rows)
  if (dialect === 'postgres') {
    const columns = ATTEMPT_FIELDS.filter((name) => name !== 'number').join(', ')
    // With these conditions, even a plan from when the table was small finds the rows by index.
    const accountIds = new Set(rows.map((row) => row.account_id))
    const isOwn = idIn(dialect, [...accountIds], 'deliveries.account_id')
    const deliveryIds = rows.map((row) => row.delivery_id)
    const isDelivery = idIn(dialect, deliveryIds, 'deliveries.id')
    const inserted = await select(
      sql,
      `with input as (select * from ${input}),
         stored as (${markDeliveredSql('input', `${isOwn.sql} and ${isDelivery.sql}`)})
       insert into attempts (number, ${columns})
       select stored.attempts, ${columns}
       from input join stored on stored.id = input.delivery_id
       on conflict do nothing
       returning delivery_id`,
      [json, ...isOwn.bindings, ...isDelivery.bindings],
      'store_successes',
    )
    return inserted.map(() => AFTER_SUCCESS)
  }
  const stored: { id: string; attempts: number }[] = await sql.raw(markDeliveredSql(input), [json])
  const storedById = new Map(stored.map((row) => [row.id, row]))
  const attemptRows = rows.flatMap((row) => {
    const delivery = storedById.get(row.delivery_id)
    return delivery ? [{ ...row, number: delivery.attempts }] : []
  })
  await insertAttempts(source, attemptRows)
  return stored.map(() => AFTER_SUCCESS)
}

/** An update to `AFTER_SUCCESS`. `input`: a `from` item with the attempts. */
function markDeliveredSql(input: string, condition = 'true'): string {
  return `update deliveries
    set state = 'delivered', failure_reason = null, next_attempt_at = null, next_trigger = null,
      attempts = deliveries.attempts + 1, updated_at = input.ended_at, queued_at = null
    from ${input}
    where deliveries.account_id = input.account_id and deliveries.id = input.delivery_id and ${IS_NEW_RESULT}
      and ${condition}
    returning deliveries.id, deliveries.attempts`
}

async function storeFailedOrSkipped(
  trx: Trx,
  attempts: AttemptWith<'result'>[],
  decide: (current: LockedDelivery, attempt: AttemptWith<'result'>) => DeliveryProgress,
): Promise<DeliveryProgress[]> {
  const deliveries = await lockDeliveries(trx, attempts)
  const attemptRows: Record<string, unknown>[] = []
  const progressRows: Record<string, unknown>[] = []
  const stored: DeliveryProgress[] = []
  for (const attempt of attempts) {
    const delivery = deliveries.get(attempt.deliveryId)
    if (!delivery || !isNewResult(delivery, attempt)) continue
    const number = isSent(attempt) ? delivery.attempts + 1 : delivery.attempts
    if (isSent(attempt)) attemptRows.push({ ...attemptToRow(attempt), number })
    const progress = decide(delivery, attempt)
    // `attempts` may have the same attempt twice: the second one is compared with the new progress.
    Object.assign(delivery, progress, { attempts: number })
    stored.push(progress)
    progressRows.push({
      account_id: delivery.accountId,
      id: delivery.id,
      state: progress.state,
      failure_reason: progress.failureReason,
      next_attempt_at: progress.nextAttemptAt,
      next_trigger: progress.nextTrigger,
      attempts: number,
      updated_at: attempt.result.endedAt,
    })
  }
  await insertAttempts(trx, attemptRows)
  await updateProgress(trx, progressRows)
  return stored
}

/** The same rule as `IS_NEW_RESULT`: test/records/attempt-results.test.ts compares them. */
function isNewResult(
  delivery: LockedDelivery,
  { scheduledAt, number }: AttemptWith<'result'>,
): boolean {
  return delivery.nextAttemptAt === scheduledAt || delivery.attempts === number - 1
}

async function updateProgress(
  { dialect, sql }: Trx,
  rows: Record<string, unknown>[],
): Promise<void> {
  if (rows.length === 0) return
  const columns = Object.keys(PROGRESS_COLUMNS).slice(2)
  // `queued_at` marks an attempt that is in the queue. The mark stays only if the next attempt is
  // unchanged: a new next attempt must be queued, too.
  await sql.raw(
    `update deliveries set ${columns.map((column) => `${column} = input.${column}`).join(', ')},
       queued_at = case when deliveries.next_attempt_at = input.next_attempt_at then queued_at end
     from ${jsonRows(dialect, PROGRESS_COLUMNS)}
     where deliveries.account_id = input.account_id and deliveries.id = input.id`,
    [JSON.stringify(rows)],
  )
}

async function insertAttempts(
  { dialect, sql }: Source,
  rows: Record<string, unknown>[],
): Promise<void> {
  if (rows.length === 0) return
  const columns = ATTEMPT_FIELDS.join(', ')
  // SQLite cannot parse "insert … select … on conflict" without a where.
  await sql.raw(
    `insert into attempts (${columns})
     select ${columns} from ${jsonRows(dialect, ATTEMPT_COLUMNS)} where true
     on conflict do nothing`,
    [JSON.stringify(rows)],
  )
}

/** The columns that come from an attempt, with their PostgreSQL types. */
const ATTEMPT_COLUMNS = {
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
  address: 'text',
  phases: 'text',
}
const ATTEMPT_FIELDS = Object.keys(ATTEMPT_COLUMNS)

/** The first two are the key. */
const PROGRESS_COLUMNS = {
  account_id: 'uuid',
  id: 'uuid',
  state: 'text',
  failure_reason: 'text',
  next_attempt_at: 'bigint',
  next_trigger: 'text',
  attempts: 'integer',
  updated_at: 'bigint',
}

const toJson = (value: object | null): string | null =>
  value === null ? null : JSON.stringify(value)

function attemptToRow({ accountId, deliveryId, number, result }: SentAttempt) {
  const { trigger, sent } = result
  return {
    account_id: accountId,
    delivery_id: deliveryId,
    number,
    trigger,
    started_at: sent.startedAt,
    duration_ms: sent.durationMs,
    outcome: sent.outcome,
    status: sent.status,
    response_headers: toJson(sent.responseHeaders),
    response_body: sent.responseBody,
    error: sent.error,
    address: sent.address,
    phases: toJson(sent.phases),
  }
}

interface LockedRow {
  id: string
  account_id: string
  state: DeliveryState
  failure_reason: FailureReason | null
  attempts: number
  next_attempt_at: number | null
  next_trigger: Trigger | null
  enabled: boolean | number
  deleted_at: number | null
}

async function lockDeliveries(
  { dialect, sql }: Trx,
  attempts: Attempt[],
): Promise<Map<string, LockedDelivery>> {
  const rows = await select<LockedRow>(
    sql,
    `select deliveries.id, deliveries.account_id, state, failure_reason, attempts, next_attempt_at,
       next_trigger, enabled, deleted_at
     from ${jsonRows(dialect, { accountId: 'uuid', deliveryId: 'uuid' })}
     join deliveries on deliveries.account_id = input."accountId" and deliveries.id = input."deliveryId"
     join webhooks on webhooks.account_id = deliveries.account_id and webhooks.id = deliveries.webhook_id
     -- Sorted, so that concurrent transactions lock rows in the same order.
     order by deliveries.id
     ${dialect === 'postgres' ? 'for update of deliveries' : ''}`,
    [JSON.stringify(attempts.map(({ accountId, deliveryId }) => ({ accountId, deliveryId })))],
  )
  return new Map(rows.map((row) => [row.id, lockedFromRow(row)]))
}

function lockedFromRow(row: LockedRow): LockedDelivery {
  return {
    id: row.id,
    accountId: row.account_id,
    state: row.state,
    failureReason: row.failure_reason,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    nextTrigger: row.next_trigger,
    webhook: { enabled: Boolean(row.enabled), deleted: row.deleted_at !== null },
  }
}
