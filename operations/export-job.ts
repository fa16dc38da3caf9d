/** Writes the files of exports in the background, with one batch of records and one chunk of the file in
 *  memory. Transactions are as short as one write. After a crash the file is written again from the
 *  start, or the export fails. */
import { createHash } from 'node:crypto'
import { stringify } from 'csv-stringify/sync'
import type { Db } from '../records/database/open.ts'
import { writeScope } from '../records/database/scope.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import {
  ClaimLost,
  claimExport,
  completeExport,
  deleteClaimedChunks,
  type ExportClaim,
  exportedRecords,
  exportFields,
  failExport,
  insertChunk,
  MAX_TRIES,
  releaseExport,
  renewClaim,
} from '../records/exports.ts'
import { emit } from '../webhooks/emit.ts'

const CHUNK_BYTES = 256 * 1024
/** A fraction of the lease, for batches that are slow to read or do not fill a chunk. */
const RENEWAL_MS = 15_000
const RETRY_DELAY_MS = 5_000
const FAILURE = 'An unexpected error occurred several times. Create a new export.'

/** Writes one export, if it is due. Throws the error for the log, after the export is queued again or
 *  failed. When `signal` aborts, it stops, and another process can continue. */
export async function makeExport(
  db: Db,
  id: string,
  now: () => Date,
  signal: AbortSignal,
): Promise<void> {
  const claim = await transaction(db, ({ sql }) => claimExport(sql, id, now()))
  if (claim === undefined) return
  try {
    // Each try ended with a crash of its process.
    if (claim.tries > MAX_TRIES) return await fail(db, claim, now)
    await makeFile(db, claim, now, signal)
  } catch (error) {
    if (error instanceof ClaimLost) return
    await giveUp(db, claim, now, signal)
    if (!signal.aborted) throw error
  }
}

async function makeFile(
  db: Db,
  claim: ExportClaim,
  now: () => Date,
  signal: AbortSignal,
): Promise<void> {
  await deleteClaimedChunks(db, claim, now)
  const hash = createHash('sha256')
  let waiting = Buffer.alloc(0)
  let rowCount = 0
  let byteSize = 0
  let position = 0
  let renewedAt = now().getTime()

  async function store(bytes: Buffer): Promise<void> {
    await transaction(db, async ({ sql }) => {
      await renewClaim(sql, claim, rowCount, now())
      await insertChunk(sql, claim, position, bytes)
    })
    renewedAt = now().getTime()
    hash.update(bytes)
    byteSize += bytes.length
    position += 1
  }

  const records = exportedRecords(db, claim)
  for await (const part of claim.format === 'csv'
    ? csv(records, exportFields(claim.resource))
    : json(records)) {
    signal.throwIfAborted()
    rowCount += part.records
    waiting = Buffer.concat([waiting, Buffer.from(part.text)])
    for (; waiting.length >= CHUNK_BYTES; waiting = waiting.subarray(CHUNK_BYTES))
      await store(waiting.subarray(0, CHUNK_BYTES))
    if (now().getTime() - renewedAt < RENEWAL_MS) continue
    await transaction(db, ({ sql }) => renewClaim(sql, claim, rowCount, now()))
    renewedAt = now().getTime()
  }
  if (waiting.length > 0) await store(waiting)

  const file = { rowCount, byteSize, sha256: hash.digest('hex') }
  await transaction(db, async (trx) => {
    await completeExport(trx.sql, claim, file, now())
    await tell(trx, 'export.completed', claim, now())
  })
}

/** A part of the file, and the number of records in it. */
interface Part {
  text: string
  records: number
}

/** RFC 4180 with a header line. As in PostgreSQL's COPY, null is an empty field and empty text is `""`.
 *  Lists and objects are JSON. */
async function* csv(batches: AsyncIterable<object[]>, fields: string[]): AsyncGenerator<Part> {
  const lines = (records: object[]): string =>
    stringify(records, { columns: fields, record_delimiter: '\r\n', quoted_match: /^$|[\r\n]/ })
  yield { text: lines([fields]), records: 0 }
  for await (const records of batches) yield { text: lines(records), records: records.length }
}

/** An array with one record per line. */
async function* json(batches: AsyncIterable<object[]>): AsyncGenerator<Part> {
  yield { text: '[', records: 0 }
  let separator = '\n'
  for await (const records of batches) {
    yield {
      text: separator + records.map((record) => JSON.stringify(record)).join(',\n'),
      records: records.length,
    }
    separator = ',\n'
  }
  yield { text: '\n]\n', records: 0 }
}

/** Does not throw when another process has claimed the export. */
async function giveUp(
  db: Db,
  claim: ExportClaim,
  now: () => Date,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (signal.aborted) return await transaction(db, ({ sql }) => releaseExport(sql, claim, now()))
    if (claim.tries >= MAX_TRIES) return await fail(db, claim, now)
    const dueAt = new Date(now().getTime() + RETRY_DELAY_MS * claim.tries)
    await transaction(db, ({ sql }) => releaseExport(sql, claim, now(), dueAt))
  } catch (error) {
    if (!(error instanceof ClaimLost)) throw error
  }
}

/** Deletes the chunks first: after a crash in between, the export is failed again and no chunks remain. */
async function fail(db: Db, claim: ExportClaim, now: () => Date): Promise<void> {
  await deleteClaimedChunks(db, claim, now)
  await transaction(db, async (trx) => {
    await failExport(trx.sql, claim, FAILURE, now())
    await tell(trx, 'export.failed', claim, now())
  })
}

function tell(
  trx: Trx,
  eventType: 'export.completed' | 'export.failed',
  { id, accountId }: ExportClaim,
  now: Date,
): Promise<void> {
  return emit(writeScope(trx, accountId), eventType, id, [], now)
}
