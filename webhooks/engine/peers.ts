import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { listStillScheduled } from '../../records/scheduled-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { QueueContents } from './queue-contents.ts'

/** Peers count as active for this long after a poll has found that they have finished attempts. */
const ACTIVE_MS = 5_000
const IDLE_POLL_MS = 1_000

/** The workers in other processes, as the leader sees them. They do not announce finished attempts,
 *  so the leader polls the records. */
export class Peers {
  readonly #db: Db
  readonly #inFlight: InFlight
  readonly #contents: QueueContents
  #polledAtMs = Number.NEGATIVE_INFINITY
  #activeAtMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, inFlight: InFlight, contents: QueueContents) {
    this.#db = db
    this.#inFlight = inFlight
    this.#contents = contents
  }

  get areActive(): boolean {
    return performance.now() - this.#activeAtMs <= ACTIVE_MS
  }

  /** Removes the attempts that peers have finished from `QueueContents`, which remembers unmarked
   *  attempts. While no peer is active, polls at most every `IDLE_POLL_MS`. */
  async removeFinished(): Promise<void> {
    if (this.#db.dialect === 'sqlite') return
    if (!this.areActive && performance.now() - this.#polledAtMs < IDLE_POLL_MS) return
    const isNotInFlight = ({ deliveryId }: Attempt): boolean => !this.#inFlight.has(deliveryId)
    const queued = this.#contents.listUnmarked().filter(isNotInFlight)
    const scheduled = await listStillScheduled(this.#db, queued)
    this.#polledAtMs = performance.now()
    // This process may have leased and finished some of them meanwhile.
    const finished = queued.filter(
      (attempt) =>
        !scheduled.has(attempt.deliveryId) &&
        this.#contents.isUnmarked(attempt.deliveryId) &&
        isNotInFlight(attempt),
    )
    if (finished.length > 0) this.#activeAtMs = this.#polledAtMs
    this.#contents.remove(finished)
  }
}
