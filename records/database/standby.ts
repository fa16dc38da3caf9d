/** Reads on a standby of PostgreSQL. A position counts bytes of the write-ahead log: a standby that has
 *  replayed a position has every change that was committed before. */
import type { Knex } from 'knex'
import { errorCode } from './errors.ts'
import {
  acquireConnection,
  discardConnection,
  type PooledConnection,
  type PoolUse,
  poolUse,
  releaseConnection,
} from './knex-internals.ts'
import { type Sql, select, sqlOn } from './statements.ts'

export interface StandbyPlace {
  /** Of one standby, or of a proxy in front of several. */
  url: string
  /** No read is older than this. */
  maxLagMs: number
}

const FIND_POSITION = `
  select pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as position`
/** Null: the server is a primary. */
const FIND_REPLAYED = `
  select case when pg_is_in_recovery()
    then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint end as position`
const ASK_TIMEOUT_MS = 1_000
const STATEMENT_TIMEOUT = '57014'

export class Standby {
  readonly #pool: Knex
  readonly #primary: Knex
  readonly #maxLagMs: number
  /** The positions of the primary within the last `#maxLagMs`, oldest first. Measures the lag without the
   *  clocks of the servers, and also while nothing changes. */
  #marks: { position: number; atMs: number }[] = []
  #problem: string | undefined = 'it was not asked yet'

  constructor(pool: Knex, primary: Knex, maxLagMs: number) {
    this.#pool = pool
    this.#primary = primary
    this.#maxLagMs = maxLagMs
  }

  /** Why all reads use the primary. Undefined: they use the standby. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The position of the primary, after all that is committed. */
  async findPosition(): Promise<number> {
    const [row] = await select<{ position: number }>(this.#primary, FIND_POSITION, [])
    return Number(row?.position)
  }

  /** Updates `problem`. Call it every second. Never throws. */
  async check(): Promise<void> {
    const atMs = performance.now()
    const position = await this.findPosition().catch(() => undefined)
    this.#marks = this.#marks.filter(this.#isRecent)
    if (position !== undefined) this.#marks.push({ position, atMs })
    try {
      this.#problem = this.#findProblem(await withPooled(this.#pool, findReplayed))
    } catch (error) {
      this.#problem = describe(error)
    }
  }

  /** For reads that need all changes up to `position`. Each statement runs on a standby that has replayed
   *  them and lags at most `maxLagMs`. Without one, or when it fails there, the primary runs it. */
  readerAfter(position: number): Sql {
    return sqlOn(this.#primary, {
      query: (statement: object, done: (error: unknown, result?: unknown) => void) =>
        void this.#run(statement, position).then((result) => done(null, result), done),
    })
  }

  use(): PoolUse {
    return poolUse(this.#pool)
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  async #run(statement: object, position: number): Promise<unknown> {
    const result =
      this.#problem === undefined ? await this.#runOnStandby(statement, position) : undefined
    return result ?? withPooled(this.#primary, async (connection) => connection.query?.(statement))
  }

  /** Undefined: the primary must run the statement. Asks each time, because a proxy may lead each
   *  connection to another standby. */
  async #runOnStandby(statement: object, position: number): Promise<unknown> {
    let hasResponded = false
    try {
      return await withPooled(this.#pool, async (connection) => {
        const replayed = await findReplayed(connection)
        hasResponded = true
        const canRead = this.#findProblem(replayed) === undefined && Number(replayed) >= position
        return canRead ? connection.query?.(statement) : undefined
      })
    } catch (error) {
      // The next reads do not wait for it. `check` finds out when it responds again.
      if (!hasResponded) this.#problem = describe(error)
      // A conflict with the recovery has the code 40001. A statement that took too long would take as
      // long again.
      if (errorCode(error) === STATEMENT_TIMEOUT) throw error
      return undefined
    }
  }

  readonly #isRecent = ({ atMs }: { atMs: number }): boolean =>
    performance.now() - atMs <= this.#maxLagMs

  #findProblem(replayed: number | null): string | undefined {
    if (replayed === null) return 'it is a primary'
    const oldest = this.#marks.find(this.#isRecent)
    if (oldest === undefined) return 'the primary does not respond'
    return replayed < oldest.position ? `it lags more than ${this.#maxLagMs} ms` : undefined
  }
}

async function withPooled<T>(
  pool: Knex,
  use: (connection: PooledConnection) => Promise<T>,
): Promise<T> {
  const connection = await acquireConnection(pool)
  return use(connection).finally(() => releaseConnection(pool, connection))
}

async function findReplayed(connection: PooledConnection): Promise<number | null> {
  try {
    const response = await connection.query?.({
      text: FIND_REPLAYED,
      query_timeout: ASK_TIMEOUT_MS,
    })
    return (response as { rows: { position: number | null }[] }).rows[0]?.position ?? null
  } catch (error) {
    // Its response may still come.
    discardConnection(connection, describe(error))
    throw error
  }
}

function describe(error: unknown): string {
  return (error as Error).message || errorCode(error)
}
