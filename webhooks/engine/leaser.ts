/** Leases due attempts whenever the queue may have some and slots are free. */
import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { RunLoop } from '../../runtime/run-loop.ts'
import type { Turns } from '../../runtime/turns.ts'
import { untilStarted } from './deliveries.ts'
import type { ImmediateAttempts } from './immediate-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import { type LeaseRounds, MAX_LEASE_PAUSE_MS, MIN_FREE_SLOTS } from './lease-rounds.ts'
import type { QueueLedger } from './queue-ledger.ts'

interface LeaserOptions {
  db: Db
  inFlight: InFlight
  immediate: ImmediateAttempts
  rounds: LeaseRounds
  /** Rounds of leasing run one after the other, because each counts the attempts in flight and
   *  replaces the stored list of them. */
  leaseTurns: Turns
  ledger: QueueLedger
  leader: Leader
  log: Logger
}

const POLL_MS = 1_000
/** While the leader knows that the queue has no due attempt, it polls only so often: for jobs that
 *  attempts no longer need. */
const IDLE_POLL_MS = 10_000

export class Leaser {
  readonly #options: LeaserOptions
  readonly #loop: RunLoop
  readonly #poll: NodeJS.Timeout
  /** Set while the leaser waits for free slots. */
  #slotTimer: NodeJS.Timeout | undefined
  #isStopped = false
  #polledAtMs = Number.NEGATIVE_INFINITY

  constructor(options: LeaserOptions) {
    this.#options = options
    this.#loop = new RunLoop(
      () => this.#leaseAll(),
      (error) => options.log.warn({ err: error }, 'Attempts could not be leased; trying again'),
    )
    this.#poll = setInterval(() => {
      const isIdle = this.#isQueueEmpty && performance.now() - this.#polledAtMs < IDLE_POLL_MS
      if (!isIdle) this.#loop.wake()
    }, POLL_MS)
  }

  /** Call this when the queue may have due attempts. */
  readonly wake = (): void => this.#loop.wake()

  /** Call this when urgent attempts were queued: see `Selected` in policy/fairness.ts. */
  readonly onUrgent = (): void => {
    this.#options.rounds.onUrgent()
    this.#loop.wake()
  }

  /** Call this when slots are free. `limitReleased`: a webhook that was at its concurrency limit may
   *  have another attempt. */
  readonly onSlotFree = (limitReleased: boolean): void => {
    const { db, inFlight } = this.#options
    if (this.#isQueueEmpty) return
    const canContinue = this.#slotTimer !== undefined && inFlight.freeSharedSlots >= MIN_FREE_SLOTS
    // On PostgreSQL, processes share the concurrency limit of a webhook, so any free slot may allow
    // another attempt.
    if (limitReleased || canContinue || db.dialect === 'postgres') this.#loop.wake()
  }

  /** Leases due attempts. Resolves when they have started, or at the time limit of
   *  `untilStarted`. */
  leaseNow(): Promise<void> {
    return untilStarted(this.#loop.run())
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#poll)
    clearTimeout(this.#slotTimer)
    await this.#loop.stop()
  }

  /** Only the leader knows which attempts are in the queue. */
  get #isQueueEmpty(): boolean {
    const { leader, ledger } = this.#options
    return leader.isLeader && !ledger.mayHaveDue()
  }

  async #leaseAll(): Promise<void> {
    const { immediate, rounds, leaseTurns } = this.#options
    this.#polledAtMs = performance.now()
    clearTimeout(this.#slotTimer)
    this.#slotTimer = undefined
    while (!this.#isStopped) {
      const result = await leaseTurns.take(async () => {
        // Jobs first, because pg-boss counts the attempts of a webhook by their jobs.
        await immediate.addJobs()
        return rounds.run()
      })
      if (result === 'leased') continue
      if (result === 'wait') this.#slotTimer = setTimeout(this.#loop.wake, MAX_LEASE_PAUSE_MS)
      return
    }
  }
}
