import { StatusError } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { AuditTarget } from './audit-log.ts'
import type { Origin, Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { endJob, FILE_DAYS, type FileJobLease, leaseRow, renewLease } from './file-jobs.ts'
import { lowestIdAt } from './ids.ts'
import { UNFINISHED_FILE_JOBS } from './index-predicates.ts'
import { type Listing, toNullableTimestamp, toTimestamp } from './list.ts'
import { daysBefore, type RemovalRun, removeRows } from './removal-run.ts'
import { DAY_MS, HOUR_MS } from './time-units.ts'
import { findUser, type Module, type Permission } from './users.ts'

export type Import = components['schemas']['Import']
/** What becomes of a row. */
export type Outcome = 'created' | 'updated' | 'unchanged' | 'refused'
export type Counts = Record<Outcome, number>

export interface ImportSelection {
  resource: Import['resource']
  mode: Import['mode']
  format: Import['format']
  isDryRun: boolean
  /** The fields of the columns, instead of those in the header line. `-` leaves a column out. */
  columns: string[] | null
}

export interface ImportRow extends Record<`${Outcome}_count`, number> {
  id: string
  user_id: string
  api_key_id: string | null
  /** The IP address and the ID of the request that started the import. Null: an earlier version received it. */
  ip: string | null
  request_id: string | null
  resource: Import['resource']
  mode: Import['mode']
  format: Import['format']
  dry_run: boolean | number
  /** JSON. */
  columns: string | null
  status: Import['status']
  row_count: number | null
  byte_size: number
  error: string | null
  completed_at: number | null
  expires_at: number | null
  created_at: number
  updated_at: number
}

function fromRow(row: ImportRow): Import {
  return {
    id: row.id,
    resource: row.resource,
    mode: row.mode,
    format: row.format,
    dry_run: Boolean(row.dry_run),
    status: row.status,
    row_count: row.row_count,
    created_count: row.created_count,
    updated_count: row.updated_count,
    unchanged_count: row.unchanged_count,
    refused_count: row.refused_count,
    byte_size: Number(row.byte_size),
    error: row.error,
    completed_at: toNullableTimestamp(row.completed_at),
    expires_at: toNullableTimestamp(row.expires_at),
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const importListing: Listing<ImportRow, Import> = {
  table: 'imports',
  fromRow,
  nullable: ['completed_at'],
}

export function importTarget({ id, resource, format }: Import): AuditTarget {
  return { type: 'import', id, name: `${resource}.${format}` }
}

/** Throws 403 for payments unless the user has the Finance permission. */
export function assertImportPermitted(
  { resource }: Pick<Import, 'resource'>,
  { finance }: { finance: Permission },
  needed: 'read' | 'write',
): void {
  if (resource !== 'payments' || finance === 'write' || finance === needed) return
  const message = `The owner of this API key has no Finance permission to ${needed} payments.`
  throw new StatusError(403, message)
}

/** A file in the rows of `import_chunks`. */
export type ImportFile = 'upload' | 'errors'

interface NewImport extends ImportSelection {
  /** The ID under which the upload is stored. */
  id: string
  userId: string
  apiKeyId: string | null
  byteSize: number
}

export async function insertImport(
  scope: WriteScope,
  input: NewImport,
  now: Date,
): Promise<Import> {
  const at = now.getTime()
  const row: ImportRow = {
    id: input.id,
    user_id: input.userId,
    api_key_id: input.apiKeyId,
    ip: scope.origin?.ip ?? null,
    request_id: scope.origin?.requestId ?? null,
    resource: input.resource,
    mode: input.mode,
    format: input.format,
    dry_run: input.isDryRun,
    columns: input.columns && JSON.stringify(input.columns),
    status: 'queued',
    row_count: null,
    created_count: 0,
    updated_count: 0,
    unchanged_count: 0,
    refused_count: 0,
    byte_size: input.byteSize,
    error: null,
    completed_at: null,
    expires_at: null,
    created_at: at,
    updated_at: at,
  }
  await scope.insert('imports', row)
  return fromRow(row)
}

/** Deletes the import. Its files are removed later: see `removeImportChunks`. A process that does the
 *  import loses its lease with its next write, and stops. */
export async function deleteImportRow(scope: Scope, id: string): Promise<void> {
  await scope.rows('imports').where({ id }).delete()
}

export async function insertImportChunk(
  { sql, accountId }: Scope,
  { importId, kind, position }: { importId: string; kind: ImportFile; position: number },
  bytes: Buffer,
): Promise<void> {
  const row = { account_id: accountId, import_id: importId, kind, position, bytes }
  await sql('import_chunks').insert(row)
}

/** Reads a file in chunks, one in memory at a time. */
export async function* readImportFile(
  scope: Scope,
  importId: string,
  kind: ImportFile,
): AsyncGenerator<Buffer> {
  for (let last = -1; ; ) {
    const chunk: { position: number; bytes: Buffer } | undefined = await scope
      .rows('import_chunks')
      .where({ import_id: importId, kind })
      .where('position', '>', last)
      .orderBy('position')
      .first('position', 'bytes')
    if (chunk === undefined) return
    yield chunk.bytes
    last = chunk.position
  }
}

/** Undefined: there is no such upload, or it is removed. */
export async function findUpload(
  scope: Scope,
  id: string,
): Promise<{ id: string; byteSize: number } | undefined> {
  const [row]: { bytes: number | null }[] = await scope
    .rows('import_chunks')
    .where({ import_id: id, kind: 'upload' })
    .sum({ bytes: scope.sql.raw('length(bytes)') })
  return row?.bytes ? { id, byteSize: Number(row.bytes) } : undefined
}

/** Whether an import has the upload, such as a dry run. */
export async function isUploadTaken(scope: Scope, id: string): Promise<boolean> {
  return (await scope.rows('imports').where({ id }).first('id')) !== undefined
}

/** The fields that an import's request named for the columns. */
export async function findImportedColumns(scope: Scope, id: string): Promise<string[] | undefined> {
  const row: { columns: string | null } | undefined = await scope
    .rows('imports')
    .where({ id })
    .first('columns')
  return row?.columns ? JSON.parse(row.columns) : undefined
}

export async function deleteUpload(scope: Scope, importId: string): Promise<void> {
  await scope.rows('import_chunks').where({ import_id: importId, kind: 'upload' }).delete()
}

export interface ImportLease extends FileJobLease, ImportSelection {
  userId: string
  apiKeyId: string | null
  origin: Origin | undefined
  /** Null: the rows are not counted yet. */
  rowCount: number | null
  counts: Counts
}

/** Undefined: the import is not due, or another process has leased it. */
export async function leaseImport(
  sql: Sql,
  id: string,
  now: Date,
): Promise<ImportLease | undefined> {
  const table = 'imports'
  const row = await leaseRow<ImportRow & { tries_before: number }>(sql, { table, id }, now)
  if (row === undefined) return undefined
  return {
    table,
    id,
    accountId: row.account_id,
    tries: row.tries,
    triesBefore: row.tries_before,
    userId: row.user_id,
    apiKeyId: row.api_key_id,
    origin:
      row.ip === null || row.request_id === null
        ? undefined
        : { ip: row.ip, requestId: row.request_id },
    resource: row.resource,
    mode: row.mode,
    format: row.format,
    isDryRun: Boolean(row.dry_run),
    columns: row.columns === null ? null : JSON.parse(row.columns),
    rowCount: row.row_count,
    counts: {
      created: row.created_count,
      updated: row.updated_count,
      unchanged: row.unchanged_count,
      refused: row.refused_count,
    },
  }
}

/** The permissions of the user on whose behalf the import runs. Undefined: the user may no longer
 *  import. A key may import all resources but payments without a permission; a user of the console needs
 *  the permission for the module. */
export async function findImporter(
  scope: Scope,
  { userId, apiKeyId, resource }: ImportLease,
  module: Module,
): Promise<{ finance: Permission } | undefined> {
  const user = await findUser(scope, userId)
  const isSuspended = await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .whereNotNull('suspended_at')
    .first('id')
  if (user?.status !== 'active' || isSuspended) return undefined
  const { finance } = user.permissions
  if (apiKeyId === null) return user.permissions[module] === 'write' ? { finance } : undefined
  const isUsable = await scope
    .rows('api_keys')
    .where({ id: apiKeyId, access_level: 'full_access' })
    .whereNull('revoked_at')
    .first('id')
  const isPermitted = resource !== 'payments' || finance === 'write'
  return isUsable && isPermitted ? { finance } : undefined
}

/** What one transaction of an import has done. */
export interface Progress {
  rowCount: number
  counts: Counts
  /** A piece of the file of refused rows. */
  refusals: Buffer
}

/** Stores the progress and renews the lease. A further try goes on after this progress. Throws
 *  `LeaseLost`. */
export async function storeProgress(
  scope: Scope,
  lease: ImportLease,
  { rowCount, counts, refusals }: Progress,
  now: Date,
): Promise<void> {
  const changes = {
    row_count: rowCount,
    created_count: counts.created,
    updated_count: counts.updated,
    unchanged_count: counts.unchanged,
    refused_count: counts.refused,
    tries_before: lease.tries,
  }
  await renewLease(scope.sql, lease, changes, now)
  if (refusals.length === 0) return
  const piece = { importId: lease.id, kind: 'errors' as const, position: doneRows(counts) }
  await insertImportChunk(scope, piece, refusals)
}

export function doneRows(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** `error` is a sentence for users. Without it, the import is completed. */
export function endImport(sql: Sql, lease: ImportLease, now: Date, error?: string): Promise<void> {
  const at = now.getTime()
  const changes =
    error === undefined
      ? { status: 'completed' as const, completed_at: at }
      : { status: 'failed' as const, error }
  return endJob(sql, lease, { ...changes, expires_at: at + FILE_DAYS * DAY_MS }, now)
}

/** Time for requests and downloads that are in progress. */
const REMOVAL_DELAY_MS = HOUR_MS
/** 16 MiB per transaction. */
const REMOVED_CHUNKS_PER_BATCH = 64

/** Removes files that expired more than an hour ago, uploads of imports that have ended, and the files
 *  of imports that do not exist: they were deleted, or their request failed. */
export async function removeImportChunks(run: RemovalRun): Promise<void> {
  await run.batch(async ({ sql }) => {
    await sql('imports')
      .whereNull('file_removed_at')
      .where('expires_at', '<=', run.time.expiredUntil(FILE_DAYS * DAY_MS, REMOVAL_DELAY_MS))
      .update({ file_removed_at: run.time.now })
    return {}
  })
  const until = run.time.createdBefore(REMOVAL_DELAY_MS)
  await removeRows(run, {
    table: 'import_chunks',
    key: ['account_id', 'import_id', 'kind', 'position'],
    condition: (rows) =>
      rows.where('import_id', '<', lowestIdAt(until)).whereRaw(`not exists (
        select 1 from imports
        where imports.account_id = import_chunks.account_id and imports.id = import_chunks.import_id
          and file_removed_at is null
          and (kind = 'errors' or dry_run or ${UNFINISHED_FILE_JOBS})
      )`),
    batchRows: REMOVED_CHUNKS_PER_BATCH,
  })
}

/** Removes imports that ended long ago. */
export function removeOldImports(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.exports)
  return removeRows(run, {
    table: 'imports',
    key: ['account_id', 'id'],
    // IDs are in the order of creation.
    condition: (rows) =>
      rows
        .where('id', '<', lowestIdAt(until))
        .whereRaw(`not (${UNFINISHED_FILE_JOBS})`)
        .where('updated_at', '<', until),
  })
}
