/** The jobs of attempts: one for each queued attempt. */
import { hash, randomInt } from 'node:crypto'
import { type Db as BossDb, fromKnex, type Job } from 'pg-boss'
import { type Attempt, type AttemptWith, NO_JOB } from '../../records/attempt.ts'
import type { Trx } from '../../records/database/transaction.ts'
import type { LeasedJob } from '../../records/worker-sessions.ts'
import { type LeaseRound, MAX_IN_FLIGHT } from '../policy/fairness.ts'
import type { Boss } from './boss.ts'
import type { WorkerSession } from './session.ts'

const QUEUE = 'deliveries'
/** pg-boss leases jobs of a higher priority first. */
const URGENT_PRIORITY = 1
const MIN_IN_FLIGHT_PRIORITY = 2
const MAX_PRIORITY = 2 ** 31 - 1
/** Effectively unlimited: pg-boss counts each released or expired lease as a retry. The retries of
 *  deliveries are decided in schedule.ts. */
const NO_RETRY_LIMIT = 2_000_000_000
/** Time to store the result of an attempt before another process may repeat the attempt. */
const RESULT_STORAGE_SECONDS = 45
/** Batch sizes above this are multiples of it, so that few different sizes occur: PostgreSQL plans
 *  the lease statement for each batch size. */
const LEASE_STEP = 16

/** Do not rename the fields: during an upgrade, workers of two versions share the queue. */
interface JobData {
  deliveryId: string
  webhookId: string
  accountId: string
  number: number
  dueAt: number
}

export class AttemptJobs {
  readonly #boss: Boss
  readonly #session: WorkerSession | undefined
  readonly #onCompleted: (count: number) => void
  /** Job IDs that an open transaction is completing. A renewal leaves them out: it locks rows in
   *  another order than the transaction, and the two could deadlock. */
  readonly #completing = new Set<string>()
  #renewal: Promise<unknown> = Promise.resolve()

  constructor(
    boss: Boss,
    session: WorkerSession | undefined,
    onCompleted: (count: number) => void,
  ) {
    this.#boss = boss
    this.#session = session
    this.#onCompleted = onCompleted
  }

  /** `attemptTimeoutMs`: the longest time of one attempt. */
  async createQueue(attemptTimeoutMs: number): Promise<void> {
    await this.#boss.addQueue(QUEUE, {
      policy: 'standard',
      retryLimit: NO_RETRY_LIMIT,
      expireInSeconds: Math.ceil(attemptTimeoutMs / 1000) + RESULT_STORAGE_SECONDS,
    })
  }

  /** Adds attempts. Attempts that the queue already has are ignored. The `urgent` attempts are
   *  leased before all others. */
  async add(
    attempts: Attempt[],
    now: Date,
    urgent: ReadonlySet<Attempt> = new Set(),
  ): Promise<void> {
    if (attempts.length === 0) return
    const jobs = attempts.map((attempt) => ({
      ...toJob(attempt),
      priority: urgent.has(attempt) ? URGENT_PRIORITY : 0,
      // No startAfter for a due attempt: the database's clock may be behind ours and would delay
      // it.
      ...(attempt.scheduledAt > now.getTime() ? { startAfter: new Date(attempt.scheduledAt) } : {}),
    }))
    await this.#boss.jobs.insert(QUEUE, jobs)
  }

  /** Adds and leases jobs of attempts that are in flight without one, because pg-boss counts the
   *  attempts of a webhook by their jobs. Returns those attempts with their leases. `inFlight`: see
   *  `lease`. */
  async addInFlight(
    attempts: Attempt[],
    inFlight: AttemptWith<'lease'>[],
  ): Promise<AttemptWith<'lease'>[]> {
    if (attempts.length === 0) return []
    // The random priority marks the jobs of this call: a job that an earlier call added may have
    // lost its lease, and must not be leased here.
    const priority = randomInt(MIN_IN_FLIGHT_PRIORITY, MAX_PRIORITY)
    const jobs = attempts.map((attempt) => ({ ...toJob(attempt), priority }))
    return this.#lease(inFlight, async (options) => {
      await this.#boss.jobs.insert(QUEUE, jobs, options)
      return this.#boss.jobs.fetch<JobData>(QUEUE, {
        ...options,
        batchSize: MAX_IN_FLIGHT,
        minPriority: priority,
        maxPriority: priority,
      })
    })
  }

  /** Leases at most `count` due attempts. May return none even if attempts are due: every webhook
   *  may be at its limit. `inFlight`: the attempts that this process has leased before. */
  async lease(
    count: number,
    { limit, skip, onlyUrgent }: LeaseRound,
    inFlight: AttemptWith<'lease'>[],
  ): Promise<AttemptWith<'lease'>[]> {
    const options = {
      batchSize: count < LEASE_STEP ? count : count - (count % LEASE_STEP),
      groupConcurrency: limit,
      ignoreGroups: skip,
      ...(onlyUrgent ? { minPriority: URGENT_PRIORITY } : {}),
    }
    return this.#lease(inFlight, (database) =>
      this.#boss.jobs.fetch<JobData>(QUEUE, { ...options, ...database }),
    )
  }

  /** A lease without a job. It takes no SQL statement. Only the leader may call this. */
  leaseWithoutJob(attempt: Attempt): AttemptWith<'lease'> {
    const id = jobId(attempt.deliveryId, attempt.scheduledAt)
    return { ...attempt, lease: { jobId: id, retryCount: NO_JOB } }
  }

  /** Renews the leases, except those whose jobs a transaction is completing. Returns the job IDs of
   *  the renewed leases and of the leases without a job. */
  renew(attempts: AttemptWith<'lease'>[]): Promise<Set<string>> {
    const renewal = this.#renewal.then(async () => {
      const owned = new Set(attempts.filter((attempt) => !hasJob(attempt)).map(idOf))
      const renewable = attempts
        .filter(hasJob)
        .filter(({ lease }) => !this.#completing.has(lease.jobId))
      if (renewable.length === 0) return owned
      const renewed = affectedIds(await this.#boss.jobs.touch(QUEUE, renewable.map(jobKey)))
      return owned.union(renewed)
    })
    this.#renewal = renewal.catch(() => undefined)
    return renewal
  }

  /** Removes the jobs, except those that another process has since leased. Returns the IDs of the
   *  removed jobs. `trx`: removes them when that transaction commits (PostgreSQL). */
  async complete(attempts: AttemptWith<'lease'>[], trx?: Trx): Promise<Set<string>> {
    const jobs = attempts.filter(hasJob)
    if (jobs.length === 0) return new Set()
    if (trx) await this.#suspendRenewal(jobs, trx)
    const options = trx ? { db: fromKnex(trx.sql) } : {}
    const completed = affectedIds(await this.#boss.jobs.deleteJob(QUEUE, jobs.map(jobKey), options))
    this.#onCompleted(completed.size)
    return completed
  }

  /** Ends the leases: another worker may lease the attempts at once. The leader finds attempts
   *  without a job in the records (engine/enqueue.ts). */
  async release(attempts: AttemptWith<'lease'>[]): Promise<void> {
    await this.releaseJobs(attempts.filter(hasJob).map(jobKey))
  }

  /** Like `release`, for leases of another process. Ignores leases that have ended meanwhile. */
  async releaseJobs(jobs: LeasedJob[]): Promise<void> {
    if (jobs.length > 0) await this.#boss.jobs.fail(QUEUE, jobs)
  }

  /** Due attempts that are not leased, as pg-boss last counted them. */
  async countReady(): Promise<number> {
    const [stats] = await this.#boss.jobs.getQueueStats(QUEUE)
    return stats?.readyCount ?? 0
  }

  /** Calls `fetch`, which leases jobs. With a session it runs in one transaction, so that other
   *  workers see added jobs only once they are leased. */
  async #lease(
    inFlight: AttemptWith<'lease'>[],
    fetch: (options: { db?: BossDb }) => Promise<Job<JobData>[]>,
  ): Promise<AttemptWith<'lease'>[]> {
    const jobs = this.#session
      ? await this.#session.lease(inFlight.filter(hasJob).map(jobKey), (db) => fetch({ db }))
      : await fetch({})
    return jobs.map(leasedAttempt)
  }

  /** Renewals leave out the jobs until `trx` ends. Resolves when the current renewal has ended. */
  async #suspendRenewal(attempts: AttemptWith<'lease'>[], trx: Trx): Promise<void> {
    for (const { lease } of attempts) this.#completing.add(lease.jobId)
    trx.onEnd(() => {
      for (const { lease } of attempts) this.#completing.delete(lease.jobId)
    })
    await this.#renewal
  }
}

const jobKey = ({ lease: { jobId: id, retryCount } }: AttemptWith<'lease'>): LeasedJob => ({
  id,
  retryCount,
})

const idOf = ({ lease }: AttemptWith<'lease'>): string => lease.jobId

export function hasJob({ lease }: AttemptWith<'lease'>): boolean {
  return lease.retryCount !== NO_JOB
}

/** The IDs of the jobs that a command affected. pg-boss's types lack the field `settled`, but its
 *  own workers rely on it. */
function affectedIds(response: object): Set<string> {
  const { settled } = response as { settled?: string[] }
  if (settled === undefined)
    throw new Error('pg-boss did not return the jobs that a command affected')
  return new Set(settled)
}

function leasedAttempt({
  id,
  retryCount,
  data: { dueAt, ...data },
}: Job<JobData>): AttemptWith<'lease'> {
  return {
    ...data,
    // If the job does not name the account, its webhook counts as an account of its own.
    accountId: data.accountId,
    scheduledAt: dueAt,
    lease: { jobId: id, retryCount },
  }
}

function toJob({ deliveryId, scheduledAt, webhookId, accountId, number }: Attempt) {
  return {
    id: jobId(deliveryId, scheduledAt),
    data: { deliveryId, webhookId, accountId, number, dueAt: scheduledAt } satisfies JobData,
    group: { id: webhookId },
  }
}

/** The same attempt always has the same job ID, whichever process adds it. */
function jobId(deliveryId: string, scheduledAt: number): string {
  const hex = hash('sha256', `${deliveryId}:${scheduledAt}`)
  // RFC 9562 §5.8: version 8 is for custom formats.
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ]
  return [...parts, hex.slice(20, 32)].join('-')
}
