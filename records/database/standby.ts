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

/** `identity`: the same on a primary and its standbys. Positions of other servers say nothing. */
interface State {
  /** A standby has replayed the log up to it. Null: a standby was expected, and the server is a primary. */
  position: number | null
  identity: string
}

const IDENTITY = `
  (select system_identifier from pg_control_system()) || ' ' || current_database() as identity`
const FIND_PRIMARY = `
  select pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as position, ${IDENTITY}`
const FIND_STANDBY = `
  select case when pg_is_in_recovery()
    then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint end as position, ${IDENTITY}`
const ASK_TIMEOUT_MS = 1_000
const STATEMENT_TIMEOUT = '57014'

export class Standby {
  readonly #pool: Knex
  readonly #primary: Knex
  readonly #maxLagMs: number
  /** The positions of the primary within the last `#maxLagMs`, oldest first. Measures the lag without the
   *  clocks of the servers, and also while nothing changes. */
  #marks: { position: number; atMs: number }[] = []
  #identity = ''
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
    const [row] = await select<State>(this.#primary, FIND_PRIMARY, [])
    this.#identity = row?.identity ?? ''
    return Number(row?.position)
  }

  /** Updates `problem`. Call it every second. Never throws. */
  async check(): Promise<void> {
    const atMs = performance.now()
    const position = await this.findPosition().catch(() => undefined)
    this.#marks = this.#marks.filter(this.#isRecent)
    if (position !== undefined) this.#marks.push({ position, atMs })
    try {
      this.#problem = this.#findProblem(await withPooled(this.#pool, findState))
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
        const state = await findState(connection)
        hasResponded = true
        const canRead = this.#findProblem(state) === undefined && Number(state.position) >= position
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

  #findProblem({ position, identity }: State): string | undefined {
    if (position === null) return 'it is a primary'
    const oldest = this.#marks.find(this.#isRecent)
    if (oldest === undefined) return 'the primary does not respond'
    if (identity !== this.#identity) return 'it has another database than DATABASE_URL'
    return position < oldest.position ? `it lags more than ${this.#maxLagMs} ms` : undefined
  }
}

async function withPooled<T>(
  pool: Knex,
  use: (connection: PooledConnection) => Promise<T>,
): Promise<T> {
  const connection = await acquireConnection(pool)
  return use(connection).finally(() => releaseConnection(pool, connection))
}

async function findState(connection: PooledConnection): Promise<State> {
  try {
    const response = await connection.query?.({ text: FIND_STANDBY, query_timeout: ASK_TIMEOUT_MS })
    const [state] = (response as { rows: [State] }).rows
    return state
  } catch (error) {
    // Its response may still come.
    discardConnection(connection, describe(error))
    throw error
  }
}

function describe(error: unknown): string {
  return (error as Error).message || errorCode(error)
}
