import { InvalidInput, StatusError } from '../errors.ts'
import contract from '../generated/openapi.json' with { type: 'json' }
import type { components } from '../generated/openapi.ts'
import { type Body, operations, type QueryParameter } from '../generated/operations.ts'
import { params } from '../generated/validators.js'
import { assertValid, convertParameter } from '../validation.ts'
import type { AuditTarget } from './audit-log.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { newId } from './ids.ts'
import { jobApplicationListing } from './job-applications.ts'
import { jobListing } from './jobs.ts'
import { eachBatch, type Listing, toNullableTimestamp, toTimestamp } from './list.ts'
import { participantListing } from './participants.ts'
import { paymentListing } from './payments.ts'
import { taskListing } from './tasks.ts'
import type { Permission } from './users.ts'

export type Export = components['schemas']['Export']
type NewExport = Body<'createExport'>
export type ExportResource = Export['resource']
type ExportFilters = Export['filters']

export interface ExportRow {
  id: string
  resource: ExportResource
  format: Export['format']
  /** JSON. */
  filters: string
  /** JSON. */
  columns: string
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
    columns: JSON.parse(row.columns),
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

/** The name is that of the file. Every file system accepts it: `participants-2026-03-02T093000Z.csv`. */
export function exportTarget({ id, resource, format, created_at }: Export): AuditTarget {
  const extension = format.replace(/_raw$/, '')
  const name = `${resource}-${created_at.replace(/:|\.\d+/g, '')}.${extension}`
  return { type: 'export', id, name }
}

/** Throws 403 for an export of payments unless the user may read payments. */
export function assertExportPermitted(
  { resource }: Pick<Export, 'resource'>,
  { finance }: { finance: Permission },
): void {
  if (resource === 'payments' && finance === 'none')
    throw new StatusError(
      403,
      'The owner of this API key has no Finance permission to read payments.',
    )
}

export async function insertExport(
  scope: WriteScope,
  { resource, format, filters, columns }: NewExport,
  now: Date,
): Promise<Export> {
  const at = now.getTime()
  const row: ExportRow = {
    id: newId(),
    resource,
    format,
    filters: JSON.stringify(filters),
    columns: JSON.stringify(columns),
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
  await scope.insert('exports', row)
  return fromRow(row)
}

/** Deletes the export with its file. A process that is writing the file loses its lease with its
 *  next write, and stops. */
export async function deleteExportRow(scope: Scope, id: string): Promise<void> {
  await scope.rows('exports').where({ id }).delete()
}

/** Reads the file in chunks, one in memory at a time. Throws when a chunk is missing. */
export async function* readExportFile(
  scope: Scope,
  { id, byte_size }: Export,
): AsyncGenerator<Buffer> {
  for (let position = 0, read = 0; read < (byte_size ?? 0); position++) {
    const chunk: { bytes: Buffer } | undefined = await scope
      .rows('export_chunks')
      .where({ export_id: id, position })
      .first('bytes')
    if (chunk === undefined) throw new Error(`Chunk ${position} of export ${id} is missing`)
    yield chunk.bytes
    read += chunk.bytes.length
  }
}

/** By resource: its list operation and its schema. `batchRows` keeps a batch of the largest records
 *  within 4 MiB. */
const CONTENTS = {
  participants: {
    list: 'listParticipants',
    record: 'Participant',
    listing: participantListing,
    batchRows: 100,
  },
  tasks: { list: 'listTasks', record: 'Task', listing: taskListing, batchRows: 100 },
  jobs: { list: 'listJobs', record: 'Job', listing: jobListing, batchRows: 25 },
  job_applications: {
    list: 'listJobApplications',
    record: 'JobApplication',
    listing: jobApplicationListing,
    batchRows: 25,
  },
  payments: { list: 'listPayments', record: 'Payment', listing: paymentListing, batchRows: 250 },
} as const

/** Throws `InvalidInput` for filters that the list operation of the resource does not accept. */
export function assertExportFilters({
  resource,
  filters,
}: Pick<NewExport, 'resource' | 'filters'>): void {
  readFilters(resource, filters)
}

/** Converts and validates the filters like a query of the list operation. Throws `InvalidInput`,
 *  keyed `filters.<name>`. */
function readFilters(resource: ExportResource, filters: ExportFilters): Record<string, unknown> {
  const { list } = CONTENTS[resource]
  const parameters: Record<string, QueryParameter> = operations[list].query
  const values = Object.entries(filters).map(([name, text]): [string, unknown] => [
    name,
    convertParameter(text, parameters[`filter[${name}]`]),
  ])
  const query = Object.fromEntries(values.map(([name, value]) => [`filter[${name}]`, value]))
  assertValid(params[list].query, query, ([parameter = '']) =>
    parameter.replace(/^filter\[(.*)\]$/s, 'filters.$1'),
  )
  return Object.fromEntries(values)
}

/** Throws `InvalidInput` for columns that are no fields of the resource, and for columns of JSON. */
export function assertExportColumns({ resource, format, columns = [] }: NewExport): void {
  if (format === 'json' && columns.length > 0)
    throw new InvalidInput({ columns: ['cannot be chosen with the format json.'] })
  const fields = listFields(resource)
  const errors = [...columns.entries()].flatMap(([index, name]) =>
    fields.includes(name) ? [] : [[`columns.${index}`, [`must be one of ${fields.join(', ')}.`]]],
  )
  if (errors.length > 0) throw new InvalidInput(Object.fromEntries(errors))
}

/** The fields of the records, in the order of the contract, without those that only `include` adds. */
function listFields(resource: ExportResource): string[] {
  const { properties, required } = contract.components.schemas[CONTENTS[resource].record]
  return Object.keys(properties).filter((name) => required.includes(name))
}

/** The fields in the file of an export. */
export function exportFields({
  resource,
  columns,
}: Pick<Export, 'resource' | 'columns'>): string[] {
  return columns.length > 0 ? columns : listFields(resource)
}

export interface ExportSelection {
  resource: ExportResource
  filters: ExportFilters
  columns: string[]
}

/** The records of the export, in batches without an open transaction between them. Throws
 *  `InvalidInput` when the contract no longer accepts the filters. */
export function exportedRecords(
  scope: Scope,
  { resource, filters }: Pick<ExportSelection, 'resource' | 'filters'>,
): AsyncGenerator<object[]> {
  const { listing, batchRows } = CONTENTS[resource]
  return eachBatch(
    scope,
    listing as Listing<{ id: string }, object>,
    readFilters(resource, filters),
    batchRows,
  )
}
