import { createRequire } from 'node:module'
import type { Knex } from 'knex'
import { Held } from './held-transaction.ts'

const require = createRequire(import.meta.url)

type Done = (this: unknown, error: Error | null, result?: unknown) => void

interface Statement {
  all(bindings: unknown[], done: Done): void
  run(bindings: unknown[], done: Done): void
  finalize(): void
}

interface SqliteConnection {
  all(sql: string, bindings: unknown[] | undefined, done: Done): void
  run(sql: string, bindings: unknown[] | undefined, done: Done): void
  prepare(sql: string, done: (error: Error | null) => void): Statement
}

interface SqliteClientClass {
  new (
    config: Knex.Config,
  ): {
    _query(connection: unknown, query: { sql: string }): Promise<unknown>
    destroyRawConnection(connection: SqliteConnection): Promise<void>
  }
}

const SqliteClient = require('knex/lib/dialects/sqlite3/index.js') as SqliteClientClass
const MAX_STATEMENTS = 200
/** Longer ones are made for many rows or ids, and hardly ever come twice. */
const MAX_PREPARED_CHARACTERS = 4_000
/** Of a statement that should not stay prepared either: it would keep the values that it was last run with in memory. */
export const ONCE = { once: true }
const preparedStatements = new WeakMap<SqliteConnection, Map<string, Statement>>()

/** Begins every transaction as a writer, and prepares each statement once per connection: knex and sqlite3 would do it for each query,
 *  which takes about as long as a small query itself. */
export class TunedSqlite extends SqliteClient {
  override async _query(
    connection: SqliteConnection | Held,
    query: { sql: string; options?: Partial<typeof ONCE> },
  ): Promise<unknown> {
    // sqlite3 does not keep the order of what it is given.
    if (connection instanceof Held)
      return connection.follow(this._query(connection.connection as SqliteConnection, query))
    // A deferred transaction that read first would fail with SQLITE_BUSY_SNAPSHOT when another process (a `muster` command beside the
    // server) has written in between.
    if (query.sql === 'BEGIN;') query.sql = 'BEGIN IMMEDIATE;'
    const execute =
      (method: 'all' | 'run') => (sql: string, bindings: unknown[] | undefined, done: Done) => {
        if (sql.length > MAX_PREPARED_CHARACTERS || query.options?.once)
          return connection[method](sql, bindings, done)
        const statements = statementsOf(connection)
        const prepared = statements.get(sql)
        if (prepared) return prepared[method](bindings ?? [], done)
        const statement = connection.prepare(sql, (error) => {
          if (!error) return statement[method](bindings ?? [], done)
          statements.delete(sql)
          done.call(statement, error)
        })
        statements.set(sql, statement)
        forgetOldest(statements)
      }
    return super._query({ all: execute('all'), run: execute('run') }, query)
  }

  /** SQLite does not close a connection that has statements left. */
  override destroyRawConnection(connection: SqliteConnection): Promise<void> {
    for (const statement of statementsOf(connection).values()) statement.finalize()
    preparedStatements.delete(connection)
    return super.destroyRawConnection(connection)
  }
}

function statementsOf(connection: SqliteConnection): Map<string, Statement> {
  const statements = preparedStatements.get(connection) ?? new Map<string, Statement>()
  preparedStatements.set(connection, statements)
  return statements
}

function forgetOldest(statements: Map<string, Statement>): void {
  if (statements.size <= MAX_STATEMENTS) return
  for (const [sql, statement] of statements) {
    statements.delete(sql)
    statement.finalize()
    return
  }
}
