/** Attempts that the leader starts as soon as they are scheduled, without a job. Only the leader
 *  adds jobs, so no other process can have these attempts. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Attempt, AttemptWith } from '../../records/attempt.ts'
import { RunLoop } from '../../runtime/run-loop.ts'
import type { Turns } from '../../runtime/turns.ts'
import { isBelowLimit, isBelowSlotQuota, isFull } from '../policy/fairness.ts'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'
import { type Deliveries, untilStarted } from './deliveries.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import type { PauseWatch } from './pause-watch.ts'
import type { QueueLedger } from './queue-ledger.ts'

interface ImmediateAttemptsOptions {
  jobs: AttemptJobs
  inFlight: InFlight
  ledger: QueueLedger
  leader: Leader
  deliveries: Deliveries
  pause: PauseWatch
  /** Only the holder of a turn leases attempts or adds leased jobs. */
  leaseTurns: Turns
  log: Logger
}

/** Immediate attempts leave this many slots to attempts that have a job. */
const MIN_FREE_SLOTS = 128
/** The pause after a start. Attempts that are scheduled meanwhile start together. */
export const START_PAUSE_MS = 20
/** An attempt whose webhook is at its concurrency limit waits at most this long for a slot before it
 *  gets a job. A job for it would mean a job for each attempt in flight, too. */
const MAX_SLOT_WAIT_MS = 100

export interface NotStarted {
  /** These need jobs. */
  attempts: Attempt[]
  /** Their webhooks are at their concurrency limits, and may soon have free slots. */
  later: Attempt[]
}

export class ImmediateAttempts {
  readonly #options: ImmediateAttemptsOptions
  readonly #loop: RunLoop
  /** Attempts that have slots and wait for `#loop`. */
  #waiting: AttemptWith<'lease'>[] = []

  constructor(options: ImmediateAttemptsOptions) {
    this.#options = options
    this.#loop = new RunLoop(
      () => this.#startWaiting(),
      (error) => options.log.error({ err: error }, 'Attempts could not be started'),
    )
  }

  /** Starts due attempts of webhooks that have no other due attempt, if slots are free. Returns the
   *  attempts that it has not started. */
  start(attempts: Attempt[], at: Date): Promise<NotStarted> {
    const { inFlight, jobs, ledger, leader, leaseTurns } = this.#options
    return leaseTurns.take(async () => {
      // Another process may lead by now, and have found these attempts, too.
      const withDue = leader.isLeader && this.#hasFreeSlots && ledger.webhooksWithDue()
      if (!withDue) return { attempts, later: [] }
      const notStarted: NotStarted = { attempts: [], later: [] }
      for (const attempt of attempts)
        if (withDue.has(attempt.webhookId)) notStarted.attempts.push(attempt)
        else if (this.#mayStart(attempt))
          this.#waiting.push(...inFlight.add([jobs.leaseWithoutJob(attempt)]))
        else if (this.#mayStartSoon(attempt, at)) notStarted.later.push(attempt)
        else notStarted.attempts.push(attempt)
      if (this.#waiting.length > 0) this.#loop.wake()
      return notStarted
    })
  }

  /** Adds and leases jobs for immediate attempts that are still in flight. Without a job, other
   *  processes do not see such an attempt, and pg-boss does not count it towards the concurrency
   *  limit of its webhook. Call this in a turn of `leaseTurns`. */
  async addJobs(): Promise<void> {
    const { inFlight } = this.#options
    // An attempt with a result needs no job while this process leads.
    await this.#addJobsOf(inFlight.listWithoutJob().filter(({ result }) => !result))
  }

  /** Starts no more attempts. */
  async stop(): Promise<void> {
    // The next leader finds these attempts in the records.
    for (const attempt of this.#waiting.splice(0)) this.#options.inFlight.remove(attempt)
    await this.#loop.stop()
  }

  /** Adds jobs for all attempts in flight that have none. Otherwise the next leader would enqueue
   *  these attempts, and they would be made twice. */
  async handOver(): Promise<void> {
    const { inFlight, leaseTurns } = this.#options
    await leaseTurns.take(() => this.#addJobsOf(inFlight.listWithoutJob()))
  }

  get #hasFreeSlots(): boolean {
    return this.#options.inFlight.freeSharedSlots >= MIN_FREE_SLOTS
  }

  #mayStart({ webhookId, accountId }: Attempt): boolean {
    const { inFlight, pause, deliveries } = this.#options
    const { endpoints } = inFlight
    return (
      pause.mayLease &&
      !deliveries.isStopping &&
      this.#hasFreeSlots &&
      !inFlight.holds.some((webhooks) => webhooks.has(webhookId)) &&
      isBelowSlotQuota(endpoints.slots, accountId, true) &&
      isBelowLimit(endpoints.health.get(webhookId), performance.now())
    )
  }

  #mayStartSoon({ webhookId, scheduledAt }: Attempt, at: Date): boolean {
    const health = this.#options.inFlight.endpoints.health.get(webhookId)
    const waitedMs = at.getTime() - scheduledAt
    return isFull(health, performance.now()) && waitedMs < MAX_SLOT_WAIT_MS
  }

  async #addJobsOf(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const { inFlight, jobs, deliveries } = this.#options
    const leased = await jobs.addInFlight(attempts, inFlight.list())
    // Attempts still in flight get the leases of their jobs. If one has ended meanwhile, its job is
    // only completed.
    void deliveries.startLeased(leased)
  }

  /** Starts all waiting attempts together. The pause gathers the next ones. */
  async #startWaiting(): Promise<void> {
    const attempts = this.#waiting.splice(0)
    if (attempts.length === 0) return
    await untilStarted(this.#options.deliveries.start(attempts))
    await delay(START_PAUSE_MS)
  }
}
