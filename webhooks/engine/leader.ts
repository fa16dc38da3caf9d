/** The lease that makes one process the leader, so that two do not enqueue the same attempts. */
import type { Db } from '../../records/database/open.ts'
import { acquireLease, releaseLease } from '../../records/leases.ts'
import type { Queue } from '../queue/queue.ts'
import type { QueueLedger } from './queue-ledger.ts'

/** Must not change: during an upgrade, nodes of two versions compete for this lease. */
const LEASE_NAME = 'dispatch'
/** How long others wait for a leader that no longer renews the lease: it hangs, or PostgreSQL has
 *  not noticed that its connection is lost. They do not wait if the session of the leader has
 *  ended. */
const LEASE_MS = 4_000
const RENEWAL_MS = 1_000
/** How often the other workers try to acquire the lease. */
const STANDBY_MS = 400

export class Leader {
  readonly #db: Db
  readonly #session: Queue['session']
  readonly #ledger: QueueLedger
  /** The ID of the session. Undefined before the first `ensureLeadership`, and while the session is
   *  lost. */
  #holder: string | undefined
  #isLeader: boolean
  #renewal: Promise<void> | undefined
  #renewedAtMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, session: Queue['session'], ledger: QueueLedger) {
    this.#db = db
    this.#session = session
    this.#ledger = ledger
    // With SQLite there is only one worker.
    this.#isLeader = db.dialect === 'sqlite'
  }

  /** Acquires or renews the lease when necessary. Resolves to whether this process is the
   *  leader. */
  async ensureLeadership(): Promise<boolean> {
    if (this.#db.dialect === 'sqlite') return true
    this.#checkSession()
    if (!this.#holder) return false
    const ageMs = performance.now() - this.#renewedAtMs
    if (ageMs < (this.#isLeader ? RENEWAL_MS : STANDBY_MS)) return this.#isLeader
    this.#renewal ??= this.#renew(this.#holder).finally(() => {
      this.#renewal = undefined
    })
    // The lease is still valid for a while, so it is renewed in the background.
    if (this.#isLeader && ageMs < LEASE_MS / 2) {
      this.#renewal.catch(() => undefined)
      return true
    }
    await this.#renewal
    return this.#isLeader
  }

  /** Whether this process has the lease now. */
  get isLeader(): boolean {
    if (this.#db.dialect === 'sqlite') return true
    const isValid = performance.now() - this.#renewedAtMs <= LEASE_MS
    return this.#isLeader && isValid && this.#holder === this.#session?.id
  }

  async stop(): Promise<void> {
    await this.#renewal?.catch(() => undefined)
    if (this.#isLeader && this.#holder)
      await releaseLease(this.#db, LEASE_NAME, this.#holder).catch(() => undefined)
  }

  /** A lost session ends the leadership: another worker may lead already. */
  #checkSession(): void {
    const id = this.#session?.id
    if (id === this.#holder) return
    this.#holder = id
    this.#renewedAtMs = Number.NEGATIVE_INFINITY
    this.#setLeader(false)
  }

  async #renew(holder: string): Promise<void> {
    const startedAtMs = performance.now()
    try {
      const isAcquired = await acquireLease(this.#db, LEASE_NAME, holder, LEASE_MS)
      if (holder !== this.#holder) return
      this.#renewedAtMs = startedAtMs
      this.#setLeader(isAcquired)
    } catch (error) {
      this.#setLeader(false)
      throw error
    }
  }

  #setLeader(isLeader: boolean): void {
    this.#isLeader = isLeader
    // Only the leader knows what the queue contains.
    if (!isLeader) this.#ledger.forget()
  }
}
