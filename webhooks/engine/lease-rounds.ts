import {
  type LeaseRound,
  normalRound,
  probeRound,
  quickRound,
  reserveRound,
  slowRound,
  spareRound,
} from '../policy/fairness.ts'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'
import { type Deliveries, untilStarted } from './deliveries.ts'
import type { InFlight } from './in-flight.ts'
import type { PauseWatch } from './pause-watch.ts'

interface LeaseRoundsOptions {
  jobs: AttemptJobs
  inFlight: InFlight
  deliveries: Deliveries
  pause: PauseWatch
}

/** Lease when at least this many shared slots are free, so that each query is worth its cost. */
export const MIN_FREE_SLOTS = 128
/** Lease anyway after this long: while slow attempts hold most slots, `MIN_FREE_SLOTS` may never be
 *  free. */
export const MAX_LEASE_PAUSE_MS = 100
/** One lease for the slots that are not shared takes at most this many attempts. */
const RESERVE_BATCH = 8
/** Leases keep slots free for accounts that hold none. When a lease finds no due attempt of such an
 *  account, they stop keeping slots free for this long. */
const OTHERS_INTERVAL_MS = 200
/** The shortest time between two leases for slow endpoints. */
const SLOW_INTERVAL_MS = 200

/** Leases due attempts in the rounds of policy/fairness.ts, and starts them. */
export class LeaseRounds {
  readonly #options: LeaseRoundsOptions
  #leasedAtMs = Number.NEGATIVE_INFINITY
  #slowLeasedAtMs = Number.NEGATIVE_INFINITY
  /** When a lease last looked for accounts that hold no slots and found nothing. */
  #noOthersAtMs = Number.NEGATIVE_INFINITY
  /** Whether the queue may have urgent attempts: see `Selected` in policy/fairness.ts. */
  #mayHaveUrgent = false

  constructor(options: LeaseRoundsOptions) {
    this.#options = options
  }

  /** Call this when urgent attempts were queued. */
  onUrgent(): void {
    this.#mayHaveUrgent = true
  }

  /** 'wait': too few slots are free. */
  async run(): Promise<'leased' | 'nothing due' | 'wait'> {
    const free = this.#options.inFlight.freeSharedSlots
    const isRecent = performance.now() - this.#leasedAtMs < MAX_LEASE_PAUSE_MS
    if (free < (isRecent ? MIN_FREE_SLOTS : 1)) {
      const mayLease = this.#mayHaveUrgent || !isRecent
      return mayLease && (await this.#leaseUrgent()) > 0 ? 'leased' : 'wait'
    }
    this.#leasedAtMs = performance.now()
    const leased = await this.#leaseShared(free)
    const slow = await this.#leaseSlow(free - leased)
    return leased + slow > 0 ? 'leased' : 'nothing due'
  }

  /** Returns how many attempts were leased. Fewer than `count` does not mean that the queue is
   *  empty: concurrency limits may exclude the rest. */
  async #leaseShared(count: number): Promise<number> {
    const { health } = this.#options.inFlight.endpoints
    const nowMs = performance.now()
    const othersMayHaveDue = nowMs - this.#noOthersAtMs >= OTHERS_INTERVAL_MS
    const leased = await this.#start(count, normalRound(health, othersMayHaveDue))
    if (leased > 0) return leased
    if (othersMayHaveDue) this.#noOthersAtMs = nowMs
    const spare = await this.#start(count, spareRound(health, othersMayHaveDue))
    if (spare > 0) return spare
    return this.#start(count, quickRound(health, performance.now()))
  }

  async #leaseUrgent(): Promise<number> {
    const { inFlight } = this.#options
    const count = Math.min(RESERVE_BATCH, inFlight.freeSlots)
    if (count <= 0) return 0
    this.#mayHaveUrgent = false
    const leased = await this.#start(count, reserveRound(inFlight.endpoints.health))
    if (leased > 0) this.#mayHaveUrgent = true
    return leased
  }

  async #leaseSlow(count: number): Promise<number> {
    const { health } = this.#options.inFlight.endpoints
    const rounds = [probeRound(health), slowRound(health)]
    const isRecent = performance.now() - this.#slowLeasedAtMs < SLOW_INTERVAL_MS
    if (count <= 0 || isRecent || rounds.every((round) => !round)) return 0
    this.#slowLeasedAtMs = performance.now()
    for (const round of rounds) {
      const leased = await this.#start(count, round)
      if (leased > 0) return leased
    }
    return 0
  }

  /** Returns how many attempts were leased. Waits briefly for a small batch to start sending, so
   *  that the next lease does not delay it. */
  async #start(count: number, round: LeaseRound | undefined): Promise<number> {
    const { inFlight, jobs, pause, deliveries } = this.#options
    if (!round || !pause.mayLease) return 0
    const onHold = inFlight.holds.flatMap((webhooks) => webhooks.list())
    const attempts = await jobs.lease(
      Math.min(count, round.most ?? count),
      { ...round, skip: [...round.skip, ...onHold] },
      inFlight.list(),
    )
    const started = deliveries.startLeased(attempts)
    if (attempts.length < MIN_FREE_SLOTS) await untilStarted(started)
    return attempts.length
  }
}
