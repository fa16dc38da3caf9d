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

/** Throws InvalidInput for filters that the list of the resource does not take. */
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

/** The file, a chunk at a time: no more is in memory. Throws when a part of it is gone. */
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

/** What the file of each resource holds: the records of which list, with which fields. So many at once that the largest take some MiB. */
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

/** The filters as the resource's list takes them, lists split. Throws InvalidInput, keyed `filters.<name>`. */
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

/** The fields of the resource's records, in the order of the contract. */
export function exportFields(resource: ExportResource): string[] {
  return Object.keys(contract.components.schemas[CONTENTS[resource].record].properties)
}

/** Not more often is it tried to make an export, interruptions by an orderly stop not counted. */
export const MAX_TRIES = 3
const LEASE_MS = 60_000
const KEPT_MS = 7 * 24 * 60 * 60_000

/** An export that this process is making, while the lease lasts. A claim by another counts a try more, and ends this one. */
export interface ExportClaim {
  id: string
  accountId: string
  resource: ExportResource
  format: Export['format']
  filters: ExportFilters
  /** This one included. */
  tries: number
}

/** Somebody else is making the export by now, or it is gone. */
export class ClaimLost extends Error {
  override name = 'ClaimLost'
}

const DUE_AT_ONCE = 100

/** Exports that nobody is making and somebody should: new ones, put off ones whose time has come, and those of processes that died. */
export async function listDueExportIds(db: Db, now: Date): Promise<string[]> {
  const rows: { id: string }[] = await db
    .read('exports')
    .whereRaw(UNFINISHED_EXPORTS)
    .where((free) =>
      free.whereNull('lease_expires_at').orWhere('lease_expires_at', '<=', now.getTime()),
    )
    .orderBy('id')
    .limit(DUE_AT_ONCE)
    .select('id')
  return rows.map(({ id }) => id)
}

/** Undefined when it is not due any more: of several that ask, one gets it. */
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

/** Throws ClaimLost unless the claim still holds. Everything that a maker writes is in one transaction with this. */
async function updateClaimed(
  sql: Sql,
  { id, tries }: ExportClaim,
  changes: Record<string, unknown>,
): Promise<void> {
  const changed = await sql('exports').where({ id, tries, status: 'processing' }).update(changes)
  if (changed === 0) throw new ClaimLost()
}

/** The records that the export is to hold. No transaction is open between two batches. Throws InvalidInput when the contract no longer
 *  takes the filters. */
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

/** Keeps the claim for a minute from now, and says how far it is. */
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
  /** Lower-case hexadecimal. */
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
    expires_at: at + KEPT_MS,
    updated_at: at,
  })
}

/** `error` is a sentence for the people who requested it. */
export function failExport(sql: Sql, claim: ExportClaim, error: string, now: Date): Promise<void> {
  return updateClaimed(sql, claim, {
    status: 'failed',
    row_count: null,
    error,
    lease_expires_at: null,
    updated_at: now.getTime(),
  })
}

/** Queues the export again. `dueAt`: not before; absent: at once, and as if it had not been tried. */
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

/** 16 MiB: each batch is a short transaction. */
const CHUNKS_AT_ONCE = 64

async function deleteSomeChunks(sql: Sql, exportId: string): Promise<number> {
  const some = sql('export_chunks')
    .select('position')
    .where({ export_id: exportId })
    .orderBy('position')
    .limit(CHUNKS_AT_ONCE)
  return sql('export_chunks').where({ export_id: exportId }).whereIn('position', some).delete()
}

/** Removes what an earlier try has left, or this one. Throws ClaimLost. */
export async function deleteClaimedChunks(
  db: Db,
  claim: ExportClaim,
  now: () => Date,
): Promise<void> {
  for (let deleted = CHUNKS_AT_ONCE; deleted === CHUNKS_AT_ONCE; ) {
    deleted = await transaction(db, async ({ sql }) => {
      await renewClaim(sql, claim, 0, now())
      return deleteSomeChunks(sql, claim.id)
    })
  }
}

/** Downloads that began before a file expired have this long to finish. */
const REMOVAL_DELAY_MS = 60 * 60_000
const FILES_AT_ONCE = 100

/** Removes the files of exports that expired an hour ago. Their records stay. */
export async function deleteExpiredFiles(db: Db, now: number): Promise<void> {
  const expired: { id: string }[] = await db
    .read('exports')
    .whereNull('file_removed_at')
    .where('expires_at', '<=', now - REMOVAL_DELAY_MS)
    .orderBy('expires_at')
    .limit(FILES_AT_ONCE)
    .select('id')
  for (const { id } of expired) {
    while ((await deleteSomeChunks(db.write, id)) === CHUNKS_AT_ONCE);
    await db.write('exports').where({ id }).update({ file_removed_at: now })
  }
}
