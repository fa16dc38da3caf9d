import { v7 as uuidv7 } from 'uuid'
import contract from '../generated/openapi.json' with { type: 'json' }
import type { components } from '../generated/openapi.ts'
import { type Body, operations, type QueryParameter } from '../generated/operations.ts'
import { params } from '../generated/validators.js'
import { assertValid, convertParameter } from '../operations/validation.ts'
import type { Db } from './database/open.ts'
import { accountScope, type Scope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { transaction } from './database/transaction.ts'
import { UNFINISHED_EXPORTS } from './index-predicates.ts'
import { jobApplicationListing } from './job-applications.ts'
import { jobListing } from './jobs.ts'
import { eachBatch, type Listing, toNullableTimestamp, toTimestamp } from './list.ts'
import { participantListing } from './participants.ts'
import { paymentListing } from './payments.ts'
import { findRow } from './references.ts'
import { taskListing } from './tasks.ts'

export type Export = components['schemas']['Export']
export type NewExport = Body<'createExport'>
export type ExportResource = Export['resource']
export type ExportFilters = Export['filters']

interface ExportRow {
  id: string
  resource: ExportResource
  format: Export['format']
  /** JSON. */
  filters: string
  status: Export['status']
  row_count: number | null
  byte_size: number | null
  sha256: string | null
  error: string | null
  completed_at: number | null
  expires_at: number | null
  created_at: number
  updated_at: number
}

function fromRow(row: ExportRow): Export {
  return {
    id: row.id,
    resource: row.resource,
    format: row.format,
    filters: JSON.parse(row.filters),
    status: row.status,
    row_count: row.row_count,
    byte_size: row.byte_size,
    sha256: row.sha256,
    error: row.error,
    completed_at: toNullableTimestamp(row.completed_at),
    expires_at: toNullableTimestamp(row.expires_at),
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const exportListing: Listing<ExportRow, Export> = {
  table: 'exports',
  fromRow,
  nullable: ['completed_at'],
}

export async function findExport(scope: Scope, id: string): Promise<Export | undefined> {
  const row = await findRow<ExportRow>(scope, 'exports', id)
  return row && fromRow(row)
}

/** Throws `InvalidInput` for filters that the list operation of the resource does not declare. */
export async function insertExport(
  scope: Scope,
  { resource, format, filters }: NewExport,
  now: Date,
): Promise<Export> {
  readFilters(resource, filters)
  const at = now.getTime()
  const row: ExportRow = {
    id: uuidv7(),
    resource,
    format,
    filters: JSON.stringify(filters),
    status: 'queued',
    row_count: null,
    byte_size: null,
    sha256: null,
    error: null,
    completed_at: null,
    expires_at: null,
    created_at: at,
    updated_at: at,
  }
  await scope.insert('exports', { ...row })
  return fromRow(row)
}

/** Reads the file in chunks, one in memory at a time. Throws when a chunk is missing. */
export async function* readFile(scope: Scope, { id, byte_size }: Export): AsyncGenerator<Buffer> {
  for (let position = 0, read = 0; read < (byte_size ?? 0); position++) {
    const chunk: { bytes: Buffer } | undefined = await scope
      .rows('exports')
      .join('export_chunks', 'export_chunks.export_id', 'exports.id')
      .where({ 'exports.id': id, 'export_chunks.position': position })
      .first('export_chunks.bytes')
    if (chunk === undefined) throw new Error(`Chunk ${position} of export ${id} is missing`)
    yield chunk.bytes
    read += chunk.bytes.length
  }
}

/** By resource: its list operation and schema, and a batch size that keeps the largest records to a few
 *  MiB. */
const CONTENTS = {
  participants: {
    list: 'listParticipants',
    record: 'Participant',
    listing: participantListing,
    batchRows: 500,
  },
  tasks: { list: 'listTasks', record: 'Task', listing: taskListing, batchRows: 200 },
  jobs: { list: 'listJobs', record: 'Job', listing: jobListing, batchRows: 25 },
  job_applications: {
    list: 'listJobApplications',
    record: 'JobApplication',
    listing: jobApplicationListing,
    batchRows: 25,
  },
  payments: { list: 'listPayments', record: 'Payment', listing: paymentListing, batchRows: 500 },
} as const

/** Converts and validates the filters like a query of the list operation. Throws `InvalidInput`, keyed
 *  `filters.<name>`. */
function readFilters(resource: ExportResource, filters: ExportFilters): Record<string, unknown> {
  const { list } = CONTENTS[resource]
  const parameters: Record<string, QueryParameter> = operations[list].query
  const values = Object.entries(filters).map(([name, text]): [string, unknown] => [
    name,
    convertParameter(text, parameters[`filter[${name}]`]?.type),
  ])
  const query = Object.fromEntries(values.map(([name, value]) => [`filter[${name}]`, value]))
  assertValid(params[list].query, query, ([parameter = '']) =>
    parameter.replace(/^filter\[(.*)\]$/s, 'filters.$1'),
  )
  return Object.fromEntries(values)
}

/** The fields of the records, in the order of the contract. */
export function exportFields(resource: ExportResource): string[] {
  return Object.keys(contract.components.schemas[CONTENTS[resource].record].properties)
}

/** Runs per export. A run that a stop of the service interrupts does not count. */
export const MAX_TRIES = 3
const LEASE_MS = 60_000
const RETENTION_MS = 7 * 24 * 60 * 60_000

/** An export that this process writes while its lease lasts. A claim by another process increments
 *  `tries`, which ends this claim. */
export interface ExportClaim {
  id: string
  accountId: string
  resource: ExportResource
  format: Export['format']
  filters: ExportFilters
  /** Runs, including this one. */
  tries: number
}

/** Another process has claimed the export, or it was deleted. */
export class ClaimLost extends Error {
  override name = 'ClaimLost'
}

const MAX_LISTED_DUE = 100

/** Unfinished exports without a lease: new ones, ones due for another run, and those of killed processes. */
export async function listDueExportIds(db: Db, now: Date): Promise<string[]> {
  const rows: { id: string }[] = await db
    .read('exports')
    .whereRaw(UNFINISHED_EXPORTS)
    .where((free) =>
      free.whereNull('lease_expires_at').orWhere('lease_expires_at', '<=', now.getTime()),
    )
    .orderBy('id')
    .limit(MAX_LISTED_DUE)
    .select('id')
  return rows.map(({ id }) => id)
}

/** Undefined: the export is not due, or another process has claimed it. */
export async function claimExport(
  sql: Sql,
  id: string,
  now: Date,
): Promise<ExportClaim | undefined> {
  const at = now.getTime()
  const [row]: (ExportRow & { account_id: string; tries: number })[] = await sql('exports')
    .where({ id })
    .whereRaw(UNFINISHED_EXPORTS)
    .where((free) => free.whereNull('lease_expires_at').orWhere('lease_expires_at', '<=', at))
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

/** Throws `ClaimLost` when the claim was lost. Every write of a run is in a transaction with this. */
async function updateClaimed(
  sql: Sql,
  { id, tries }: ExportClaim,
  changes: Record<string, unknown>,
): Promise<void> {
  const changed = await sql('exports').where({ id, tries, status: 'processing' }).update(changes)
  if (changed === 0) throw new ClaimLost()
}

/** The records of the export, in batches without an open transaction between them. Throws `InvalidInput`
 *  when the contract no longer accepts the filters. */
export function exportedRecords(
  db: Db,
  { accountId, resource, filters }: ExportClaim,
): AsyncGenerator<object[]> {
  const { listing: records, batchRows } = CONTENTS[resource]
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  return eachBatch(
    scope,
    records as Listing<{ id: string }, object>,
    readFilters(resource, filters),
    batchRows,
  )
}

/** Renews the lease and stores the progress. Throws `ClaimLost`. */
export function renewClaim(
  sql: Sql,
  claim: ExportClaim,
  rowCount: number,
  now: Date,
): Promise<void> {
  const at = now.getTime()
  return updateClaimed(sql, claim, {
    row_count: rowCount,
    lease_expires_at: at + LEASE_MS,
    updated_at: at,
  })
}

export async function insertChunk(
  sql: Sql,
  { id }: ExportClaim,
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
  claim: ExportClaim,
  { rowCount, byteSize, sha256 }: FinishedFile,
  now: Date,
): Promise<void> {
  const at = now.getTime()
  return updateClaimed(sql, claim, {
    status: 'completed',
    row_count: rowCount,
    byte_size: byteSize,
    sha256,
    lease_expires_at: null,
    completed_at: at,
    expires_at: at + RETENTION_MS,
    updated_at: at,
  })
}

/** `error` is a sentence for users. */
export function failExport(sql: Sql, claim: ExportClaim, error: string, now: Date): Promise<void> {
  return updateClaimed(sql, claim, {
    status: 'failed',
    row_count: null,
    error,
    lease_expires_at: null,
    updated_at: now.getTime(),
  })
}

/** Queues the export again. `dueAt`: the earliest time of the next run. Without it, the export is due
 *  now and the run does not count. */
export function releaseExport(
  sql: Sql,
  claim: ExportClaim,
  now: Date,
  dueAt?: Date,
): Promise<void> {
  return updateClaimed(sql, claim, {
    status: 'queued',
    tries: dueAt === undefined ? claim.tries - 1 : claim.tries,
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

/** Deletes the chunks of this and earlier runs. Throws `ClaimLost`. */
export async function deleteClaimedChunks(
  db: Db,
  claim: ExportClaim,
  now: () => Date,
): Promise<void> {
  for (let deleted = DELETED_CHUNKS_PER_BATCH; deleted === DELETED_CHUNKS_PER_BATCH; ) {
    deleted = await transaction(db, async ({ sql }) => {
      await renewClaim(sql, claim, 0, now())
      return deleteChunkBatch(sql, claim.id)
    })
  }
}

/** Time for downloads that began before the file expired. */
const REMOVAL_DELAY_MS = 60 * 60_000
const MAX_DELETED_FILES = 100

/** Deletes files that expired more than an hour ago. The exports stay. */
export async function deleteExpiredFiles(db: Db, now: number): Promise<void> {
  const expired: { id: string }[] = await db
    .read('exports')
    .whereNull('file_removed_at')
    .where('expires_at', '<=', now - REMOVAL_DELAY_MS)
    .orderBy('expires_at')
    .limit(MAX_DELETED_FILES)
    .select('id')
  for (const { id } of expired) {
    while ((await deleteChunkBatch(db.write, id)) === DELETED_CHUNKS_PER_BATCH);
    await db.write('exports').where({ id }).update({ file_removed_at: now })
  }
}
