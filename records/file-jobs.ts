/** Exports and imports are file jobs: a worker leases a job, writes or reads its file, and stores its
 *  progress. */
import type { Knex } from 'knex'
import type { Db } from './database/open.ts'
import type { Sql } from './database/statements.ts'
import { UNFINISHED_FILE_JOBS } from './index-predicates.ts'

export type FileJobTable = 'exports' | 'imports'

/** Tries of a job without progress. A try that a stop of the service interrupts does not count. */
export const MAX_TRIES = 3
const LEASE_MS = 60_000
/** The contract promises files for this long. */
export const FILE_DAYS = 7

/** A job that this process does. When the lease has expired, another process may lease the job. That
 *  increments `tries`, so that this process loses its lease. */
export interface FileJobLease {
  table: FileJobTable
  id: string
  accountId: string
  /** All tries, including that of this lease. */
  tries: number
  /** The tries until the last progress that a further try keeps. */
  triesBefore: number
}

/** Another process has leased the job, or it was deleted. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

const MAX_LISTED_DUE = 100

/** The oldest unfinished job of each account, if it is due: it is new, its next try is due, or a
 *  killed process has left it. One job per account, so that the accounts take turns, and one file of
 *  an account grows at a time. */
export async function listDueIds(db: Db, table: FileJobTable, now: Date): Promise<string[]> {
  const rows: { id: string }[] = await db
    .read(table)
    .whereRaw(UNFINISHED_FILE_JOBS)
    .where(whereDue(now.getTime()))
    .whereNotExists(
      db
        .read(`${table} as older`)
        .whereRaw(`older.account_id = ${table}.account_id and older.id < ${table}.id`)
        .whereRaw(`older.${UNFINISHED_FILE_JOBS}`),
    )
    .orderBy('id')
    .limit(MAX_LISTED_DUE)
    .select('id')
  return rows.map(({ id }) => id)
}

/** Matches jobs that have no lease and do not wait for another try: `lease_expires_at` is the end of
 *  the lease, or the time of the next try. A time more than two lease durations ahead is from a clock
 *  that was ahead, and does not count. */
function whereDue(now: number): Knex.QueryCallback {
  return (jobs) =>
    jobs
      .whereNull('lease_expires_at')
      .orWhere('lease_expires_at', '<=', now)
      .orWhere('lease_expires_at', '>', now + 2 * LEASE_MS)
}

interface LeasedRow {
  account_id: string
  tries: number
}

/** Leases the job and returns its row. Undefined: the job is not due, or another process has leased
 *  it. */
export async function leaseRow<Row>(
  sql: Sql,
  { table, id }: Pick<FileJobLease, 'table' | 'id'>,
  now: Date,
  changes: Record<string, unknown> = {},
): Promise<(Row & LeasedRow) | undefined> {
  const at = now.getTime()
  const [row]: (Row & LeasedRow)[] = await sql(table)
    .where({ id })
    .whereRaw(UNFINISHED_FILE_JOBS)
    .where(whereDue(at))
    .update({
      status: 'processing',
      tries: sql.raw('tries + 1'),
      lease_expires_at: at + LEASE_MS,
      updated_at: at,
      ...changes,
    })
    .returning('*')
  return row
}

/** Updates the job. Throws `LeaseLost`. Every other write of a try shares a transaction with such an
 *  update, so that a process without the lease writes nothing. */
async function updateLeased(
  sql: Sql,
  { table, accountId, id, tries }: FileJobLease,
  changes: Record<string, unknown>,
): Promise<void> {
  const changed = await sql(table)
    .where({ account_id: accountId, id, tries, status: 'processing' })
    .update(changes)
  if (changed === 0) throw new LeaseLost()
}

/** Renews the lease and stores the progress. Throws `LeaseLost`. */
export function renewLease(
  sql: Sql,
  lease: FileJobLease,
  progress: Record<string, unknown>,
  now: Date,
): Promise<void> {
  const at = now.getTime()
  return updateLeased(sql, lease, { ...progress, lease_expires_at: at + LEASE_MS, updated_at: at })
}

/** Ends the job. Throws `LeaseLost`. */
export function endJob(
  sql: Sql,
  lease: FileJobLease,
  changes: Record<string, unknown> & { status: 'completed' | 'failed' },
  now: Date,
): Promise<void> {
  return updateLeased(sql, lease, {
    ...changes,
    lease_expires_at: null,
    updated_at: now.getTime(),
  })
}

/** Queues the job again. `dueAt`: the earliest time of the next try. Without it, the job is due now
 *  and this try does not count. */
export function releaseJob(
  sql: Sql,
  lease: FileJobLease,
  now: Date,
  { dueAt, ...changes }: Record<string, unknown> & { dueAt?: Date } = {},
): Promise<void> {
  return updateLeased(sql, lease, {
    ...changes,
    status: 'queued',
    tries: dueAt === undefined ? lease.tries - 1 : lease.tries,
    lease_expires_at: dueAt?.getTime() ?? null,
    updated_at: now.getTime(),
  })
}
