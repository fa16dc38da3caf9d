/** Finds the oldest transaction of all nodes on PostgreSQL. */
import type { Knex } from 'knex'
import { select } from './statements.ts'

/** Lists read the result at most this often, so that they cost no statement each. */
const KEEP_MS = 1_000

/** The sessions of all nodes have the same database and name. Null if PostgreSQL does not track sessions: otherwise,
 *  `min` covers the session of this statement. Also null if another user has such a session, because PostgreSQL hides
 *  the transactions of other users. */
const OLDEST_AGE = `
  select case when bool_and(usename = current_user)
    then (extract(epoch from clock_timestamp() - min(xact_start)) * 1000)::float8 end as age_ms
  from pg_stat_activity
  where datname = current_database() and application_name = current_setting('application_name')`

export class OpenTransactions {
  readonly #pool: Knex
  #latest: { result: Promise<number | undefined>; askedAtMs: number } | undefined

  constructor(pool: Knex) {
    this.#pool = pool
  }

  /** A time by the monotonic clock of this process. Each transaction that began before it has ended. The result may
   *  be a second old. Undefined: PostgreSQL does not say. */
  findOldestMs(): Promise<number | undefined> {
    const askedAtMs = performance.now()
    if (this.#latest && askedAtMs - this.#latest.askedAtMs < KEEP_MS) return this.#latest.result
    const latest = { result: this.#read(askedAtMs), askedAtMs }
    this.#latest = latest
    latest.result.catch(() => {
      if (this.#latest === latest) this.#latest = undefined
    })
    return latest.result
  }

  async #read(askedAtMs: number): Promise<number | undefined> {
    const [row] = await select<{ age_ms: number | null }>(this.#pool, OLDEST_AGE, [])
    return row?.age_ms == null ? undefined : askedAtMs - row.age_ms
  }
}
