/** How the file of an export is written and removed: leases, progress and chunks. */
import type { Knex } from 'knex'
import type { Db } from './database/open.ts'
import type { Sql } from './database/statements.ts'
import { transaction } from './database/transaction.ts'
import type { Export, ExportRow, ExportSelection } from './exports.ts'
import { lowestIdAt } from './ids.ts'
import { UNFINISHED_EXPORTS } from './index-predicates.ts'
import { daysBefore, type RemovalRun, type RemovedRows, removeRows } from './removal-run.ts'
import { DAY_MS, HOUR_MS } from './time-units.ts'

/** Tries per export. A try that a stop of the service interrupts does not count. */
export const MAX_TRIES = 3
const LEASE_MS = 60_000
/** The contract promises files for this long. */
export const EXPORT_FILE_DAYS = 7

/** An export that this process writes. When the lease has expired, another process may lease the
 *  export. That increments `tries`, so that this process loses its lease. */
export interface ExportLease extends ExportSelection {
  id: string
  accountId: string
  format: Export['format']
  /** Including the try of this lease. */
  tries: number
}

/** Another process has leased the export, or it was deleted. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

const MAX_LISTED_DUE = 100

/** The oldest unfinished export of each account, if it is due: it is new, its next try is due, or a
 *  killed process has left it. One export per account, so that the accounts take turns, and one
 *  file of an account grows at a time. */
export async function listDueExportIds(db: Db, now: Date): Promise<string[]> {
  const rows: { id: string }[] = await db
    .read('exports')
    .whereRaw(UNFINISHED_EXPORTS)
    .where(whereDue(now.getTime()))
    .whereNotExists(
      db
        .read('exports as older')
        .whereRaw('older.account_id = exports.account_id and older.id < exports.id')
        .whereRaw(`older.${UNFINISHED_EXPORTS}`),
    )
    .orderBy('id')
    .limit(MAX_LISTED_DUE)
    .select('id')
  return rows.map(({ id }) => id)
}

/** Matches exports that have no lease and do not wait for another try: `lease_expires_at` is the
 *  end of the lease, or the time of the next try. A time more than two lease durations ahead is
 *  from a clock that was ahead, and does not count. */
function whereDue(now: number): Knex.QueryCallback {
  return (exports) =>
    exports
      .whereNull('lease_expires_at')
      .orWhere('lease_expires_at', '<=', now)
      .orWhere('lease_expires_at', '>', now + 2 * LEASE_MS)
}

/** Undefined: the export is not due, or another process has leased it. */
export async function leaseExport(
  sql: Sql,
  id: string,
  now: Date,
): Promise<ExportLease | undefined> {
  const at = now.getTime()
  const [row]: (ExportRow & { account_id: string; tries: number })[] = await sql('exports')
    .where({ id })
    .whereRaw(UNFINISHED_EXPORTS)
    .where(whereDue(at))
    .update({
      status: 'processing',
      tries: sql.raw('tries + 1'),
      lease_expires_at: at + LEASE_MS,
      row_count: 0,
      updated_at: at,
    })
    .returning('*')
  if (row === undefined) return undefined
  const { account_id, resource, format, filters, tries } = row
  return { id, accountId: account_id, resource, format, filters: JSON.parse(filters), tries }
}

/** Updates the export. Throws `LeaseLost`. Every other write of a try shares a transaction with
 *  such an update, so that a process without the lease writes nothing. */
async function updateLeased(
  sql: Sql,
  { id, tries }: ExportLease,
  changes: Record<string, unknown>,
): Promise<void> {
  const changed = await sql('exports').where({ id, tries, status: 'processing' }).update(changes)
  if (changed === 0) throw new LeaseLost()
}

/** Renews the lease and stores the progress. Throws `LeaseLost`. */
export function renewLease(
  sql: Sql,
  lease: ExportLease,
  rowCount: number,
  now: Date,
): Promise<void> {
  const at = now.getTime()
  return updateLeased(sql, lease, {
    row_count: rowCount,
    lease_expires_at: at + LEASE_MS,
    updated_at: at,
  })
}

export async function insertChunk(
  sql: Sql,
  { id }: ExportLease,
  position: number,
  bytes: Buffer,
): Promise<void> {
  await sql('export_chunks').insert({ export_id: id, position, bytes })
}

export interface FinishedFile {
  rowCount: number
  byteSize: number
  /** Lowercase hexadecimal. */
  sha256: string
}

export function completeExport(
  sql: Sql,
  lease: ExportLease,
  { rowCount, byteSize, sha256 }: FinishedFile,
  now: Date,
): Promise<void> {
  const at = now.getTime()
  return updateLeased(sql, lease, {
    status: 'completed',
    row_count: rowCount,
    byte_size: byteSize,
    sha256,
    lease_expires_at: null,
    completed_at: at,
    expires_at: at + EXPORT_FILE_DAYS * DAY_MS,
    updated_at: at,
  })
}

/** `error` is a sentence for users. */
export function failExport(sql: Sql, lease: ExportLease, error: string, now: Date): Promise<void> {
  return updateLeased(sql, lease, {
    status: 'failed',
    row_count: null,
    error,
    lease_expires_at: null,
    updated_at: now.getTime(),
  })
}

/** Queues the export again. `dueAt`: the earliest time of the next try. Without it, the export is
 *  due now and this try does not count. */
export function releaseExport(
  sql: Sql,
  lease: ExportLease,
  now: Date,
  dueAt?: Date,
): Promise<void> {
  return updateLeased(sql, lease, {
    status: 'queued',
    tries: dueAt === undefined ? lease.tries - 1 : lease.tries,
    row_count: null,
    lease_expires_at: dueAt?.getTime() ?? null,
    updated_at: now.getTime(),
  })
}

/** 16 MiB per transaction. */
const DELETED_CHUNKS_PER_BATCH = 64

async function deleteChunkBatch(sql: Sql, exportId: string): Promise<number> {
  const batch = sql('export_chunks')
    .select('position')
    .where({ export_id: exportId })
    .orderBy('position')
    .limit(DELETED_CHUNKS_PER_BATCH)
  return sql('export_chunks').where({ export_id: exportId }).whereIn('position', batch).delete()
}

/** Deletes the chunks of this and earlier tries. Throws `LeaseLost`. */
export async function deleteLeasedChunks(
  db: Db,
  lease: ExportLease,
  now: () => Date,
): Promise<void> {
  let deleted: number
  do {
    deleted = await transaction(db, async ({ sql }) => {
      await renewLease(sql, lease, 0, now())
      return deleteChunkBatch(sql, lease.id)
    })
  } while (deleted === DELETED_CHUNKS_PER_BATCH)
}

/** Time for downloads that began before the file expired. */
const REMOVAL_DELAY_MS = HOUR_MS
const MAX_REMOVED_FILES = 100

/** Removes files that expired more than an hour ago. The exports stay. */
export async function removeExpiredFiles(run: RemovalRun): Promise<void> {
  const { db, batch } = run
  const expired: { id: string }[] = await db
    .read('exports')
    .whereNull('file_removed_at')
    .where('expires_at', '<=', run.time.expiredUntil(EXPORT_FILE_DAYS * DAY_MS, REMOVAL_DELAY_MS))
    .orderBy('expires_at')
    .limit(MAX_REMOVED_FILES)
    .select('id')
  for (const { id } of expired) {
    let removed: RemovedRows | undefined
    do {
      removed = await batch(async ({ sql }) => {
        const chunks = await deleteChunkBatch(sql, id)
        if (chunks < DELETED_CHUNKS_PER_BATCH)
          await sql('exports').where({ id }).update({ file_removed_at: run.time.now })
        return { export_chunks: chunks }
      })
    } while (removed?.export_chunks === DELETED_CHUNKS_PER_BATCH)
  }
}

/** Removes old finished exports whose file is removed, or that never had a file. */
export function removeOldExports(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.exports)
  return removeRows(run, {
    table: 'exports',
    key: ['id'],
    // IDs are in the order of creation, so the first condition finds the rows in the primary key.
    condition: (rows) =>
      rows
        .where('id', '<', lowestIdAt(until))
        .whereRaw(`not (${UNFINISHED_EXPORTS})`)
        .where('updated_at', '<', until)
        .where((hasNoFile) => hasNoFile.whereNull('expires_at').orWhereNotNull('file_removed_at')),
  })
}
