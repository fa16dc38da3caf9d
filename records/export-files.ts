/** How the file of an export is written and removed: progress and chunks. */
import type { Db } from './database/open.ts'
import type { Sql } from './database/statements.ts'
import { transaction } from './database/transaction.ts'
import type { Export, ExportRow, ExportSelection } from './exports.ts'
import { endJob, FILE_DAYS, type FileJobLease, leaseRow, renewLease } from './file-jobs.ts'
import { lowestIdAt } from './ids.ts'
import { UNFINISHED_FILE_JOBS } from './index-predicates.ts'
import { daysBefore, type RemovalRun, type RemovedRows, removeRows } from './removal-run.ts'
import { DAY_MS, HOUR_MS } from './time-units.ts'

/** An export that this process writes. */
export interface ExportLease extends FileJobLease, ExportSelection {
  format: Export['format']
}

/** Undefined: the export is not due, or another process has leased it. */
export async function leaseExport(
  sql: Sql,
  id: string,
  now: Date,
): Promise<ExportLease | undefined> {
  const table = 'exports'
  const row = await leaseRow<ExportRow>(sql, { table, id }, now, { row_count: 0 })
  if (row === undefined) return undefined
  const { account_id: accountId, resource, format, filters, columns, tries } = row
  return {
    table,
    id,
    accountId,
    resource,
    format,
    filters: JSON.parse(filters),
    columns: JSON.parse(columns),
    tries,
    triesBefore: 0,
  }
}

export async function insertChunk(
  sql: Sql,
  { accountId, id }: ExportLease,
  position: number,
  bytes: Buffer,
): Promise<void> {
  await sql('export_chunks').insert({ account_id: accountId, export_id: id, position, bytes })
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
  const changes = {
    status: 'completed' as const,
    row_count: rowCount,
    byte_size: byteSize,
    sha256,
    completed_at: at,
    expires_at: at + FILE_DAYS * DAY_MS,
  }
  return endJob(sql, lease, changes, now)
}

/** `error` is a sentence for users. */
export function failExport(sql: Sql, lease: ExportLease, error: string, now: Date): Promise<void> {
  return endJob(sql, lease, { status: 'failed', row_count: null, error }, now)
}

/** 16 MiB per transaction. */
const DELETED_CHUNKS_PER_BATCH = 64

async function deleteChunkBatch(
  sql: Sql,
  { accountId, id }: Pick<ExportLease, 'accountId' | 'id'>,
): Promise<number> {
  const ofExport = { account_id: accountId, export_id: id }
  const batch = sql('export_chunks')
    .select('position')
    .where(ofExport)
    .orderBy('position')
    .limit(DELETED_CHUNKS_PER_BATCH)
  return sql('export_chunks').where(ofExport).whereIn('position', batch).delete()
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
      await renewLease(sql, lease, { row_count: 0 }, now())
      return deleteChunkBatch(sql, lease)
    })
  } while (deleted === DELETED_CHUNKS_PER_BATCH)
}

/** Time for downloads that began before the file expired. */
const REMOVAL_DELAY_MS = HOUR_MS
const MAX_REMOVED_FILES = 100

/** Removes files that expired more than an hour ago. The exports stay. */
export async function removeExpiredFiles(run: RemovalRun): Promise<void> {
  const { db, batch } = run
  const expired: { accountId: string; id: string }[] = await db
    .read('exports')
    .whereNull('file_removed_at')
    .where('expires_at', '<=', run.time.expiredUntil(FILE_DAYS * DAY_MS, REMOVAL_DELAY_MS))
    .orderBy('expires_at')
    .limit(MAX_REMOVED_FILES)
    .select({ accountId: 'account_id', id: 'id' })
  for (const { accountId, id } of expired) {
    let removed: RemovedRows | undefined
    do {
      removed = await batch(async ({ sql }) => {
        const chunks = await deleteChunkBatch(sql, { accountId, id })
        if (chunks < DELETED_CHUNKS_PER_BATCH)
          await sql('exports')
            .where({ account_id: accountId, id })
            .update({ file_removed_at: run.time.now })
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
    key: ['account_id', 'id'],
    // IDs are in the order of creation.
    condition: (rows) =>
      rows
        .where('id', '<', lowestIdAt(until))
        .whereRaw(`not (${UNFINISHED_FILE_JOBS})`)
        .where('updated_at', '<', until)
        .where((hasNoFile) => hasNoFile.whereNull('expires_at').orWhereNotNull('file_removed_at')),
  })
}
