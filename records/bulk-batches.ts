/** The items of a bulk job: counted at its start, then read and recorded in batches. */
import {
  BULK_STAGES,
  type BulkJob,
  type BulkPosition,
  type BulkSelection,
  type BulkStage,
  type RunningBulkJob,
} from './bulk-jobs.ts'
import type { Db } from './database/open.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { TEST_EVENT } from './deliveries.ts'
import { LOWEST_ID, lowestIdAt } from './ids.ts'
import { UNDELIVERED } from './index-predicates.ts'

/** Which rows a stage works on. */
interface ItemQuery {
  table: 'deliveries' | 'events'
  /** A condition whose rows an index finds in the order of IDs. */
  range: Condition
  /** Filters the rows of the range. */
  filter: Condition
}

type Owner = Pick<Scope, 'accountId' | 'dialect'>

function itemQuery(owner: Owner, stage: BulkStage, selection: BulkSelection): ItemQuery {
  if (stage === 'missed') return missedEventsQuery(owner, selection)
  return {
    table: 'deliveries',
    range: undeliveredRange(owner, stage === 'waiting' ? 'retrying' : 'failed', selection),
    filter: stage === 'waiting' ? isWaiting(selection) : hasFailed(owner, stage, selection),
  }
}

/** Events without a delivery for the webhook. */
function missedEventsQuery({ accountId }: Owner, selection: BulkSelection): ItemQuery {
  const { webhookId, since, until } = selection
  const hasNoDelivery = {
    sql: `not exists (
      select 1 from deliveries
      where deliveries.account_id = ? and deliveries.event_id = events.id
        and deliveries.webhook_id = ?
    )`,
    bindings: [accountId, webhookId ?? ''],
  }
  return {
    table: 'events',
    range: {
      sql: 'events.account_id = ? and events.id >= ? and events.id < ?',
      bindings: [accountId, lowestIdAt(since), lowestIdAt(until)],
    },
    filter: allOf(...ofTypes(selection), hasNoDelivery),
  }
}

function undeliveredRange(
  { accountId, dialect }: Owner,
  state: 'retrying' | 'failed',
  { webhookId }: BulkSelection,
): Condition {
  if (webhookId === null)
    return { sql: `deliveries.account_id = ? and ${UNDELIVERED}`, bindings: [accountId] }
  return {
    // With a plain condition for the account, SQLite would read all of its undelivered deliveries.
    sql: `${dialect === 'sqlite' ? '+' : ''}deliveries.account_id = ? and webhook_id = ?
      and state = '${state}' and ${UNDELIVERED}`,
    bindings: [accountId, webhookId],
  }
}

/** Leaves out deliveries that are created after the start of the job: while the endpoint still
 *  fails, the job would never end. */
function isWaiting(selection: BulkSelection): Condition {
  const { until } = selection
  const isScheduled: Condition = {
    sql: "state = 'retrying' and next_attempt_at > ? and deliveries.created_at < ?",
    bindings: [until, until],
  }
  return allOf(isScheduled, ...ofTypes(selection))
}

function hasFailed(
  { accountId }: Owner,
  stage: 'cut_off' | 'failed',
  selection: BulkSelection,
): Condition {
  const { since, until } = selection
  const hasEnded: Condition = {
    sql: `deliveries.account_id = ? and state = 'failed' and next_attempt_at is null
          and event_type <> '${TEST_EVENT}'
          and deliveries.updated_at >= ? and deliveries.updated_at < ?`,
    bindings: [accountId, since, until],
  }
  const isWebhookEnabled: Condition = {
    sql: `webhook_id in (
      select webhooks.id from webhooks
      where webhooks.account_id = ? and enabled and deleted_at is null
    )`,
    bindings: [accountId],
  }
  return stage === 'cut_off'
    ? allOf(hasEnded, { sql: "failure_reason = 'webhook_disabled'", bindings: [] })
    : allOf(hasEnded, ...ofTypes(selection), isWebhookEnabled)
}

/** The condition for the selected event types. None if all types are selected. */
function ofTypes({ eventTypes }: BulkSelection): Condition[] {
  if (eventTypes === null) return []
  // A webhook with operational events alone has none of these types.
  const placeholders = eventTypes.map(() => '?').join(', ') || 'null'
  return [{ sql: `event_type in (${placeholders})`, bindings: eventTypes }]
}

function allOf(...conditions: Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => sql).join(' and '),
    bindings: conditions.flatMap(({ bindings }) => bindings),
  }
}

/** The number of items that a job would have now. */
export async function countSelected(scope: Scope, selection: BulkSelection): Promise<number> {
  let total = 0
  for (const stage of BULK_STAGES[selection.kind]) {
    const { table, range, filter } = itemQuery(scope, stage, selection)
    const where = allOf(range, filter)
    const [row] = await select<{ total: number }>(
      scope.sql,
      `select count(*) as total from ${table} where ${where.sql}`,
      where.bindings,
    )
    total += Number(row?.total)
  }
  return total
}

/** Items of a job, and its position after them. */
export interface BulkBatch {
  ids: string[]
  /** Null: the job is complete. */
  next: BulkPosition | null
}

const MAX_ROWS_READ = 1_000

/** The next items of a job, at most `size`, in the order of IDs. `ids` may be empty before the end
 *  of the job. */
export async function readBatch(db: Db, job: RunningBulkJob, size: number): Promise<BulkBatch> {
  const { dialect } = db
  const { table, range, filter } = itemQuery({ ...job, dialect }, job.stage, job)
  const rows = await select<{ id: string; matches: number }>(
    db.read,
    // The subquery keeps PostgreSQL from planning to read all rows of the account.
    `select ${table}.id, case when ${filter.sql} then 1 else 0 end as matches
     from (
       select * from ${table}
       where ${range.sql} and ${table}.id > ?
       order by ${table}.id
       limit ${MAX_ROWS_READ}
     ) as ${table}
     order by ${table}.id`,
    [...filter.bindings, ...range.bindings, job.cursor],
  )
  const items = rows.filter(({ matches }) => matches).slice(0, size)
  const ids = items.map(({ id }) => id)
  // A full batch ends with its last item. Any other batch ends with the last row that was read.
  const last = items.length === size ? items.at(-1) : rows.at(-1)
  const isEndOfStage = last === rows.at(-1) && rows.length < MAX_ROWS_READ
  if (last === undefined || isEndOfStage) return { ids, next: stageAfter(job) }
  return { ids, next: { stage: job.stage, cursor: last.id } }
}

function stageAfter({ kind, stage }: RunningBulkJob): BulkPosition | null {
  const stages = BULK_STAGES[kind]
  const next = stages[stages.indexOf(stage) + 1]
  return next === undefined ? null : { stage: next, cursor: LOWEST_ID }
}

/** No transaction of Muster stays open for longer. A job that is older than this waits for no
 *  transaction. */
const MAX_TRANSACTION_MS = 60_000

/** Whether all events of the job are committed or rolled back. On PostgreSQL a transaction that
 *  began while the webhook was disabled may still be open, and its event IDs may be lower than
 *  those that the job has passed. SQLite has only one writer. */
export async function areEventsCommitted(
  db: Db,
  { stage, creatingTransactionId, createdAt }: RunningBulkJob,
  now: Date,
): Promise<boolean> {
  const mayTransactionBeOpen =
    stage === 'missed' &&
    creatingTransactionId !== null &&
    now.getTime() - createdAt <= MAX_TRANSACTION_MS
  if (!mayTransactionBeOpen) return true
  const [row] = await select<{ oldest: number }>(
    db.read,
    'select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest',
    [],
  )
  return Number(row?.oldest) > creatingTransactionId
}

/** Locks the job until the commit. False when the job no longer runs, or another process has
 *  recorded its next batch. */
export async function lockBulkJob(
  trx: Trx,
  { accountId, id, stage, cursor }: RunningBulkJob,
): Promise<boolean> {
  const row: unknown = await trx
    .sql('bulk_jobs')
    .where({ account_id: accountId, id, state: 'running', stage, cursor })
    .forUpdate()
    .first('id')
  return row !== undefined
}

/** Records a completed batch of a locked job. `next`: as in `BulkBatch`. */
export async function storeProgress(
  trx: Trx,
  job: RunningBulkJob,
  { doneCount, nextAt, next }: { doneCount: number; nextAt: number; next: BulkPosition | null },
  now: Date,
): Promise<void> {
  const totalDone = job.done + doneCount
  const ended = {
    state: 'completed',
    ended_at: now.getTime(),
    skipped: Math.max(0, job.total - totalDone),
  }
  await trx
    .sql('bulk_jobs')
    .where({ account_id: job.accountId, id: job.id })
    .update({ done: totalDone, next_at: nextAt, updated_at: now.getTime(), ...(next ?? ended) })
}

/** Pauses a locked job whose webhook is disabled, and cancels one whose webhook is deleted. */
export async function stopBlockedJob(
  trx: Trx,
  { accountId, id }: RunningBulkJob,
  reason: NonNullable<BulkJob['stateReason']>,
  now: Date,
): Promise<void> {
  const state =
    reason === 'webhook_deleted'
      ? { state: 'cancelled', ended_at: now.getTime() }
      : { state: 'paused' }
  await trx
    .sql('bulk_jobs')
    .where({ account_id: accountId, id })
    .update({ ...state, state_reason: reason, updated_at: now.getTime() })
}
