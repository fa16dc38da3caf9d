/** Prepared statements for SQLite, and connections of knex. The only file that relies on private
 *  parts of knex and sqlite3; test/records/knex-internals.test.ts fails when an update changes
 *  them.
 *  - The SQLite client prepares each statement once per connection. Without this, knex and sqlite3
 *    would prepare it for each query, which takes about as long as a small query itself.
 *  - Transactions use a connection of the pool directly. knex.transaction() creates a Knex instance
 *    with over a hundred functions, which costs as much as a small query. The instance stays in
 *    memory until the next full garbage collection. On SQLite, knex.transaction() also rolls back
 *    without waiting for running statements. */
import { createRequire } from 'node:module'
import type { Knex } from 'knex'
import { CollectedInserts, combineInserts, type Insert, type NamedStatement } from './inserts.ts'
import { PoolerTolerantConnection } from './pooler.ts'

type Callback = (this: unknown, error: Error | null, result?: unknown) => void

interface PreparedStatement {
  all(bindings: unknown[], callback: Callback): void
  run(bindings: unknown[], callback: Callback): void
  finalize(): void
}

interface SqliteConnection {
  all(sql: string, bindings: unknown[] | undefined, callback: Callback): void
  run(sql: string, bindings: unknown[] | undefined, callback: Callback): void
  prepare(sql: string, callback: (error: Error | null) => void): PreparedStatement
}

/** A connection of knex's pool, of pg or sqlite3. */
export interface PooledConnection {
  query?(...args: unknown[]): unknown
  /** knex's pool closes a connection with this property instead of reusing it. */
  __knex__disposed?: string
}

export interface PoolUse {
  used: number
  max: number
  /** Queries and transactions that wait for a connection. */
  waiting: number
}

export function poolUse({ client }: Knex): PoolUse {
  const { pool } = client
  return { used: pool.numUsed(), max: pool.max, waiting: pool.numPendingAcquires() }
}

export function acquireConnection({ client }: Knex): Promise<PooledConnection> {
  return client.acquireConnection()
}

export function releaseConnection({ client }: Knex, connection: PooledConnection): void {
  client.releaseConnection(connection)
}

/** PostgreSQL: runs a statement outside of a transaction, without knex, which would cost as much CPU
 *  time as a small statement itself. */
export async function runStatement(
  pool: Knex,
  statement: NamedStatement,
): Promise<{ rows: unknown[] }> {
  const connection = await acquireConnection(pool)
  try {
    // As knex does with its own statements.
    pool.client.emit('query', { sql: statement.text, bindings: statement.values })
    return (await connection.query?.(statement)) as { rows: unknown[] }
  } finally {
    releaseConnection(pool, connection)
  }
}

/** The pool closes the connection when it is released. */
export function discardConnection(connection: PooledConnection, reason: string): void {
  connection.__knex__disposed = reason
}

/** The connection of one transaction. knex hands it to the methods of its client in place of the
 *  pooled connection. A statement that comes after the end of the transaction throws, so it cannot
 *  run in another transaction. */
export class TransactionConnection {
  readonly #connection: PooledConnection
  readonly #running = new Set<Promise<unknown>>()
  readonly #collected = new CollectedInserts()
  #hasEnded = false
  /** SQLite: has the transaction sent a statement other than a select? */
  hasWritten = false
  /** The error of a collected insert. PostgreSQL refuses all later statements of the
   *  transaction. */
  failure: unknown
  /** PostgreSQL: has the transaction sent a statement after its `Opening` (transaction.ts)? */
  isUsed = false

  constructor(connection: PooledConnection) {
    this.#connection = connection
  }

  get pooled(): PooledConnection {
    if (this.#hasEnded) throw new Error('A statement came after the end of its transaction')
    return this.#connection
  }

  /** Called by `direct` and by knex's PostgreSQL client. pg runs queries in the order of the calls,
   *  so the collected inserts run first. */
  query(...args: unknown[]): unknown {
    const { pooled } = this
    void this.sendCollected()
    this.isUsed = true
    return pooled.query?.(...args)
  }

  /** PostgreSQL: runs a statement without knex, which would cost 5 % of the CPU time of a change.
   *  Undefined on SQLite. */
  get direct(): ((statement: NamedStatement) => Promise<{ rows: unknown[] }>) | undefined {
    if (!this.#connection.query) return undefined
    return async (statement) => (await this.query(statement)) as { rows: unknown[] }
  }

  /** PostgreSQL: sends the insert together with the next statement or the end of the transaction.
   *  Once it has collected many rows, it sends them and waits for the result. */
  async collect(insert: Insert): Promise<void> {
    if (this.#hasEnded) throw new Error('An insert came after the end of its transaction')
    const hasManyRows = this.#collected.add(insert)
    if (hasManyRows) await this.sendCollected()
  }

  /** Delays the end of the transaction until the statement has ended. */
  async track<T>(statement: Promise<T>): Promise<T> {
    this.#running.add(statement)
    try {
      return await statement
    } finally {
      this.#running.delete(statement)
    }
  }

  /** Refuses new statements and waits for the tracked ones. */
  async end(): Promise<void> {
    this.#hasEnded = true
    await Promise.allSettled(this.#running)
  }

  /** Forgets the inserts that were not sent, and the error of those that were: a savepoint undoes
   *  them. */
  forgetInserts(): void {
    this.#collected.take()
    this.failure = undefined
  }

  /** Never throws: stores an error in `failure`. */
  async sendCollected(): Promise<void> {
    const inserts = this.#collected.take()
    if (inserts.length === 0) return
    try {
      await this.#connection.query?.(combineInserts(inserts))
    } catch (error) {
      // Any of the inserts may have failed. Each translates only its own errors.
      let translated = error
      for (const { translate } of inserts) if (translate) translated = translate(translated)
      this.failure ??= translated
    }
  }
}

/** knex's types do not declare `_driver`. */
declare class KnexPostgresClient extends Knex.Client {
  _driver(): { Client: unknown }
}

const knexRequire = createRequire(import.meta.url)
const PostgresClient: typeof KnexPostgresClient = knexRequire('knex/lib/dialects/postgres/index.js')

export class PoolerTolerantClient extends PostgresClient {
  override _driver(): { Client: typeof PoolerTolerantConnection } {
    return { Client: PoolerTolerantConnection }
  }

  /** The pool closes a connection that is not valid. */
  override async validateConnection({ isUsable }: PoolerTolerantConnection): Promise<boolean> {
    return isUsable
  }
}

interface SqliteQuery {
  sql: string
  options?: Partial<typeof UNPREPARED>
}

/** knex's types do not declare `_query` and `destroyRawConnection`. */
declare class KnexSqliteClient extends Knex.Client {
  _query(connection: unknown, query: SqliteQuery): Promise<unknown>
  destroyRawConnection(connection: unknown): Promise<void>
}

const SqliteClient: typeof KnexSqliteClient = knexRequire('knex/lib/dialects/sqlite3/index.js')

/** Query options that keep a statement from being prepared: a prepared statement keeps its last
 *  values in memory. */
export const UNPREPARED = { unprepared: true }
const MAX_PREPARED_STATEMENTS = 200
/** Longer statements have a placeholder for each of many rows or IDs, and are rarely repeated. */
const MAX_PREPARED_SQL_LENGTH = 4_000

const preparedByConnection = new WeakMap<SqliteConnection, Map<string, PreparedStatement>>()

export class PreparingSqliteClient extends SqliteClient {
  override async _query(
    connection: SqliteConnection | TransactionConnection,
    query: SqliteQuery,
  ): Promise<unknown> {
    // sqlite3 runs statements in parallel, so the end of the transaction has to wait for them.
    if (connection instanceof TransactionConnection) {
      connection.hasWritten ||= !query.sql.startsWith('select')
      return connection.track(this._query(connection.pooled as SqliteConnection, query))
    }
    return super._query(withPreparedStatements(connection, query.options?.unprepared), query)
  }

  /** SQLite does not close a connection that has open statements. */
  override destroyRawConnection(connection: SqliteConnection): Promise<void> {
    for (const statement of preparedStatements(connection).values()) statement.finalize()
    preparedByConnection.delete(connection)
    return super.destroyRawConnection(connection)
  }
}

/** SQLite: runs a statement that has no values and returns no rows. */
export function sendStatement(connection: PooledConnection, sql: string): Promise<void> {
  const { run } = withPreparedStatements(connection as unknown as SqliteConnection)
  return new Promise((resolve, reject) =>
    run(sql, [], (error) => (error ? reject(error) : resolve())),
  )
}

/** The two methods that knex calls, with prepared statements. */
function withPreparedStatements(
  connection: SqliteConnection,
  isUnprepared = false,
): Pick<SqliteConnection, 'all' | 'run'> {
  const execute =
    (method: 'all' | 'run'): SqliteConnection['all'] =>
    (sql, bindings, callback) => {
      if (sql.length > MAX_PREPARED_SQL_LENGTH || isUnprepared)
        return connection[method](sql, bindings, callback)
      const statements = preparedStatements(connection)
      const prepared = statements.get(sql)
      if (prepared) return prepared[method](bindings ?? [], callback)
      const statement = connection.prepare(sql, (error) => {
        if (!error) return statement[method](bindings ?? [], callback)
        statements.delete(sql)
        callback.call(statement, error)
      })
      statements.set(sql, statement)
      if (statements.size > MAX_PREPARED_STATEMENTS) finalizeOldest(statements)
    }
  return { all: execute('all'), run: execute('run') }
}

function preparedStatements(connection: SqliteConnection): Map<string, PreparedStatement> {
  const statements = preparedByConnection.get(connection) ?? new Map<string, PreparedStatement>()
  preparedByConnection.set(connection, statements)
  return statements
}

function finalizeOldest(statements: Map<string, PreparedStatement>): void {
  const [oldest] = statements
  if (!oldest) return
  const [sql, statement] = oldest
  statements.delete(sql)
  statement.finalize()
}
