/** Writes the files of exports in the background, with one batch of records and one chunk of the
 *  file in memory. Transactions are short: each one stores at most one chunk. After a crash the
 *  file is written again from the start. After too many tries, the export fails. */
import { createHash } from 'node:crypto'
import { stringify } from 'csv-stringify/sync'
import { writeXlsxStream } from 'hucre/xlsx'
import type { Db } from '../records/database/open.ts'
import { readScope, writeScope } from '../records/database/scope.ts'
import { inBatches, type Sql } from '../records/database/statements.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import { JOBS_DUE } from '../records/due-work.ts'
import {
  completeExport,
  deleteLeasedChunks,
  type ExportLease,
  type FinishedFile,
  failExport,
  insertChunk,
  leaseExport,
} from '../records/export-files.ts'
import { exportedRecords, exportFields } from '../records/exports.ts'
import { renewLease } from '../records/file-jobs.ts'
import { findQuotas, MIB, type Quotas } from '../records/quotas.ts'
import { describeFullStorage, findStoredBytes } from '../records/stored-files.ts'
import { Turns } from '../runtime/turns.ts'
import { emit } from '../webhooks/emit.ts'
import { type FileJobServices, JobFailed, runFileJob } from './file-job.ts'

const CHUNK_BYTES = 256 * 1024
/** How often the lease is renewed while no chunk is full. A fraction of the duration of the
 *  lease. */
const RENEWAL_MS = 15_000
const FAILURE = 'An unexpected error occurred several times. Create a new export.'
/** The exports of this process take turns, two at a time, and each turn writes one `Part` of a
 *  file. So a large export delays no other for long, and all of them together do not slow down
 *  requests. */
const turns = new Turns(2)

interface ExportServices extends FileJobServices {
  /** The default quotas: an operator can set others for an account. */
  quotas: Pick<Quotas, 'export_mib'>
}

/** Writes the file of one export, if the export is due. */
export function makeExport(
  services: ExportServices,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const job = {
    lease: (sql: Sql) => leaseExport(sql, id, services.now()),
    work: (lease: ExportLease) => makeFile(services, lease, signal),
    fail: (lease: ExportLease, error: string) => fail(services, lease, error),
    failure: FAILURE,
    lostProgress: { row_count: null },
  }
  return runFileJob(services, job, signal)
}

async function makeFile(
  services: ExportServices,
  lease: ExportLease,
  signal: AbortSignal,
): Promise<void> {
  const { db, now } = services
  const reader = await newReader(db)
  await deleteLeasedChunks(db, lease, now)
  const file = new ExportFile(services, lease, await findSpace(services, lease))
  const records = exportedRecords(readScope(db, lease.accountId, reader), lease)
  const parts = WRITERS[lease.format](records, lease)
  const writeNextPart = async (): Promise<boolean> => {
    signal.throwIfAborted()
    const { value: part, done } = await parts.next()
    if (part) await file.append(part)
    return !done
  }
  while (await turns.take(writeNextPart));
  const summary = await file.finish()
  await transaction(db, async (trx) => {
    await completeExport(trx.sql, lease, summary, now())
    await emitExport(trx, 'export.completed', lease, now())
    // The next export of the account is due now.
    trx.announce(JOBS_DUE)
  })
}

/** The records as they were when the lease began, or newer: so the file has all that existed when the
 *  export was created. */
async function newReader({ read, standby }: Db): Promise<Sql> {
  return standby ? standby.readerAfter(await standby.findPosition()) : read
}

interface Space {
  freeBytes: number
  /** The quota of the account. */
  maxMib: number
}

/** No other file of the account grows meanwhile: see `listDueIds` in
 *  records/file-jobs.ts. */
async function findSpace(
  { db, quotas }: ExportServices,
  { accountId }: ExportLease,
): Promise<Space> {
  const scope = readScope(db, accountId)
  const { export_mib: maxMib } = await findQuotas(scope, quotas)
  return { freeBytes: maxMib * MIB - (await findStoredBytes(scope)), maxMib }
}

/** Stores a file in chunks, and renews the lease of the export meanwhile. */
class ExportFile {
  readonly #db: Db
  readonly #lease: ExportLease
  readonly #now: () => Date
  readonly #space: Space
  readonly #hash = createHash('sha256')
  #buffer = Buffer.alloc(0)
  #chunkCount = 0
  #rowCount = 0
  #byteSize = 0
  #renewedAt: number

  constructor({ db, now }: ExportServices, lease: ExportLease, space: Space) {
    this.#db = db
    this.#lease = lease
    this.#now = now
    this.#space = space
    this.#renewedAt = now().getTime()
  }

  async append({ text, records }: Part): Promise<void> {
    this.#rowCount += records
    this.#buffer = Buffer.concat([this.#buffer, Buffer.from(text)])
    while (this.#buffer.length >= CHUNK_BYTES) {
      await this.#store(this.#buffer.subarray(0, CHUNK_BYTES))
      this.#buffer = this.#buffer.subarray(CHUNK_BYTES)
    }
    if (this.#now().getTime() - this.#renewedAt >= RENEWAL_MS) await this.#store()
  }

  async finish(): Promise<FinishedFile> {
    if (this.#buffer.length > 0) await this.#store(this.#buffer)
    return {
      rowCount: this.#rowCount,
      byteSize: this.#byteSize,
      sha256: this.#hash.digest('hex'),
    }
  }

  /** Renews the lease, and stores a chunk if there is one. */
  async #store(chunk?: Buffer): Promise<void> {
    if (chunk && this.#byteSize + chunk.length > this.#space.freeBytes)
      throw new JobFailed(describeFullStorage(this.#space.maxMib, 'exports'))
    await transaction(this.#db, async ({ sql }) => {
      await renewLease(sql, this.#lease, { row_count: this.#rowCount }, this.#now())
      if (chunk) await insertChunk(sql, this.#lease, this.#chunkCount, chunk)
    })
    this.#renewedAt = this.#now().getTime()
    if (chunk === undefined) return
    this.#hash.update(chunk)
    this.#byteSize += chunk.length
    this.#chunkCount += 1
  }
}

/** A part of the file, and the number of records in it. */
interface Part {
  text: string | Uint8Array
  records: number
}

type Writer = (batches: AsyncIterable<object[]>, lease: ExportLease) => AsyncGenerator<Part>

const WRITERS: Record<ExportLease['format'], Writer> = { csv, csv_raw: csv, json, xlsx }

/** Ten of the largest records take about 20 ms as CSV. */
const RECORDS_PER_PART = 10

/** Splits the batches, so that the text of many large records does not hold up the event loop. */
async function* split(batches: AsyncIterable<object[]>): AsyncGenerator<object[]> {
  for await (const records of batches) yield* inBatches(records, RECORDS_PER_PART)
}

/** RFC 4180 with a header line. As in PostgreSQL's COPY, null is an empty field and empty text is
 *  `""`. Lists and objects are JSON. The format `csv` escapes text that a spreadsheet program would
 *  run as a formula (CWE-1236); `csv_raw` does not. */
async function* csv(batches: AsyncIterable<object[]>, lease: ExportLease): AsyncGenerator<Part> {
  const fields = exportFields(lease)
  const lines = (records: object[]): string =>
    stringify(records, {
      columns: fields,
      record_delimiter: '\r\n',
      quoted_match: /^$|[\r\n]/,
      escape_formulas: lease.format === 'csv',
    })
  yield { text: lines([fields]), records: 0 }
  for await (const records of split(batches))
    yield { text: lines(records), records: records.length }
}

/** Excel refuses longer text. */
const MAX_CELL_LENGTH = 32_767

/** A workbook with one sheet. Its compressed parts do not end with a record, so the number of records
 *  of a part is that of the records that were read for it. */
async function* xlsx(batches: AsyncIterable<object[]>, lease: ExportLease): AsyncGenerator<Part> {
  const fields = exportFields(lease)
  let records = 0
  async function* rows() {
    yield fields
    for await (const batch of batches)
      for (const record of batch) {
        records += 1
        yield fields.map((name) => toCell((record as Record<string, unknown>)[name]))
      }
  }
  for await (const text of writeXlsxStream(rows(), { name: lease.resource })) {
    yield { text, records }
    records = 0
  }
  yield { text: '', records }
}

function toCell(value: unknown): string | number | boolean | null {
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return value ?? null
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Excel reads `_x0041_` as A (ECMA-376, part 1, 22.9.2.19).
  const cell = text.slice(0, MAX_CELL_LENGTH).toWellFormed()
  return cell.replace(/_(?=x[\dA-Fa-f]{4}_)/g, '_x005F_')
}

/** An array with one record per line. */
async function* json(batches: AsyncIterable<object[]>): AsyncGenerator<Part> {
  yield { text: '[', records: 0 }
  let separator = '\n'
  for await (const records of split(batches)) {
    yield {
      text: separator + records.map((record) => JSON.stringify(record)).join(',\n'),
      records: records.length,
    }
    separator = ',\n'
  }
  yield { text: '\n]\n', records: 0 }
}

/** Deletes the chunks first. In the other order, a crash in between would leave the chunks of a
 *  failed export stored. */
async function fail({ db, now }: ExportServices, lease: ExportLease, error: string): Promise<void> {
  await deleteLeasedChunks(db, lease, now)
  await transaction(db, async (trx) => {
    await failExport(trx.sql, lease, error, now())
    await emitExport(trx, 'export.failed', lease, now())
    trx.announce(JOBS_DUE)
  })
}

function emitExport(
  trx: Trx,
  eventType: 'export.completed' | 'export.failed',
  { id, accountId }: ExportLease,
  now: Date,
): Promise<void> {
  return emit(writeScope(trx, accountId), { eventType, resourceId: id, data: [] }, now)
}
