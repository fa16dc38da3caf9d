/** Imports the rows of files in the background. One transaction imports a batch of rows, and stores the
 *  progress and the refused rows with it. So after a crash, the next try goes on after the last batch,
 *  and no row is imported twice or half. */
import { stringify } from 'csv-stringify/sync'
import { type FieldErrors, InvalidInput, StatusError } from '../errors.ts'
import { readScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import type { Sql } from '../records/database/statements.ts'
import { transaction } from '../records/database/transaction.ts'
import { JOBS_DUE } from '../records/due-work.ts'
import { renewLease } from '../records/file-jobs.ts'
import {
  type Counts,
  doneRows,
  endImport,
  findImporter,
  type ImportLease,
  leaseImport,
  type Outcome,
  readImportFile,
  storeProgress,
} from '../records/imports.ts'
import { Turns } from '../runtime/turns.ts'
import { emit } from '../webhooks/emit.ts'
import { notify } from '../webhooks/notices.ts'
import type { AccountQuotas } from './account-quota.ts'
import { type FileJobServices, JobFailed, runFileJob } from './file-job.ts'
import { importedResource, type Row, readRows, readSample, WHOLE_ROW } from './import-rows.ts'
import { itemKindOf } from './item-steps.ts'
import { type ItemOutcome, runItems } from './items.ts'

const MAX_ROWS = 100_000
const ROWS_PER_BATCH = 100
/** While the rows are counted. */
const ROWS_PER_RENEWAL = 10_000
/** The most bytes of the rows of a batch, as JSON. */
const BATCH_BYTES = 1024 * 1024
const FAILURE = 'An unexpected error occurred several times. Import the remaining rows again.'
/** The imports of this process take turns, one batch each, so that they do not slow down requests. */
const turns = new Turns(1)

export interface ImportServices extends FileJobServices {
  quotas: AccountQuotas
}

/** Does one import, if it is due. */
export function runImport(
  services: ImportServices,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const job = {
    lease: (sql: Sql) => leaseImport(sql, id, services.now()),
    work: (lease: ImportLease) => importFile(services, lease, signal),
    fail: (lease: ImportLease, error: string) => end(services, lease, error),
    failure: FAILURE,
    lostProgress: {},
  }
  return runFileJob(services, job, signal)
}

async function importFile(
  services: ImportServices,
  lease: ImportLease,
  signal: AbortSignal,
): Promise<void> {
  const rowCount = lease.rowCount ?? (await prepare(services, lease, signal))
  const batches = inBatches(readRows(lease, openUpload(services, lease)), doneRows(lease.counts))
  const importNext = async (): Promise<boolean> => {
    signal.throwIfAborted()
    const { value: rows, done } = await batches.next()
    if (rows) await importBatch(services, lease, rows, rowCount)
    return !done
  }
  while (await turns.take(importNext));
  await end(services, lease)
}

function openUpload({ db }: ImportServices, { accountId, id }: ImportLease) {
  return readImportFile(readScope(db, accountId), id, 'upload')
}

/** Reads the whole file, so that a file that cannot be read fails before it changes anything. Counts
 *  the rows, and begins the file of refused rows. */
async function prepare(
  services: ImportServices,
  lease: ImportLease,
  signal: AbortSignal,
): Promise<number> {
  let rowCount = 0
  for await (const _ of readRows(lease, openUpload(services, lease))) {
    rowCount += 1
    if (rowCount % ROWS_PER_RENEWAL === 0) {
      signal.throwIfAborted()
      await transaction(services.db, ({ sql }) => renewLease(sql, lease, {}, services.now()))
    }
    if (rowCount > MAX_ROWS)
      throw new JobFailed('The file has more than 100,000 rows. Split it into several files.')
  }
  const { db, now } = services
  const isCsv = lease.format === 'csv'
  const [header = []] = isCsv ? await readSample(openUpload(services, lease), 1) : []
  const head = isCsv ? csvLine(['line', 'errors', ...header]) : ''
  const progress = { rowCount, counts: lease.counts, refusals: Buffer.from(head) }
  await transaction(db, (trx) =>
    storeProgress(writeScope(trx, lease.accountId), lease, progress, now()),
  )
  return rowCount
}

/** Skips the rows that earlier tries have done. */
async function* inBatches(rows: AsyncIterable<Row>, done: number): AsyncGenerator<Row[]> {
  let batch: Row[] = []
  let bytes = 0
  let index = 0
  for await (const row of rows) {
    if (index++ < done) continue
    batch.push(row)
    bytes += JSON.stringify(row.source).length
    if (batch.length < ROWS_PER_BATCH && bytes < BATCH_BYTES) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

/** What became of each row. Undefined for a row that cannot be read. */
type Outcomes = Map<Row, ItemOutcome>

/** Ends the transaction of a dry run without a commit. */
class DryRun extends Error {
  override name = 'DryRun'
  readonly outcomes: Outcomes

  constructor(outcomes: Outcomes) {
    super('The transaction of a dry run is rolled back')
    this.outcomes = outcomes
  }
}

async function importBatch(
  services: ImportServices,
  lease: ImportLease,
  rows: Row[],
  rowCount: number,
): Promise<void> {
  const { db, now } = services
  const store = (scope: WriteScope, outcomes: Outcomes) => {
    const progress = summarize(lease, rows, outcomes)
    return storeProgress(scope, lease, { ...progress, rowCount }, now()).then(() => progress)
  }
  const inTransaction = <T>(work: (scope: WriteScope) => Promise<T>): Promise<T> =>
    transaction(db, (trx) => work(writeScope(trx, lease.accountId)))
  const progress = await runRows(services, lease, rows, store).catch((error: unknown) => {
    if (error instanceof DryRun) return inTransaction((scope) => store(scope, error.outcomes))
    throw error
  })
  lease.counts = progress.counts
  lease.triesBefore = lease.tries
}

/** Imports the rows and stores the progress in one transaction. Throws `DryRun` in a dry run. */
async function runRows<Progress>(
  { db, now, quotas }: ImportServices,
  lease: ImportLease,
  rows: Row[],
  store: (scope: WriteScope, outcomes: Outcomes) => Promise<Progress>,
): Promise<Progress> {
  const { create } = importedResource(lease.resource).operations
  const kind = create === null ? undefined : itemKindOf(create)
  if (kind === undefined) throw new Error(`${lease.resource} cannot be imported`)
  const quota = await quotas.of(lease.accountId)
  const share = quota.newShare()
  const readable = rows.filter(({ item }) => item !== undefined)
  const items = readable.flatMap(({ item }) => item ?? [])
  try {
    return await transaction(db, async (trx) => {
      // Another run of the transaction, which was rolled back, may have taken a part.
      share.release()
      const { userId, apiKeyId, origin } = lease
      const actor = { userId, ...(apiKeyId !== null && { apiKey: { id: apiKeyId } }) }
      const scope = writeScope(trx, lease.accountId, { actor, origin })
      const caller = await findCaller(scope, lease)
      const context = { kind, scope, caller, now: now(), quotas: quota.limits, share }
      const results = await runItems(context, items)
      assertEventsLeft(results)
      const outcomes: Outcomes = new Map()
      for (const [index, result] of results.entries()) {
        const row = readable[index]
        if (row) outcomes.set(row, result)
      }
      if (lease.isDryRun) throw new DryRun(outcomes)
      return store(scope, outcomes)
    })
  } catch (error) {
    share.release()
    throw error
  }
}

/** The user on whose behalf the import runs. Throws `JobFailed` when the user may no longer import. */
async function findCaller(scope: WriteScope, lease: ImportLease) {
  const { module } = importedResource(lease.resource)
  const importer = await findImporter(scope, lease, module)
  if (importer === undefined)
    throw new JobFailed(
      `The user who requested the import may no longer change ${lease.resource.replaceAll('_', ' ')}.`,
    )
  return { accountId: lease.accountId, userId: lease.userId, finance: importer.finance }
}

const TOO_MANY_REQUESTS = 429

/** Throws `JobFailed` when the quota of events is used up. */
function assertEventsLeft(results: ItemOutcome[]): void {
  for (const { refusal } of results)
    if (refusal instanceof StatusError && refusal.status === TOO_MANY_REQUESTS)
      throw new JobFailed(refusal.message)
}

function summarize(
  lease: ImportLease,
  rows: Row[],
  outcomes: Outcomes,
): { counts: Counts; refusals: Buffer } {
  const counts = { ...lease.counts }
  const refusals: string[] = []
  for (const row of rows) {
    const outcome = outcomes.get(row)
    const errors = row.errors ?? (outcome?.refusal && errorsOf(outcome.refusal))
    counts[errors ? 'refused' : outcomeOf(outcome)] += 1
    if (errors) refusals.push(refusedRow(lease, row, errors))
  }
  return { counts, refusals: Buffer.from(refusals.join('')) }
}

function outcomeOf(outcome: ItemOutcome | undefined): Outcome {
  if (outcome === undefined || outcome.refusal) return 'refused'
  if (outcome.isCreated) return 'created'
  return outcome.isChanged ? 'updated' : 'unchanged'
}

function errorsOf(refusal: InvalidInput | StatusError): FieldErrors {
  return refusal instanceof InvalidInput ? refusal.errors : { [WHOLE_ROW]: [refusal.message] }
}

/** Limits the size of the file. */
const MAX_REASONS = 10

function refusedRow({ format }: ImportLease, { line, source }: Row, all: FieldErrors): string {
  const entries = Object.entries(all).slice(0, MAX_REASONS)
  if (format === 'ndjson')
    return `${JSON.stringify({ line, errors: Object.fromEntries(entries), row: source })}\n`
  const reasons = entries.flatMap(([field, messages]) =>
    messages.map((message) => (field === WHOLE_ROW ? message : `${field} ${message}`)),
  )
  return csvLine([line, reasons.join(' '), ...(source as (string | null)[])])
}

function csvLine(cells: (string | number | null)[]): string {
  return stringify([cells], {
    record_delimiter: '\r\n',
    quoted_match: /^$|[\r\n]/,
    escape_formulas: true,
  })
}

async function end({ db, now }: ImportServices, lease: ImportLease, error?: string): Promise<void> {
  const { id: resourceId, accountId } = lease
  const eventType = error === undefined ? 'import.completed' : 'import.failed'
  await transaction(db, async (trx) => {
    await endImport(trx.sql, lease, now(), error)
    const scope = writeScope(trx, accountId)
    await emit(scope, { eventType, resourceId, data: [] }, now())
    const text = endText(lease, error)
    await notify(scope, { type: 'muster.import_ended', resourceId, text }, now())
    // The next import of the account is due now.
    trx.announce(JOBS_DUE)
  })
}

function endText({ resource, isDryRun, counts }: ImportLease, error?: string): string {
  const subject = `The ${isDryRun ? 'test import' : 'import'} of ${resource.replaceAll('_', ' ')}`
  if (error !== undefined) return `${subject} has failed: ${error}`
  const { created, updated, unchanged, refused } = counts
  return `${subject} has ended: ${created} created, ${updated} updated, ${unchanged} unchanged, ${refused} refused.`
}
