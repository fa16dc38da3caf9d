/** Work at many deliveries of an account, a batch at a time. How far it is stands beside what it did, in one transaction: so it is interrupted
 *  anywhere and goes on from there, doing nothing twice and leaving nothing out. */

import { v7 as uuidv7 } from 'uuid'
import { Refused } from '../errors.ts'
import type { Db } from './database/open.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { type Sql, select } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { DeliveryRefused, TEST_EVENT } from './deliveries.ts'
import { JOBS_DUE } from './due-work.ts'
import { lowestIdAt } from './ids.ts'
import type { Condition } from './list.ts'

/** `send_missed`: what a webhook did not get while it was disabled is put on the schedule. `retry_failed`: one attempt by hand each. */
export type BulkKind = 'send_missed' | 'retry_failed'
export type BulkState = 'running' | 'paused' | 'completed' | 'cancelled'

/** What the work is done at. */
export interface BulkSelection {
  kind: BulkKind
  /** Null: all webhooks of the account. Never null for `send_missed`. */
  webhookId: string | null
  /** Null: all. */
  eventTypes: string[] | null
  /** Epoch milliseconds, as all times of records. Events count by when they happened, deliveries by when they failed. */
  since: number
  /** This moment and those after it do not count. */
  until: number
}

export interface BulkJob extends BulkSelection {
  id: string
  accountId: string
  /** Deliveries a second, at most. */
  rate: number
  state: BulkState
  /** Why it is paused or cancelled, when nobody asked for it. */
  stateReason: 'webhook_disabled' | 'webhook_deleted' | null
  /** Counted at the start. */
  total: number
  done: number
  /** Counted at the start, and no longer in need of it when their turn came. Known at the end. */
  skipped: number
  createdBy: string | null
  createdAt: number
  updatedAt: number
  endedAt: number | null
}

/** Where a job is: everything up to an id of a stage is dealt with. */
export interface BulkPlace {
  stage: BulkStage
  cursor: string
}

/** `cut_off`: deliveries that ended when the webhook was disabled. `missed`: events of which it has none. `failed`: deliveries to retry. */
export type BulkStage = 'cut_off' | 'missed' | 'failed'

/** A job as its runner needs it. */
export interface RunningBulkJob extends BulkJob, BulkPlace {
  /** When its rate allows the next batch. */
  nextAt: number
  madeByTransaction: number | null
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
    madeByTransaction: row.made_by_transaction,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  }
}

/** In their order: what was cut off is older than what was missed. */
const STAGES: Record<BulkKind, readonly [BulkStage, ...BulkStage[]]> = {
  send_missed: ['cut_off', 'missed'],
  retry_failed: ['failed'],
}
const START = '00000000-0000-0000-0000-000000000000'

/** Rows of a table, in an order that an index has, and which of them the work is done at. */
interface Items {
  table: 'deliveries' | 'events'
  range: Condition
  wanted: Condition
}

function itemsOf(accountId: string, stage: BulkStage, selection: BulkSelection): Items {
  const { webhookId, eventTypes, since, until } = selection
  const ofTypes: Condition[] =
    eventTypes === null
      ? []
      : [{ sql: `event_type in (${eventTypes.map(() => '?').join(', ')})`, bindings: eventTypes }]
  if (stage === 'missed') {
    const none =
      'not exists (select 1 from deliveries where deliveries.event_id = events.id and deliveries.webhook_id = ?)'
    return {
      table: 'events',
      range: {
        sql: 'events.account_id = ? and events.id >= ? and events.id < ?',
        bindings: [accountId, lowestIdAt(since), lowestIdAt(until)],
      },
      wanted: all(...ofTypes, { sql: none, bindings: [webhookId ?? ''] }),
    }
  }
  const failed: Condition = {
    sql: `deliveries.account_id = ? and state = 'failed' and next_attempt_at is null and event_type <> '${TEST_EVENT}'
          and deliveries.updated_at >= ? and deliveries.updated_at < ?`,
    bindings: [accountId, since, until],
  }
  const enabled =
    'webhook_id in (select webhooks.id from webhooks where webhooks.account_id = ? and enabled and deleted_at is null)'
  return {
    table: 'deliveries',
    // Word for word as in the indexes.
    range:
      webhookId === null
        ? { sql: "deliveries.account_id = ? and state <> 'delivered'", bindings: [accountId] }
        : {
            sql: "webhook_id = ? and state = 'failed' and state <> 'delivered'",
            bindings: [webhookId],
          },
    wanted:
      stage === 'cut_off'
        ? all(failed, { sql: "failure_reason = 'webhook_disabled'", bindings: [] })
        : all(failed, ...ofTypes, { sql: enabled, bindings: [accountId] }),
  }
}

function all(...conditions: Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => sql).join(' and '),
    bindings: conditions.flatMap(({ bindings }) => bindings),
  }
}

/** How much work it would be, now. */
export async function countSelected(scope: Scope, selection: BulkSelection): Promise<number> {
  let total = 0
  for (const stage of STAGES[selection.kind]) {
    const { table, range, wanted } = itemsOf(scope.accountId, stage, selection)
    const where = all(range, wanted)
    const [row] = await select<{ total: number }>(
      scope.sql,
      `select count(*) as total from ${table} where ${where.sql}`,
      where.bindings,
    )
    total += Number(row?.total)
  }
  return total
}

/** Some of a job's work, and where the job is once it is done. */
export interface BulkBatch {
  ids: string[]
  /** Null: there is no more. */
  next: BulkPlace | null
}

/** So many rows are looked at, at most. */
const WINDOW = 1_000

/** The next of the job's work, at most `size`, in the order of ids. None may be among the rows that were looked at. */
export async function readBatch(db: Db, job: RunningBulkJob, size: number): Promise<BulkBatch> {
  const { table, range, wanted } = itemsOf(job.accountId, job.stage, job)
  const rows = await select<{ id: string; wanted: number }>(
    db.read,
    // The rows first: PostgreSQL would prepare itself to look at all there are.
    `select ${table}.id, case when ${wanted.sql} then 1 else 0 end as wanted
     from (select * from ${table} where ${range.sql} and ${table}.id > ? order by ${table}.id limit ${WINDOW}) as ${table} order by ${table}.id`,
    [...wanted.bindings, ...range.bindings, job.cursor],
  )
  const found = rows.flatMap(({ id, wanted }, index) => (wanted ? [{ id, index }] : []))
  const last = found[size - 1]?.index ?? rows.length - 1
  const ids = found.slice(0, size).map(({ id }) => id)
  if (last === rows.length - 1 && rows.length < WINDOW) return { ids, next: stageAfter(job) }
  return { ids, next: { stage: job.stage, cursor: rows[last]?.id ?? job.cursor } }
}

function stageAfter({ kind, stage }: RunningBulkJob): BulkPlace | null {
  const stages = STAGES[kind]
  const next = stages[stages.indexOf(stage) + 1]
  return next === undefined ? null : { stage: next, cursor: START }
}

/** No transaction of ours takes so long. Others, of which we know nothing, may. */
const LONGEST_TRANSACTION_MS = 60_000

/** Has every event that the job is about been committed, if it ever will be? On PostgreSQL one that began while the webhook was disabled may
 *  still be under way, and its ids are lower than others that are there. SQLite has one writer. */
export async function isAllCommitted(
  db: Db,
  { stage, madeByTransaction, createdAt }: RunningBulkJob,
  now: Date,
): Promise<boolean> {
  if (
    stage !== 'missed' ||
    madeByTransaction === null ||
    now.getTime() - createdAt > LONGEST_TRANSACTION_MS
  )
    return true
  const [row] = await select<{ oldest: number }>(
    db.read,
    'select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest',
    [],
  )
  return Number(row?.oldest) > madeByTransaction
}

export interface NewBulkJob {
  selection: BulkSelection
  rate: number
  total: number
  createdBy: string | null
}

/** Starts a job. Throws `DeliveryRefused` unless its webhook is enabled, and `Refused` when one of its kind for the same deliveries has not
 *  ended. */
export async function insertBulkJob(
  scope: WriteScope,
  { selection, rate, total, createdBy }: NewBulkJob,
  now: Date,
): Promise<BulkJob> {
  const { kind, webhookId, eventTypes, since, until } = selection
  // The account's row is the lock: two at once would both find no other.
  const account = scope.sql('accounts').where({ id: scope.accountId }).select('id')
  await (scope.dialect === 'postgres' ? account.forNoKeyUpdate() : account)
  await assertEnabled(scope, webhookId)
  const same = unended(scope).where({ kind })
  if (webhookId !== null)
    same.where((other) => other.whereNull('webhook_id').orWhere('webhook_id', webhookId))
  const other: BulkJobRow | undefined = await same.orderBy('id').first()
  if (other)
    throw new Refused(
      `Bulk job ${other.id} does this already, and is ${other.state}. Cancel it first, or let it finish.`,
    )

  const id = uuidv7()
  await scope.insert('bulk_jobs', {
    id,
    kind,
    webhook_id: webhookId,
    event_types: eventTypes === null ? null : JSON.stringify(eventTypes),
    since,
    until,
    rate,
    state: 'running',
    total,
    stage: STAGES[kind][0],
    cursor: START,
    next_at: now.getTime(),
    made_by_transaction:
      scope.dialect === 'postgres' ? scope.sql.raw('pg_current_xact_id()::text::bigint') : null,
    created_by: createdBy,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  })
  scope.trx.announce(JOBS_DUE)
  return present(await findBulkJob(scope, id))
}

async function assertEnabled(scope: Scope, webhookId: string | null): Promise<void> {
  if (webhookId === null) return
  const hindrance = await findHindrance(scope, webhookId)
  if (hindrance) throw new DeliveryRefused(hindrance)
}

/** What keeps the webhook from getting anything. */
export async function findHindrance(
  scope: Scope,
  webhookId: string,
): Promise<BulkJob['stateReason']> {
  const webhook: { enabled: boolean | number; deleted_at: number | null } | undefined = await scope
    .rows('webhooks')
    .where({ id: webhookId })
    .first('enabled', 'deleted_at')
  if (!webhook || webhook.deleted_at !== null) return 'webhook_deleted'
  return webhook.enabled ? null : 'webhook_disabled'
}

function unended(scope: Scope): ReturnType<Scope['rows']> {
  return scope.rows('bulk_jobs').whereIn('state', ['running', 'paused'])
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('A row that was just written is gone')
  return value
}

export async function findBulkJob(scope: Scope, id: string): Promise<BulkJob | undefined> {
  const row: BulkJobRow | undefined = await scope.rows('bulk_jobs').where({ id }).first()
  return row && fromRow(row)
}

const LISTED = 1_000

/** Newest first, at most 1,000. */
export async function listBulkJobs(
  scope: Scope,
  { limit = LISTED, beforeId }: { limit?: number; beforeId?: string } = {},
): Promise<BulkJob[]> {
  const query = scope.rows('bulk_jobs').orderBy('id', 'desc').limit(limit)
  if (beforeId !== undefined) query.where('id', '<', beforeId)
  const rows: BulkJobRow[] = await query
  return rows.map(fromRow)
}

/** Those at work on a webhook's deliveries, or paused, oldest first. */
export async function listUnendedBulkJobs(scope: Scope, webhookId: string): Promise<BulkJob[]> {
  const rows: BulkJobRow[] = await unended(scope)
    .where((of) => of.whereNull('webhook_id').orWhere('webhook_id', webhookId))
    .orderBy('id')
  return rows.map(fromRow)
}

/** Has sending what this webhook missed been begun since then? */
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

/** The account that a job belongs to: for the operator's command line, which names no account. */
export async function findAccountOfBulkJob(sql: Sql, id: string): Promise<string | undefined> {
  const row: { account_id: string } | undefined = await sql('bulk_jobs')
    .where({ id })
    .first('account_id')
  return row?.account_id
}

/** Stops a job until it is resumed; what it has planned stays planned. A paused one stays as it is. Undefined when there is no such job;
 *  throws `Refused` when it has ended. */
export function pauseBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  return change(scope, id, { from: ['running', 'paused'], columns: { state: 'paused' } }, now)
}

/** Goes on where the job was paused. A running one stays as it is. Throws `DeliveryRefused` when its webhook cannot get anything. */
export async function resumeBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  const job = await findBulkJob(scope, id)
  if (job?.state === 'paused') await assertEnabled(scope, job.webhookId)
  const resumed = await change(
    scope,
    id,
    { from: ['running', 'paused'], columns: { state: 'running', state_reason: null } },
    now,
  )
  if (resumed) scope.trx.announce(JOBS_DUE)
  return resumed
}

/** Ends a job; what it has planned stays planned. A cancelled one stays as it is. Throws `Refused` when it is completed. */
export function cancelBulkJob(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<BulkJob | undefined> {
  const columns = {
    state: 'cancelled',
    ended_at: scope.sql.raw('coalesce(ended_at, ?)', [now.getTime()]),
  }
  return change(scope, id, { from: ['running', 'paused', 'cancelled'], columns }, now)
}

interface Change {
  from: BulkState[]
  columns: Record<string, unknown>
}

async function change(
  scope: WriteScope,
  id: string,
  { from, columns }: Change,
  now: Date,
): Promise<BulkJob | undefined> {
  const [row]: BulkJobRow[] = await scope
    .rows('bulk_jobs')
    .where({ id })
    .whereIn('state', from)
    .update({ ...columns, updated_at: now.getTime() })
    .returning('*')
  if (row) return fromRow(row)
  const ended = await findBulkJob(scope, id)
  if (ended) throw new Refused(`Bulk job ${id} is ${ended.state}.`)
  return undefined
}

const DUE_AT_ONCE = 100

export async function listRunningBulkJobIds(db: Db): Promise<string[]> {
  // Word for word as in the index.
  const rows: { id: string }[] = await db
    .read('bulk_jobs')
    .whereRaw("state = 'running'")
    .orderBy('id')
    .limit(DUE_AT_ONCE)
    .select('id')
  return rows.map(({ id }) => id)
}

export async function findRunningBulkJob(db: Db, id: string): Promise<RunningBulkJob | undefined> {
  const row: BulkJobRow | undefined = await db
    .read('bulk_jobs')
    .where({ id, state: 'running' })
    .first()
  return row && fromRow(row)
}

/** Holds the job for this transaction. False when it no longer runs, or somebody else has done its next batch. */
export async function lockBulkJob(
  trx: Trx,
  { id, stage, cursor }: RunningBulkJob,
): Promise<boolean> {
  const query = trx.sql('bulk_jobs').where({ id, state: 'running', stage, cursor }).select('id')
  const rows = await (trx.dialect === 'postgres' ? query.forUpdate() : query)
  return rows.length > 0
}

/** Notes a batch that was done, of a locked job. `next` as of a `BulkBatch`. */
export async function storeProgress(
  trx: Trx,
  job: RunningBulkJob,
  { done, nextAt, next }: { done: number; nextAt: number; next: BulkPlace | null },
  now: Date,
): Promise<void> {
  const doneByNow = job.done + done
  const ended = {
    state: 'completed',
    ended_at: now.getTime(),
    skipped: Math.max(0, job.total - doneByNow),
  }
  await trx
    .sql('bulk_jobs')
    .where({ id: job.id })
    .update({ done: doneByNow, next_at: nextAt, updated_at: now.getTime(), ...(next ?? ended) })
}

/** Pauses or cancels a locked job whose webhook can get nothing. */
export async function storeHindrance(
  trx: Trx,
  id: string,
  reason: NonNullable<BulkJob['stateReason']>,
  now: Date,
): Promise<void> {
  const state =
    reason === 'webhook_deleted'
      ? { state: 'cancelled', ended_at: now.getTime() }
      : { state: 'paused' }
  await trx
    .sql('bulk_jobs')
    .where({ id })
    .update({ ...state, state_reason: reason, updated_at: now.getTime() })
}
