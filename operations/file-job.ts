/** Runs the work of exports and imports: each job under a lease, with a few tries. */
import type { Db } from '../records/database/open.ts'
import type { Sql } from '../records/database/statements.ts'
import { transaction } from '../records/database/transaction.ts'
import { type FileJobLease, LeaseLost, MAX_TRIES, releaseJob } from '../records/file-jobs.ts'

const RETRY_DELAY_MS = 5_000

export interface FileJobServices {
  db: Db
  now: () => Date
}

interface FileJob<Lease extends FileJobLease> {
  /** Undefined: the job is not due. */
  lease(sql: Sql): Promise<Lease | undefined>
  work(lease: Lease, signal: AbortSignal): Promise<void>
  /** Ends the job. `error` is a sentence for users. */
  fail(lease: Lease, error: string): Promise<void>
  /** The error after the last try. */
  failure: string
  /** What a job loses when it is queued again. */
  lostProgress: Record<string, unknown>
}

/** No further try can do the job. The message is a sentence for users. */
export class JobFailed extends Error {
  override name = 'JobFailed'
}

/** Does the job if it is due. After an error, queues the job again or fails it, and rethrows an
 *  unexpected error for the log. Stops when `signal` aborts, so that another process can go on. */
export async function runFileJob<Lease extends FileJobLease>(
  services: FileJobServices,
  job: FileJob<Lease>,
  signal: AbortSignal,
): Promise<void> {
  const lease = await transaction(services.db, ({ sql }) => job.lease(sql))
  if (lease === undefined) return
  try {
    // The process of the last try was killed before it could fail the job.
    if (lease.tries - lease.triesBefore > MAX_TRIES) return await job.fail(lease, job.failure)
    await job.work(lease, signal)
  } catch (error) {
    if (error instanceof LeaseLost) return
    await retryOrFail(services, job, lease, { cause: error, signal })
    if (!signal.aborted && !(error instanceof JobFailed)) throw error
  }
}

/** Queues the job again, but fails it if no further try can do it, or if no try is left. Never fails it
 *  after `signal` has aborted. Does nothing when this process has lost the lease. */
async function retryOrFail<Lease extends FileJobLease>(
  { db, now }: FileJobServices,
  job: FileJob<Lease>,
  lease: Lease,
  { cause, signal }: { cause: unknown; signal: AbortSignal },
): Promise<void> {
  const tries = lease.tries - lease.triesBefore
  const release = (dueAt?: Date): Promise<void> =>
    transaction(db, ({ sql }) => releaseJob(sql, lease, now(), { ...job.lostProgress, dueAt }))
  try {
    if (signal.aborted) return await release()
    if (cause instanceof JobFailed) return await job.fail(lease, cause.message)
    if (tries >= MAX_TRIES) return await job.fail(lease, job.failure)
    await release(new Date(now().getTime() + RETRY_DELAY_MS * tries))
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error
  }
}
