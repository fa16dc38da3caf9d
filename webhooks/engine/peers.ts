import type { Db } from '../../records/database/open.ts'
import { listStillScheduled } from '../../records/scheduled-attempts.ts'
import type { InFlight } from './in-flight.ts'

/** Peers count as active for this long after their last result. */
const ACTIVE_MS = 5_000
const IDLE_POLL_MS = 1_000

/** The workers in other processes, as the leader sees them. They do not announce finished attempts,
 *  so it polls. */
export class Peers {
  readonly #db: Db
  readonly #inFlight: InFlight
  #polledAtMs = Number.NEGATIVE_INFINITY
  #activeAtMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, inFlight: InFlight) {
    this.#db = db
    this.#inFlight = inFlight
  }

  get areActive(): boolean {
    return performance.now() - this.#activeAtMs <= ACTIVE_MS
  }

  /** Removes the unmarked attempts that peers have finished. */
  async removeFinished(): Promise<void> {
    if (this.#db.dialect === 'sqlite') return
    if (!this.areActive && performance.now() - this.#polledAtMs < IDLE_POLL_MS) return
    const { unmarked } = this.#inFlight
    const enqueued = unmarked.list().filter(({ deliveryId }) => !this.#inFlight.has(deliveryId))
    const scheduled = await listStillScheduled(this.#db, enqueued)
    this.#polledAtMs = performance.now()
    // This process may have leased and finished some of them meanwhile.
    const finished = enqueued.filter(
      ({ deliveryId }) =>
        !scheduled.has(deliveryId) && unmarked.has(deliveryId) && !this.#inFlight.has(deliveryId),
    )
    if (finished.length > 0) this.#activeAtMs = this.#polledAtMs
    unmarked.remove(finished)
  }
}
