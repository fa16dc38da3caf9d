/** Stores the results of attempts, many in one transaction. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { AttemptWith } from '../../records/attempt.ts'
import {
  type DeliveryProgress,
  hasSucceeded,
  type SentAttempt,
  storeResults,
  storeSuccesses,
} from '../../records/attempt-results.ts'
import { isUnavailable } from '../../records/database/errors.ts'
import type { Db } from '../../records/database/open.ts'
import { inOneStatement, type Trx, transaction } from '../../records/database/transaction.ts'
import { ATTEMPTS_SCHEDULED } from '../../records/due-work.ts'
import { RunLoop } from '../../runtime/run-loop.ts'
import { progressAfter } from '../policy/schedule.ts'
import { type AttemptJobs, hasJob } from '../queue/attempt-jobs.ts'
import { AttemptCounter } from './attempt-counter.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import type { QueueLedger } from './queue-ledger.ts'

interface StoreOptions {
  db: Db
  jobs: AttemptJobs
  inFlight: InFlight
  ledger: QueueLedger
  leader: Leader
  delaysMs: number[]
  log: Logger
}

/** A result waits at most this long for others. */
const GATHER_MS = 10
/** A result of an attempt without a job can wait longer: such an attempt starts only while slots are
 *  free, and attempts that wait for its slot get jobs soon (immediate-attempts.ts). */
const GATHER_WITHOUT_JOB_MS = 100
/** As soon as this many results are waiting, they are stored: a webhook at its concurrency limit waits
 *  for that. */
const GATHER_COUNT = 64
const MAX_BATCH = 512
/** Concurrent transactions. SQLite has one writer. */
const MAX_TRANSACTIONS = { postgres: 2, sqlite: 1 }
const RETRY_MS = 500

export class ResultStore {
  readonly #options: StoreOptions
  readonly #loop: RunLoop
  readonly #counter: AttemptCounter
  readonly #stopDeadline = new AbortController()
  readonly #transactions = new Set<Promise<void>>()
  readonly #completions = new Set<Promise<void>>()
  readonly #waiting: AttemptWith<'lease'>[] = []
  /** The database has rejected these results, perhaps because of the receiver's response. They are
   *  stored without the response. */
  readonly #rejected: AttemptWith<'lease'>[] = []
  #timer: NodeJS.Timeout | undefined
  /** When `#timer` fires, by the monotonic clock. */
  #storeAtMs = Number.POSITIVE_INFINITY
  #rejectedTimer: NodeJS.Timeout | undefined

  constructor(options: StoreOptions) {
    this.#options = options
    this.#counter = new AttemptCounter(options.db, options.log)
    this.#loop = new RunLoop(
      () => this.#storeWaiting(),
      (error) => options.log.error({ err: error }, 'Results of attempts could not be stored'),
    )
  }

  /** Stores the result of an attempt that has ended, and completes its job. Without a result it
   *  only completes the job. */
  add(attempt: AttemptWith<'lease'>): void {
    this.#options.inFlight.startStoring(attempt)
    this.#waiting.push(attempt)
    if (this.#waiting.length >= GATHER_COUNT) this.#loop.wake()
    else this.#storeWithin(mayWait(attempt) ? GATHER_WITHOUT_JOB_MS : GATHER_MS)
  }

  /** Stores the remaining results, for at most `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const deadline = setTimeout(() => this.#stopDeadline.abort(), graceMs)
    this.#loop.wake()
    await this.#loop.stop()
    await this.#store(this.#waiting.splice(0))
    await Promise.all(this.#transactions)
    clearTimeout(this.#rejectedTimer)
    await this.#store(this.#rejected.splice(0))
    await Promise.all([...this.#transactions, ...this.#completions])
    await this.#counter.stop()
    for (const timer of [deadline, this.#timer, this.#rejectedTimer]) clearTimeout(timer)
  }

  #storeWithin(ms: number): void {
    const atMs = performance.now() + ms
    if (atMs >= this.#storeAtMs) return
    clearTimeout(this.#timer)
    this.#storeAtMs = atMs
    this.#timer = setTimeout(this.#loop.wake, ms)
  }

  async #storeWaiting(): Promise<void> {
    clearTimeout(this.#timer)
    this.#storeAtMs = Number.POSITIVE_INFINITY
    const limit = MAX_TRANSACTIONS[this.#options.db.dialect]
    while (this.#waiting.length > 0 && !this.#stopDeadline.signal.aborted) {
      if (this.#transactions.size >= limit) await Promise.race(this.#transactions)
      track(this.#transactions, this.#store(this.#waiting.splice(0, MAX_BATCH)))
    }
  }

  /** Retries while the database is unavailable, until `stop` gives up: a result that is not stored
   *  leads to a second attempt. After any other error, stores each result separately. */
  async #store(batch: AttemptWith<'lease'>[]): Promise<void> {
    const { signal } = this.#stopDeadline
    while (batch.length > 0 && !signal.aborted) {
      try {
        return await this.#storeOnce(batch)
      } catch (error) {
        this.#options.log.warn(
          { err: error, attempts: batch.length },
          'Results of attempts could not be stored; trying again',
        )
        if (!isUnavailable(error)) return this.#storeSeparately(batch)
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Stores each result alone, so that a result that the database rejects does not block the
   *  others. The rejected result is stored later, without its response. */
  async #storeSeparately(batch: AttemptWith<'lease'>[]): Promise<void> {
    if (batch.length > 1) {
      for (const attempt of batch) await this.#store([attempt])
      return
    }
    this.#rejected.push(...batch.map(withoutResponse))
    this.#rejectedTimer ??= setTimeout(() => {
      this.#rejectedTimer = undefined
      track(this.#transactions, this.#store(this.#rejected.splice(0)))
    }, RETRY_MS)
  }

  async #storeOnce(batch: AttemptWith<'lease'>[]): Promise<void> {
    const { db } = this.#options
    const withoutJob = new Set(batch.filter((attempt) => !hasJob(attempt)))
    if (db.dialect === 'postgres') {
      const { owned, progress } = await this.#storeInPostgres(batch, withoutJob)
      this.#counter.add(owned)
      // Some of these attempts may have got a job meanwhile.
      await this.#completeJobs([...withoutJob])
      return this.#finish(batch, progress)
    }
    const ended = batch.filter(hasResult)
    const progress =
      ended.length > 0 ? await transaction(db, (trx) => this.#storeIn(trx, ended)) : []
    this.#counter.add(ended)
    // The next batch does not wait for the queue.
    const completion = this.#completeJobs(batch)
      .then(() => this.#completeJobs([...withoutJob]))
      .then(() => this.#finish(batch, progress))
    track(this.#completions, completion)
  }

  /** Stores the results and completes the jobs of `batch`. `owned`: the attempts whose results
   *  counted. */
  async #storeInPostgres(
    batch: AttemptWith<'lease'>[],
    withoutJob: ReadonlySet<AttemptWith<'lease'>>,
  ): Promise<{ owned: AttemptWith<'result'>[]; progress: DeliveryProgress[] }> {
    const { db, jobs, leader } = this.#options
    if (batch.every(needsNoTransaction)) {
      const progress = await inOneStatement(db, (source) => storeSuccesses(source, batch))
      return { owned: batch, progress }
    }
    return transaction(db, async (trx) => {
      const completed = await jobs.complete(batch, trx)
      // After the operating system has stopped this process for a while, another process may own
      // its leases and be the leader. Then only a success is stored: the other process repeats
      // the attempt.
      const mayStore = (attempt: AttemptWith<'lease' | 'result'>): boolean =>
        hasSucceeded(attempt) ||
        completed.has(attempt.lease.jobId) ||
        (leader.isLeader && withoutJob.has(attempt))
      const owned = batch.filter(hasResult).filter(mayStore)
      return { owned, progress: await this.#storeIn(trx, owned) }
    })
  }

  /** Completes the jobs of attempts whose results are stored. If this fails, the jobs stay in the
   *  queue until a worker leases them: `deliver` (deliver.ts) then makes no attempt, because the
   *  delivery no longer waits for it, and completes the job. */
  async #completeJobs(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const { jobs, log } = this.#options
    await jobs
      .complete(attempts)
      .catch((error: unknown) =>
        log.error({ err: error }, 'Jobs of finished attempts could not be completed'),
      )
  }

  async #storeIn(trx: Trx, attempts: AttemptWith<'result'>[]): Promise<DeliveryProgress[]> {
    if (attempts.length === 0) return []
    return storeResults(trx, attempts, (delivery, attempt) =>
      progressAfter(delivery, attempt, this.#options.delaysMs),
    )
  }

  #finish(batch: AttemptWith<'lease'>[], progress: DeliveryProgress[]): void {
    const { db, inFlight, ledger } = this.#options
    ledger.remove(batch)
    inFlight.finish(batch, progress)
    // `publish` reaches only this process. A leader in another process finds retries in time: its
    // `Enqueuer` (enqueue.ts) often searches the records.
    if (progress.some(({ nextAttemptAt }) => nextAttemptAt !== null))
      db.publish(ATTEMPTS_SCHEDULED.name)
  }
}

function track(promises: Set<Promise<void>>, promise: Promise<void>): void {
  promises.add(promise)
  promise.finally(() => promises.delete(promise))
}

/** Whether the result can wait for `GATHER_WITHOUT_JOB_MS`. With an ordering key, the next event of
 *  the resource waits for the result. */
function mayWait(attempt: AttemptWith<'lease'>): boolean {
  return !hasJob(attempt) && attempt.result?.orderingKey === null
}

/** Whether one statement stores the result: a success without a job and without an ordering key. */
function needsNoTransaction(
  attempt: AttemptWith<'lease'>,
): attempt is AttemptWith<'lease'> & SentAttempt {
  return mayWait(attempt) && hasResult(attempt) && hasSucceeded(attempt)
}

function hasResult(attempt: AttemptWith<'lease'>): attempt is AttemptWith<'lease' | 'result'> {
  return attempt.result !== undefined
}

function withoutResponse(attempt: AttemptWith<'lease'>): AttemptWith<'lease'> {
  const { result } = attempt
  if (!result || !('sent' in result)) return attempt
  const sent = { ...result.sent, responseHeaders: null, responseBody: null, error: null }
  return { ...attempt, result: { ...result, sent } }
}
