import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { deleteWorkerSession, listWorkerSessions } from '../../records/worker-sessions.ts'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'

/** A worker that has lost its connection opens another session within this time, and keeps its
 *  attempts. */
const GRACE_MS = 400

/** The workers on one PostgreSQL, as the leader sees their sessions. */
export class Workers {
  /** How many have leased attempts and not ended, as of the last look. */
  liveCount = 1
  readonly #options: { db: Db; jobs: AttemptJobs; log: Logger }
  /** When the end of a session was first seen, by the monotonic clock. */
  readonly #seenAtMs = new Map<string, number>()

  constructor(options: { db: Db; jobs: AttemptJobs; log: Logger }) {
    this.#options = options
  }

  /** Puts the attempts of ended workers back into the queue, those in flight too: they may have
   *  reached the endpoint or not. Returns how many jobs it released, at most. */
  async releaseAttempts(): Promise<number> {
    const { db, jobs, log } = this.#options
    const { live, ended } = await listWorkerSessions(db)
    this.liveCount = live.length
    const ids = new Set(ended.map(({ id }) => id))
    for (const id of this.#seenAtMs.keys()) if (!ids.has(id)) this.#seenAtMs.delete(id)
    let released = 0
    for (const { id, jobs: leased } of ended) {
      const now = performance.now()
      const seenAtMs = this.#seenAtMs.get(id) ?? now
      this.#seenAtMs.set(id, seenAtMs)
      if (now - seenAtMs < GRACE_MS) continue
      await jobs.releaseJobs(leased)
      await deleteWorkerSession(db, id)
      released += leased.length
      log.warn(
        { attempts: leased.length },
        'A worker process has ended. Its attempts are repeated.',
      )
    }
    return released
  }
}
