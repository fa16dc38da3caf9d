/** The lease that makes one process the leader, so that two do not enqueue the same attempts. */
import { randomUUID } from 'node:crypto'
import type { Db } from '../../records/database/open.ts'
import { acquireLease, releaseLease } from '../../records/leases.ts'
import type { Unmarked } from './unmarked.ts'

/** Stored: nodes of older releases compete for the same lease. */
const LEASE_NAME = 'dispatch'
const LEASE_MS = 4_000
const RENEWAL_MS = 1_000

export class Leader {
  readonly #db: Db
  readonly #unmarked: Unmarked
  readonly #holder = randomUUID()
  #isLeader: boolean
  #renewal: Promise<void> | undefined
  #renewedAtMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, unmarked: Unmarked) {
    this.#db = db
    this.#unmarked = unmarked
    // With SQLite there is only one worker.
    this.#isLeader = db.dialect === 'sqlite'
  }

  /** Acquires or renews the lease when necessary. Resolves to whether this process is the leader. */
  async ensureLeadership(): Promise<boolean> {
    const ageMs = performance.now() - this.#renewedAtMs
    if (this.#db.dialect === 'sqlite' || ageMs < RENEWAL_MS) return this.#isLeader
    this.#renewal ??= this.#renew().finally(() => {
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
    const hasExpired = performance.now() - this.#renewedAtMs > LEASE_MS
    return this.#isLeader && (this.#db.dialect === 'sqlite' || !hasExpired)
  }

  async stop(): Promise<void> {
    await this.#renewal?.catch(() => undefined)
    if (this.#isLeader && this.#db.dialect === 'postgres')
      await releaseLease(this.#db, LEASE_NAME, this.#holder).catch(() => undefined)
  }

  async #renew(): Promise<void> {
    const startedAtMs = performance.now()
    try {
      this.#isLeader = await acquireLease(this.#db, LEASE_NAME, this.#holder, LEASE_MS)
      this.#renewedAtMs = startedAtMs
    } catch (error) {
      this.#isLeader = false
      throw error
    } finally {
      // Another leader is responsible for them now.
      if (!this.#isLeader) this.#unmarked.clear()
    }
  }
}
