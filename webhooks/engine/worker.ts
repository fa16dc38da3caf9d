/** Leases due attempts as slots become free, starts them, and renews the leases. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Attempt, AttemptWith } from '../../records/attempt.ts'
import {
  isBelowLimit,
  isBelowSlotQuota,
  type LeaseRound,
  normalRound,
  probeRound,
  quickRound,
  reserveRound,
  slowRound,
  spareRound,
} from '../policy/fairness.ts'
import { RunLoop } from '../run-loop.ts'
import { type DeliverOptions, deliver } from './deliver.ts'

/** Lease when at least this many shared slots are free, so that each query is worth its cost. */
const MIN_FREE_SLOTS = 128
/** Lease anyway after this long: slow attempts may keep fewer than `MIN_FREE_SLOTS` slots free. */
const MAX_LEASE_PAUSE_MS = 100
/** The most urgent attempts of one lease for the slots that are not shared. */
const RESERVE_BATCH = 8
/** Wait at most this long for a small batch to start sending before the next lease. */
const MAX_START_WAIT_MS = 20
/** Attempts that are scheduled within this time after others have started are loaded together. */
const START_PAUSE_MS = 20
/** How often a lease looks first for accounts that hold no slots. */
const OTHERS_INTERVAL_MS = 200
const SLOW_INTERVAL_MS = 200
const POLL_MS = 1_000
const RENEWAL_MS = 3_000
const RENEWAL_RETRY_MS = 500

export class Worker {
  readonly #options: DeliverOptions
  readonly #loop: RunLoop
  readonly #starts: RunLoop
  readonly #poll: NodeJS.Timeout
  readonly #renewal: NodeJS.Timeout
  readonly #deliveries = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  #renewalRetry: NodeJS.Timeout | undefined
  /** Set while the worker waits for free slots. */
  #pause: NodeJS.Timeout | undefined
  #leasedAtMs = Number.NEGATIVE_INFINITY
  #slowLeasedAtMs = Number.NEGATIVE_INFINITY
  /** When a lease looked for accounts that hold no slots and found nothing. */
  #noOthersAtMs = Number.NEGATIVE_INFINITY
  /** Whether urgent attempts were queued since the last lease of these. */
  #mayHaveUrgent = false
  #lastLease: Promise<unknown> = Promise.resolve()
  /** Attempts without a job that wait for `#starts`. */
  #unstarted: AttemptWith<'lease'>[] = []

  constructor(options: DeliverOptions) {
    this.#options = options
    this.#loop = new RunLoop(
      () => this.#leaseAll(),
      (error) => options.log.warn({ err: error }, 'Attempts could not be leased; trying again'),
    )
    this.#starts = new RunLoop(
      () => this.#startTogether(),
      (error) => options.log.error({ err: error }, 'Attempts could not be started'),
    )
    this.#poll = setInterval(this.#loop.wake, POLL_MS)
    this.#renewal = setInterval(() => this.#renewLeases(), RENEWAL_MS)
  }

  /** The queue may have due attempts. */
  readonly wake = (): void => this.#loop.wake()

  /** Leases due attempts. Resolves when they have started, or after `MAX_START_WAIT_MS`. */
  async leaseNow(): Promise<void> {
    await Promise.race([this.#loop.run(), delay(MAX_START_WAIT_MS)])
  }

  /** The queue has urgent attempts. */
  readonly onUrgent = (): void => {
    this.#mayHaveUrgent = true
    this.#loop.wake()
  }

  /** Slots are free, or a concurrency limit has risen. */
  readonly onSlotFree = (limitReleased: boolean): void => {
    const { db, inFlight } = this.#options
    if (inFlight.webhooksWithDue()?.size === 0) return
    const hasEnough = this.#pause !== undefined && inFlight.freeSharedSlots >= MIN_FREE_SLOTS
    // On PostgreSQL processes share the concurrency limit of a webhook, so any free slot may allow
    // another of its attempts.
    if (limitReleased || hasEnough || db.dialect === 'postgres') this.#loop.wake()
  }

  /** Starts attempts that the leader has found as soon as they were scheduled, and returns the
   *  others. While no other attempt of the webhook is due, they need no job at first: only the
   *  leader adds jobs. */
  startAtOnce(attempts: Attempt[]): Promise<Attempt[]> {
    return this.#alone(() => {
      const { inFlight, jobs } = this.#options
      const withDue = inFlight.webhooksWithDue()
      // Another process may lead by now, and have found them, too.
      if (!withDue || !inFlight.isLeader()) return attempts
      const others: Attempt[] = []
      for (const attempt of attempts)
        if (!withDue.has(attempt.webhookId) && this.#mayStart(attempt))
          this.#unstarted.push(...inFlight.add([jobs.leaseWithoutJob(attempt)]))
        else others.push(attempt)
      if (this.#unstarted.length > 0) this.#starts.wake()
      return others
    })
  }

  /** Adds and leases the jobs of attempts in flight that have none, so that other processes know of
   *  them. An attempt with a result needs none while this process leads. */
  async addJobs(attempts = this.#listUnfinished()): Promise<void> {
    await this.#alone(() => this.#addJobs(attempts))
  }

  #mayStart({ webhookId, accountId }: Attempt): boolean {
    const { inFlight, pause } = this.#options
    return (
      pause.mayLease &&
      !this.#stopping.signal.aborted &&
      inFlight.freeSharedSlots >= MIN_FREE_SLOTS &&
      !inFlight.pauses.some((webhooks) => webhooks.has(webhookId)) &&
      isBelowSlotQuota(inFlight.slots, accountId, true) &&
      isBelowLimit(inFlight.endpoints.get(webhookId), performance.now())
    )
  }

  /** Stops leasing. Resolves when all attempts have ended or `graceMs` has passed. */
  async drain(graceMs: number): Promise<void> {
    this.#stopping.abort()
    // The next leader finds them in the records.
    for (const attempt of this.#unstarted.splice(0)) this.#options.inFlight.remove(attempt)
    clearInterval(this.#poll)
    clearTimeout(this.#pause)
    await Promise.all([this.#loop.stop(), this.#starts.stop()])
    const grace = new AbortController()
    await Promise.race([
      Promise.all(this.#deliveries),
      delay(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
    ])
    grace.abort()
  }

  /** Stops renewing leases and releases the remaining ones. */
  async stop(): Promise<void> {
    const { inFlight, jobs, log } = this.#options
    clearInterval(this.#renewal)
    clearTimeout(this.#renewalRetry)
    await jobs
      .release(inFlight.list())
      .catch((error: unknown) => log.warn({ err: error }, 'Leases could not be released'))
    inFlight.clear()
  }

  async #leaseAll(): Promise<void> {
    clearTimeout(this.#pause)
    this.#pause = undefined
    while (!this.#stopping.signal.aborted && (await this.#alone(() => this.#leaseDue()))) {
      // There may be more.
    }
  }

  /** Returns whether it has leased any. */
  async #leaseDue(): Promise<boolean> {
    // First, because pg-boss counts the attempts of a webhook by their jobs.
    await this.#addJobs(this.#listUnfinished())
    const free = this.#options.inFlight.freeSharedSlots
    const isRecent = performance.now() - this.#leasedAtMs < MAX_LEASE_PAUSE_MS
    if (free < (isRecent ? MIN_FREE_SLOTS : 1)) {
      if ((this.#mayHaveUrgent || !isRecent) && (await this.#leaseUrgent()) > 0) return true
      this.#pause = setTimeout(this.#loop.wake, MAX_LEASE_PAUSE_MS)
      return false
    }
    this.#leasedAtMs = performance.now()
    const leased = await this.#lease(free)
    const slow = await this.#leaseSlow(free - leased)
    return leased + slow > 0
  }

  /** Returns how many attempts were leased. Fewer than `count` does not mean that the queue is
   *  empty: concurrency limits may exclude the rest. */
  async #lease(count: number): Promise<number> {
    const { endpoints } = this.#options.inFlight
    const nowMs = performance.now()
    const othersMayWait = nowMs - this.#noOthersAtMs >= OTHERS_INTERVAL_MS
    const leased = await this.#startRound(count, normalRound(endpoints, othersMayWait))
    if (leased > 0) return leased
    if (othersMayWait) this.#noOthersAtMs = nowMs
    const spare = await this.#startRound(count, spareRound(endpoints, othersMayWait))
    if (spare > 0) return spare
    return this.#startRound(count, quickRound(endpoints, performance.now()))
  }

  async #leaseUrgent(): Promise<number> {
    const { inFlight } = this.#options
    const count = Math.min(RESERVE_BATCH, inFlight.freeSlots)
    if (count <= 0) return 0
    this.#mayHaveUrgent = false
    const round = reserveRound(inFlight.endpoints)
    const leased = await this.#startRound(count, round)
    if (leased > 0) this.#mayHaveUrgent = true
    return leased
  }

  async #leaseSlow(count: number): Promise<number> {
    const { endpoints } = this.#options.inFlight
    const rounds = [probeRound(endpoints), slowRound(endpoints)]
    const isRecent = performance.now() - this.#slowLeasedAtMs < SLOW_INTERVAL_MS
    if (count <= 0 || isRecent || rounds.every((round) => !round)) return 0
    this.#slowLeasedAtMs = performance.now()
    for (const round of rounds) {
      const leased = await this.#startRound(count, round)
      if (leased > 0) return leased
    }
    return 0
  }

  async #startRound(count: number, round: LeaseRound | undefined): Promise<number> {
    const { inFlight, jobs, pause } = this.#options
    if (!round || !pause.mayLease) return 0
    const skip = inFlight.pauses.flatMap((webhooks) => webhooks.list())
    const attempts = await jobs.lease(
      Math.min(count, round.most ?? count),
      { ...round, skip: [...round.skip, ...skip] },
      inFlight.list(),
    )
    if (attempts.length > 0) await this.#start(attempts)
    return attempts.length
  }

  async #addJobs(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const { inFlight, jobs } = this.#options
    await this.#start(await jobs.addInFlight(attempts, inFlight.list()))
  }

  #listUnfinished(): AttemptWith<'lease'>[] {
    return this.#options.inFlight.listWithoutJob().filter(({ result }) => !result)
  }

  /** Runs one lease after the other: each counts and stores all attempts in flight. */
  #alone<T>(lease: () => T | Promise<T>): Promise<T> {
    const leased = this.#lastLease.then(lease)
    this.#lastLease = leased.catch(() => undefined)
    return leased
  }

  /** Loads the attempts of several transactions together. */
  async #startTogether(): Promise<void> {
    const attempts = this.#unstarted.splice(0)
    if (attempts.length === 0) return
    await Promise.race([this.#deliver(attempts), delay(MAX_START_WAIT_MS)])
    await delay(START_PAUSE_MS)
  }

  /** Starts the attempts. Waits briefly for a small batch to start sending, so that the next lease
   *  does not delay it. */
  async #start(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const leased = this.#options.inFlight.add(attempts)
    if (leased.length === 0) return
    const started = this.#deliver(leased)
    if (attempts.length < MIN_FREE_SLOTS) await Promise.race([started, delay(MAX_START_WAIT_MS)])
  }

  /** Resolves when the first requests have started. */
  #deliver(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const started = Promise.withResolvers<void>()
    const delivery = deliver(this.#options, attempts, started.resolve, this.#stopping.signal)
    this.#deliveries.add(delivery)
    delivery.finally(() => this.#deliveries.delete(delivery))
    return started.promise
  }

  #renewLeases(): void {
    const { inFlight, jobs, log } = this.#options
    jobs.renew(inFlight.list()).catch((error: unknown) => {
      log.warn({ err: error }, 'Leases could not be renewed; trying again')
      clearTimeout(this.#renewalRetry)
      this.#renewalRetry = setTimeout(() => this.#renewLeases(), RENEWAL_RETRY_MS)
    })
  }
}
