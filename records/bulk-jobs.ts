/** Bulk operations on deliveries. Progress is committed with each batch, so a job can be
 *  interrupted anywhere and resumes exactly where it stopped. */
import { Refused } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Db } from './database/open.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { assertNotPaused, assertWebhookEnabled, type BlockingReason } from './delivery-commands.ts'
import { ARE_PAUSED } from './delivery-pause.ts'
import { JOBS_DUE } from './due-work.ts'
import { LOWEST_ID, lowestIdAt, newId } from './ids.ts'
import { RUNNING_BULK_JOBS } from './index-predicates.ts'
import { toNullableTimestamp, toTimestamp } from './list.ts'
import { findRow } from './references.ts'

/** `send_missed`: schedules what a webhook missed while it was disabled. `retry_failed`: one manual
 *  retry per delivery. `retry_waiting`: the next attempt of each retrying delivery, now. */
export type BulkKind = 'send_missed' | 'retry_failed' | 'retry_waiting'
export type BulkState = 'running' | 'paused' | 'completed' | 'cancelled'

/** The items of a job. */
export interface BulkSelection {
  kind: BulkKind
  /** Null: all webhooks of the account. Never null for `send_missed`. */
  webhookId: string | null
  /** Null: all. */
  eventTypes: string[] | null
  /** Epoch milliseconds, inclusive. Selects events and waiting deliveries by the time of their
   *  creation, and failed deliveries by the time of their failure. */
  since: number
  /** Exclusive. */
  until: number
}

export interface BulkJob extends BulkSelection {
  id: string
  accountId: string
  /** Maximum deliveries per second. */
  rate: number
  state: BulkState
  /** Why the service paused or cancelled the job. Null: a user did so, or the job runs or is
   *  completed. */
  stateReason: BlockingReason | null
  /** Counted at the start. */
  total: number
  done: number
  /** Items counted at the start that no longer qualified at their turn. Set at the end. */
  skipped: number
  createdBy: string | null
  createdAt: number
  updatedAt: number
  endedAt: number | null
}

/** Where the deliveries of a job are now. Without those that a later job has taken over, and those
 *  that were deleted. */
export interface BulkResult {
  delivered: number
  /** Failed, without a scheduled attempt. */
  failed: number
  waiting: number
}

/** A job as the public API shows it. */
export type PublicBulkJob = components['schemas']['BulkJob']

export async function toPublicBulkJob(scope: Scope, job: BulkJob): Promise<PublicBulkJob> {
  return {
    id: job.id,
    kind: job.kind,
    webhook_id: job.webhookId,
    // Jobs have the types that the contract, the console and the commands accept.
    event_types: job.eventTypes as PublicBulkJob['event_types'],
    since: toTimestamp(job.since),
    until: toTimestamp(job.until),
    rate: job.rate,
    state: job.state,
    state_reason: job.stateReason,
    total: job.total,
    done: job.done,
    skipped: job.skipped,
    ...(await countResult(scope, job.id)),
    created_at: toTimestamp(job.createdAt),
    updated_at: toTimestamp(job.updatedAt),
    ended_at: toNullableTimestamp(job.endedAt),
  }
}

/** A count of a list stops here, so that a list of large jobs stays fast. */
export const MAX_COUNTED_RESULTS = 500

/** The result of a job without deliveries. */
export const NO_RESULT: BulkResult = { delivered: 0, failed: 0, waiting: 0 }

export async function countResult(scope: Scope, jobId: string): Promise<BulkResult> {
  return (await countResults(scope, [jobId])).get(jobId) ?? NO_RESULT
}

/** The results of jobs, by the ID of the job. No count exceeds `limit`. */
export async function countResults(
  scope: Scope,
  jobIds: string[],
  limit = Number.POSITIVE_INFINITY,
): Promise<Map<string, BulkResult>> {
  const limitClause = Number.isFinite(limit) ? `limit ${limit}` : ''
  // Each part reads one range of an index, which has all its columns.
  const count = (condition: string): string => `(
    select count(*) from (
      select 1 from deliveries
      where deliveries.account_id = bulk_jobs.account_id
        and deliveries.bulk_job_id = bulk_jobs.id and ${condition}
      ${limitClause}
    ) as counted)`
  const columns = `id, ${count("state = 'delivered'")} as delivered,
    ${count("state = 'failed' and next_attempt_at is null")} as failed,
    ${count("state = 'failed' and next_attempt_at is not null")} as retried,
    ${count("state in ('pending', 'retrying')")} as retrying`
  const rows: Record<'id' | 'delivered' | 'failed' | 'retried' | 'retrying', string>[] = await scope
    .rows('bulk_jobs')
    .whereIn('id', jobIds)
    .select(scope.sql.raw(columns))
  return new Map(
    rows.map(({ id, delivered, failed, retried, retrying }) => {
      const waiting = Math.min(limit, Number(retried) + Number(retrying))
      return [id, { delivered: Number(delivered), failed: Number(failed), waiting }]
    }),
  )
}

/** The progress of a job: all items of the stage up to the cursor, an ID, are done. */
export interface BulkPosition {
  stage: BulkStage
  cursor: string
}

/** `cut_off`: deliveries that ended when the webhook was disabled. `missed`: events without a
 *  delivery for the webhook. `failed` and `waiting`: deliveries to retry. */
export type BulkStage = 'cut_off' | 'missed' | 'failed' | 'waiting'

export interface RunningBulkJob extends BulkJob, BulkPosition {
  /** When the rate allows the next batch. */
  nextAt: number
  /** PostgreSQL: the ID of the transaction that inserted the job. */
  creatingTransactionId: number | null
}

interface BulkJobRow {
  id: string
  account_id: string
  kind: BulkKind
  webhook_id: string | null
  event_types: string | null
  since: number
  until: number
  rate: number
  state: BulkState
  state_reason: BulkJob['stateReason']
  total: number
  done: number
  skipped: number
  stage: BulkStage
  cursor: string
  next_at: number
  made_by_transaction: number | null
  created_by: string | null
  created_at: number
  updated_at: number
  ended_at: number | null
}

function fromRow(row: BulkJobRow): RunningBulkJob {
  return {
    id: row.id,
    accountId: row.account_id,
    kind: row.kind,
    webhookId: row.webhook_id,
    eventTypes: row.event_types === null ? null : (JSON.parse(row.event_types) as string[]),
    since: row.since,
    until: row.until,
    rate: row.rate,
    state: row.state,
    stateReason: row.state_reason,
    total: row.total,
    done: row.done,
    skipped: row.skipped,
    stage: row.stage,
    cursor: row.cursor,
    nextAt: row.next_at,
    creatingTransactionId: row.made_by_transaction,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  }
}

/** In order: deliveries that were cut off are older than missed events. */
export const BULK_STAGES: Record<BulkKind, readonly [BulkStage, ...BulkStage[]]> = {
  send_missed: ['cut_off', 'missed'],
  retry_failed: ['failed'],
  retry_waiting: ['waiting'],
}

export interface NewBulkJob {
  selection: BulkSelection
  rate: number
  total: number
  createdBy: string | null
}

/** Throws `DeliveryRefused` while deliveries are paused or the webhook is not enabled. Throws
 *  `Refused` when an unfinished job of the same kind has a webhook in common with this one. */
export async function insertBulkJob(
  scope: WriteScope,
  { selection, rate, total, createdBy }: NewBulkJob,
  now: Date,
): Promise<BulkJob> {
  const { kind, webhookId, eventTypes, since, until } = selection
  // Locks the account: otherwise two concurrent inserts would both find no other job.
  await scope.sql('accounts').where({ id: scope.accountId }).forNoKeyUpdate().select('id')
  await assertNotPaused(scope)
  if (webhookId !== null) await assertWebhookEnabled(scope, webhookId)
  const overlapping = unfinishedJobs(scope).where({ kind })
  if (webhookId !== null)
    overlapping.where((job) => job.whereNull('webhook_id').orWhere('webhook_id', webhookId))
  const other: BulkJobRow | undefined = await overlapping.orderBy('id').first()
  if (other)
    throw new Refused(
      `Bulk job ${other.id} already does this and is ${other.state}. Cancel it first, or let it finish.`,
    )

  const id = newId()
  await scope.sql('bulk_jobs').insert({
    id,
    account_id: scope.accountId,
    kind,
    webhook_id: webhookId,
    event_types: eventTypes === null ? null : JSON.stringify(eventTypes),
    since,
    until,
    rate,
    state: 'running',
    total,
    stage: BULK_STAGES[kind][0],
    cursor: LOWEST_ID,
    next_at: now.getTime(),
    made_by_transaction:
      scope.dialect === 'postgres' ? scope.sql.raw('pg_current_xact_id()::text::bigint') : null,
    created_by: createdBy,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  })
  scope.trx.announce(JOBS_DUE)
  const inserted = await findBulkJob(scope, id)
  if (inserted === undefined) throw new Error(`Bulk job ${id} was not inserted`)
  return inserted
}

function unfinishedJobs(scope: Scope): ReturnType<Scope['rows']> {
  return scope.rows('bulk_jobs').whereIn('state', ['running', 'paused'])
}

/** `forUpdate` locks the job until the transaction ends. */
export async function findBulkJob(
  scope: Scope,
  id: string,
  options?: { forUpdate: boolean },
): Promise<BulkJob | undefined> {
  const row = await findRow<BulkJobRow>(scope, 'bulk_jobs', id, options)
  return row && fromRow(row)
}

const DEFAULT_LIMIT = 1_000

/** Newest first. */
export async function listBulkJobs(
  scope: Scope,
  { limit = DEFAULT_LIMIT, beforeId }: { limit?: number; beforeId?: string } = {},
): Promise<BulkJob[]> {
  const query = scope.rows('bulk_jobs').orderBy('id', 'desc').limit(limit)
  if (beforeId !== undefined) query.where('id', '<', beforeId)
  const rows: BulkJobRow[] = await query
  return rows.map(fromRow)
}

/** The running and paused jobs that include the webhook's deliveries, oldest first. */
export async function listUnfinishedBulkJobs(scope: Scope, webhookId: string): Promise<BulkJob[]> {
  const rows: BulkJobRow[] = await unfinishedJobs(scope)
    .where((job) => job.whereNull('webhook_id').orWhere('webhook_id', webhookId))
    .orderBy('id')
  return rows.map(fromRow)
}

/** Was a `send_missed` job of the webhook started at or after `since`, in epoch milliseconds? */
export async function hasSentMissedSince(
  scope: Scope,
  webhookId: string,
  since: number,
): Promise<boolean> {
  const row: unknown = await scope
    .rows('bulk_jobs')
    .where({ kind: 'send_missed', webhook_id: webhookId })
    .where('id', '>=', lowestIdAt(since))
    .first('id')
  return row !== undefined
}

/** Pauses a job until `resumeBulkJob`; attempts that it has scheduled stay scheduled. Returns
 *  undefined when the job does not exist. Throws `Refused` when it has ended. */
export function pauseBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  const columns = { state: 'paused', state_reason: null }
  return updateState(scope, id, { from: ['running', 'paused'], columns }, now)
}

const RESUMED = { state: 'running', state_reason: null }

/** A running job keeps running. Returns undefined when the job does not exist. Throws `Refused`
 *  when it has ended. Throws `DeliveryRefused` while deliveries are paused, and when the webhook of
 *  a paused job is disabled or deleted. */
export async function resumeBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  const job = await findBulkJob(scope, id)
  if (job) await assertNotPaused(scope)
  if (job?.state === 'paused' && job.webhookId !== null)
    await assertWebhookEnabled(scope, job.webhookId)
  const resumed = await updateState(
    scope,
    id,
    { from: ['running', 'paused'], columns: RESUMED },
    now,
  )
  if (resumed) scope.trx.announce(JOBS_DUE)
  return resumed
}

/** Resumes the jobs of a webhook that were paused because it was disabled. Call it in the
 *  transaction that enables the webhook. */
export async function resumeInterruptedJobs(
  scope: WriteScope,
  webhookId: string,
  now: Date,
): Promise<void> {
  const resumed = await scope
    .rows('bulk_jobs')
    .where({ webhook_id: webhookId, state: 'paused', state_reason: 'webhook_disabled' })
    .update({ ...RESUMED, updated_at: now.getTime() })
  if (resumed > 0) scope.trx.announce(JOBS_DUE)
}

/** Ends a job; attempts that it has scheduled stay scheduled. A cancelled job stays cancelled.
 *  Throws `Refused` when it is completed. */
export function cancelBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  const columns = {
    state: 'cancelled',
    ended_at: scope.sql.raw('coalesce(ended_at, ?)', [now.getTime()]),
  }
  return updateState(scope, id, { from: ['running', 'paused', 'cancelled'], columns }, now)
}

interface StateUpdate {
  from: BulkState[]
  columns: Record<string, unknown>
}

async function updateState(
  scope: WriteScope,
  id: string,
  { from, columns }: StateUpdate,
  now: Date,
): Promise<BulkJob | undefined> {
  const [row]: BulkJobRow[] = await scope
    .rows('bulk_jobs')
    .where({ id })
    .whereIn('state', from)
    .update({ ...columns, updated_at: now.getTime() })
    .returning('*')
  if (row) return fromRow(row)
  const job = await findBulkJob(scope, id)
  if (job) throw new Refused(`Bulk job ${id} is ${job.state}.`)
  return undefined
}

const MAX_LISTED_JOBS = 100

/** None while deliveries are paused: jobs wait for the end of the pause. */
export async function listRunningBulkJobIds(db: Db): Promise<string[]> {
  const rows: { id: string }[] = await db
    .read('bulk_jobs')
    .whereRaw(RUNNING_BULK_JOBS)
    .whereRaw(`not ${ARE_PAUSED}`)
    .orderBy('id')
    .limit(MAX_LISTED_JOBS)
    .select('id')
  return rows.map(({ id }) => id)
}

/** Undefined also while deliveries are paused. */
export async function findRunningBulkJob(db: Db, id: string): Promise<RunningBulkJob | undefined> {
  const row: BulkJobRow | undefined = await db
    .read('bulk_jobs')
    .where({ id, state: 'running' })
    .whereRaw(`not ${ARE_PAUSED}`)
    .first()
  return row && fromRow(row)
}
