import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { deleteWorkerSession, listWorkerSessions } from '../../records/worker-sessions.ts'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'

/** A worker that has lost its connection has this long to open another session. If it does, it
 *  keeps its attempts. */
const GRACE_MS = 400

/** The workers on one PostgreSQL, as the leader sees their sessions. */
export class WorkerSessions {
  /** How many live workers have leased attempts since their start, as of the last
   *  `releaseAttempts`. */
  liveCount = 1
  readonly #options: { db: Db; jobs: AttemptJobs; log: Logger }
  /** When the end of a session was first seen (monotonic clock), by session ID. */
  readonly #endSeenAtMs = new Map<string, number>()

  constructor(options: { db: Db; jobs: AttemptJobs; log: Logger }) {
    this.#options = options
  }

  /** Puts the leased attempts of ended workers back into the queue, whether or not their requests
   *  have reached the endpoint. Returns how many jobs these workers had leased. */
  async releaseAttempts(): Promise<number> {
    const { db, jobs, log } = this.#options
    const { live, ended } = await listWorkerSessions(db)
    this.liveCount = live.length
    const endedIds = new Set(ended.map(({ id }) => id))
    for (const id of this.#endSeenAtMs.keys()) if (!endedIds.has(id)) this.#endSeenAtMs.delete(id)
    let released = 0
    for (const { id, jobs: leased } of ended) {
      const now = performance.now()
      const seenAtMs = this.#endSeenAtMs.get(id) ?? now
      this.#endSeenAtMs.set(id, seenAtMs)
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
