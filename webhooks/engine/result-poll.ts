import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { listStillScheduled } from '../../records/scheduled-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { QueueLedger } from './queue-ledger.ts'

/** Other workers count as active for this long after a poll has found that they have finished
 *  attempts. */
const ACTIVE_MS = 5_000
const IDLE_POLL_MS = 1_000

/** Finds the attempts that workers in other processes have finished. They do not announce them, so
 *  the leader polls the records. */
export class ResultPoll {
  readonly #db: Db
  readonly #inFlight: InFlight
  readonly #ledger: QueueLedger
  #polledAtMs = Number.NEGATIVE_INFINITY
  #activeAtMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, inFlight: InFlight, ledger: QueueLedger) {
    this.#db = db
    this.#inFlight = inFlight
    this.#ledger = ledger
  }

  get othersAreActive(): boolean {
    return performance.now() - this.#activeAtMs <= ACTIVE_MS
  }

  /** Removes the attempts that others have finished from `QueueLedger`, which remembers unmarked
   *  attempts. While no other is active, polls at most every `IDLE_POLL_MS`. */
  async removeFinished(): Promise<void> {
    if (this.#db.dialect === 'sqlite') return
    if (!this.othersAreActive && performance.now() - this.#polledAtMs < IDLE_POLL_MS) return
    const isNotInFlight = ({ deliveryId }: Attempt): boolean => !this.#inFlight.has(deliveryId)
    const unmarked = this.#ledger.listUnmarked().filter(isNotInFlight)
    const scheduled = await listStillScheduled(this.#db, unmarked)
    this.#polledAtMs = performance.now()
    // This process may have leased and finished some of them meanwhile.
    const finished = unmarked.filter(
      (attempt) =>
        !scheduled.has(attempt.deliveryId) &&
        this.#ledger.isUnmarked(attempt.deliveryId) &&
        isNotInFlight(attempt),
    )
    if (finished.length > 0) this.#activeAtMs = this.#polledAtMs
    this.#ledger.remove(finished)
  }
}
