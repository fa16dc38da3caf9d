/** The database: one SQLite file (the embedded default) or PostgreSQL, both through knex. The only file that makes a knex. */
import { hash, randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import { Held, holdTransaction, type Sql } from './held-transaction.ts'
import type { PlannedAttempt } from './planned-attempts.ts'

export type { Sql }

// Epoch milliseconds and counts are far below 2^53, so int8 may be a number on PostgreSQL as it is on SQLite.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const require = createRequire(import.meta.url)

export interface Db {
  dialect: 'sqlite' | 'postgres'
  /** For reads outside a transaction. On SQLite a pool of read-only connections, so that no reader waits for the writer. */
  read: Knex
  /** For transactions. On SQLite the only connection that writes. */
  write: Knex
  /** Called after each commit that made work due, in this process. On PostgreSQL other nodes hear of it by NOTIFY. */
  onDue: Set<DueListener>
  /** What this process's own NOTIFYs begin with, which it hears too. */
  notifier: string
  close(): Promise<void>
}

/** An open transaction. */
export interface Trx {
  dialect: Db['dialect']
  sql: Sql
  /** Calls `listener` once it is committed or undone. */
  onEnd(listener: () => void): void
  /** Tells the delivery engine, after the commit, that work is due now. Cheap to call many times. `planned`: the attempts that are, unless it
   *  should rather look for them. */
  markDue(work: Due, planned?: PlannedAttempt[]): void
}

/** Work that waits for the delivery engine: attempts that were planned, attempts that are in the queue, or jobs in the background. */
export type Due = 'attempts' | 'queued' | 'jobs'
/** `planned`: all attempts that the commit has made due. Undefined: they are to be looked for. */
export type DueListener = (work: Due, planned?: PlannedAttempt[]) => void

/** The channel on which PostgreSQL tells every worker node what is due: the notifier, a space, and the work. */
export const DUE_CHANNEL = 'muster_due'

export type DatabaseOptions = { databaseUrl: string } | { dataDir: string }

/** knex would print connection errors on standard output, where only answers belong. They are thrown too, and logged where they are caught. */
const QUIET = { warn: () => undefined, error: () => undefined, deprecate: () => undefined, debug: () => undefined }

const MAX_INSERTED_ROWS = 500
/** An insert of so many comes again and again: PostgreSQL plans it once per connection. */
const FEW_ROWS = 8
/** Attempts that a commit names. More are looked for. */
const MAX_HANDED = 1_000
const SQLITE_READERS = 4
/** Each connection fills its own as the file grows, and beneath them the system caches the same file: a page that a reader lacks is not far. */
const WRITER_CACHE_KIB = 32_000
const READER_CACHE_KIB = 8_000
const POSTGRES_CONNECTIONS = 12
/** Statements are sent while those before them are under way. A setting of pg that knex's types do not know. */
const PIPELINED: object = { pipeline: true }
const ACQUIRE_TIMEOUT_MS = 5_000
const LOCK_TIMEOUT_MS = 10_000

/** `queryTimeoutMs`: on PostgreSQL, when a query is given up; never, unless given. SQLite has its own file and is never away. */
export function openDatabase(options: DatabaseOptions, { queryTimeoutMs }: { queryTimeoutMs?: number } = {}): Db {
  return 'databaseUrl' in options ? openPostgres(options.databaseUrl, queryTimeoutMs) : openSqlite(join(options.dataDir, 'muster.sqlite'))
}

function openPostgres(connection: string, queryTimeoutMs?: number): Db {
  const pool = knex({
    client: 'pg',
    compileSqlOnError: false,
    log: QUIET,
    connection: {
      connectionString: connection,
      application_name: 'muster',
      ...PIPELINED,
      connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS,
      query_timeout: queryTimeoutMs,
      // A request that waits for another's row longer than this is better answered with 503; a node that hangs must not keep rows locked.
      options: `-c lock_timeout=${LOCK_TIMEOUT_MS} -c idle_in_transaction_session_timeout=${2 * LOCK_TIMEOUT_MS}`,
    },
    pool: { min: 0, max: POSTGRES_CONNECTIONS },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
  })
  return { dialect: 'postgres', read: pool, write: pool, onDue: new Set(), notifier: randomUUID(), close: () => pool.destroy() }
}

function openSqlite(filename: string): Db {
  const open = (max: number, pragmas: string[]): Knex =>
    knex({
      client: TunedSqlite as unknown as typeof Knex.Client,
      connection: { filename },
      useNullAsDefault: true,
      // The values of a statement that fails are nobody's business: among them are hashes and people's data.
      compileSqlOnError: false,
      log: QUIET,
      acquireConnectionTimeout: 15_000,
      pool: {
        min: 1,
        max,
        afterCreate(connection: { exec(sql: string, done: (error: Error | null) => void): void }, done: (error: Error | null) => void) {
          connection.exec(pragmas.map((pragma) => `PRAGMA ${pragma};`).join(''), done)
        },
      },
    })
  const common = ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON', 'busy_timeout = 10000']
  const cached = (kibibytes: number): string => `cache_size = -${kibibytes}`
  const write = open(1, [...common, cached(WRITER_CACHE_KIB)])
  const read = open(SQLITE_READERS, [...common, cached(READER_CACHE_KIB), 'query_only = ON'])
  return {
    dialect: 'sqlite',
    read,
    write,
    onDue: new Set(),
    notifier: '',
    async close() {
      await read.destroy()
      await write.destroy()
    },
  }
}

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
class TunedSqlite extends SqliteClient {
  override async _query(connection: SqliteConnection | Held, query: { sql: string; options?: Partial<typeof ONCE> }): Promise<unknown> {
    // sqlite3 does not keep the order of what it is given.
    if (connection instanceof Held) return connection.follow(this._query(connection.connection as SqliteConnection, query))
    // A deferred transaction that read first would fail with SQLITE_BUSY_SNAPSHOT when another process (a `muster` command beside the
    // server) has written in between.
    if (query.sql === 'BEGIN;') query.sql = 'BEGIN IMMEDIATE;'
    const execute = (method: 'all' | 'run') => (sql: string, bindings: unknown[] | undefined, done: Done) => {
      if (sql.length > MAX_PREPARED_CHARACTERS || query.options?.once) return connection[method](sql, bindings, done)
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

/** PostgreSQL: deadlock_detected and serialization_failure. The transaction is undone and may simply be run again. */
const RETRYABLE = new Set(['40P01', '40001'])

/** Runs `work` in one transaction and commits it. Whatever `work` throws undoes all of it. */
export async function transaction<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transactOnce(db, work)
    } catch (error) {
      if (attempt === 3 || !RETRYABLE.has(errorCode(error))) throw error
    }
  }
}

async function transactOnce<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  const due = new Map<Due, PlannedAttempt[] | undefined>()
  const ended: (() => void)[] = []
  const trx = {
    dialect: db.dialect,
    onEnd: (listener: () => void) => void ended.push(listener),
    markDue(work: Due, planned?: PlannedAttempt[]) {
      const all = due.has(work) ? due.get(work)?.concat(planned ?? []) : planned
      due.set(work, planned && all && all.length <= MAX_HANDED ? all : undefined)
    },
  }
  // NOTIFY is sent by the commit itself, so a node that dies right after it has still told the workers.
  const notifications = () => (db.dialect === 'postgres' ? [...due.keys()].map((work) => notification(db, work)) : [])
  try {
    const result = await holdTransaction(db.write, { last: notifications }, (sql) => work({ ...trx, sql }))
    for (const [work, planned] of due) for (const listener of db.onDue) listener(work, planned)
    return result
  } finally {
    for (const listener of ended) listener()
  }
}

/** PostgreSQL alone: what `use` does at once is done before anybody else can change the rows that `read` has locked. BEGIN and the reads are sent
 *  together, which saves a round trip, so `read` must not write. Tries once. */
export function whileLocked<T>(
  db: Db,
  read: (source: Pick<Trx, 'dialect' | 'sql'>) => Promise<T>,
  use: (result: T) => void,
): Promise<void> {
  return holdTransaction(db.write, { readsAhead: true }, async (sql, begun) => {
    const result = await read({ dialect: db.dialect, sql })
    await begun
    use(result)
  })
}

/** PostgreSQL alone. Heard by this node too, as its own. */
export async function notifyNodes(db: Db, work: Due): Promise<void> {
  await db.write.raw(notification(db, work))
}

function notification({ notifier }: Db, work: Due): string {
  return `NOTIFY ${DUE_CHANNEL}, '${notifier} ${work}'`
}

/** The rows of a statement in plain text. `name`: PostgreSQL plans it once per connection. */
export async function select<Row>(sql: Sql, text: string, bindings: (string | number)[], name?: string): Promise<Row[]> {
  const query = sql.raw(text, bindings)
  const result: Row[] | { rows: Row[] } = await (name === undefined ? query : query.options({ name }))
  return Array.isArray(result) ? result : result.rows
}

/** Statements that need no answers of each other, in their order. PostgreSQL is sent all of a transaction's at once. */
export async function inOrder<Results extends unknown[]>(
  { dialect }: Pick<Trx, 'dialect'>,
  ...statements: { [Index in keyof Results]: () => Promise<Results[Index]> }
): Promise<Results> {
  if (dialect === 'postgres') return Promise.all(statements.map((run) => run())) as Promise<Results>
  const results: unknown[] = []
  for (const run of statements) results.push(await run())
  return results as Results
}

/** An insert of so many rows as one list of values: for SQLite knex would write a query for each row, which takes a fifth more of the CPU. */
export function insertText(table: string, columns: string[], rows: number): string {
  const row = `(${columns.map(() => '?').join(',')})`
  return `insert into ${table} (${columns.map((column) => `"${column}"`).join(',')}) values ${new Array(rows).fill(row).join(',')}`
}

async function insertRows(sql: Sql, table: string, columns: string[], rows: Record<string, unknown>[]): Promise<void> {
  const values = rows.flatMap((row) => columns.map((column) => row[column]))
  const text = insertText(table, columns, rows.length)
  const insert = sql.raw(text, values as Knex.RawBinding[])
  await (rows.length <= FEW_ROWS ? insert.options({ name: hash('sha1', text) }) : insert)
}

/** Everything a query may touch on behalf of one account. Handlers get this and never a bare connection,
 *  so a query that forgets the account cannot be written there. */
export interface Scope {
  accountId: string
  dialect: Db['dialect']
  sql: Sql
  /** The account's rows of a table. */
  rows(table: string): Knex.QueryBuilder
  /** Inserts rows as the account's own. */
  insert(table: string, rows: Record<string, unknown> | Record<string, unknown>[]): Promise<void>
}

export function accountScope(source: { dialect: Db['dialect']; sql: Sql }, accountId: string): Scope {
  const { dialect, sql } = source
  return {
    accountId,
    dialect,
    sql,
    rows: (table) => sql(table).where(`${table}.account_id`, accountId),
    async insert(table, rows) {
      const own = (Array.isArray(rows) ? rows : [rows]).map((row) => ({ ...row, account_id: accountId }))
      const columns = Object.keys(own[0] ?? {})
      // SQLite takes at most 32,766 variables in a statement.
      const size = Math.min(MAX_INSERTED_ROWS, Math.max(1, Math.floor(30_000 / columns.length)))
      const inserts: (() => Promise<void>)[] = []
      for (let from = 0; from < own.length; from += size) inserts.push(() => insertRows(sql, table, columns, own.slice(from, from + size)))
      await inOrder(source, ...inserts)
    },
  }
}

/** The scope of an account inside a transaction that can also make attempts due. */
export interface WriteScope extends Scope {
  trx: Trx
}

export function writeScope(trx: Trx, accountId: string): WriteScope {
  return { ...accountScope(trx, accountId), trx }
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** The unique index that a write ran into, or undefined for any other error.
 *  SQLite names the columns ("participants.account_id, participants.email_key"), PostgreSQL the constraint: both hold the column's name. */
export function uniqueViolation(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (errorCode(error) === '23505') return String((error as Error & { constraint?: string }).constraint)
  return error.message.match(/UNIQUE constraint failed: (.*)$/)?.[1]
}

/** Is the database out of reach or overloaded, so that the same request may succeed later (503)? */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  return (
    error.name === 'KnexTimeoutError' ||
    // PostgreSQL: connection exceptions, too many connections, disk full, shutting down or starting up, closed to connections, locked, read-only.
    /^(08...|53[0-4]00|57P0[1-5]|55000|55P03|25P03|3D000|25006|40P01|40001)$/.test(code) ||
    /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/.test(code) ||
    /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY)/.test(code) ||
    /Connection terminated|is not queryable|timeout expired|Query read timeout|timeout exceeded when trying to connect|Unable to acquire a connection|^aborted$/.test(
      error.message,
    )
  )
}

/** A statement's `from`: the rows of one JSON parameter, as `given`. One parameter however many rows, and one plan. */
export function given(dialect: Db['dialect'], columns: Record<string, string>): string {
  const names = Object.keys(columns)
  return dialect === 'postgres'
    ? `json_to_recordset(?::json) as given(${names.map((name) => `"${name}" ${columns[name]}`).join(', ')})`
    : `(select ${names.map((name) => `json_extract(value, '$.${name}') as "${name}"`).join(', ')} from json_each(?)) as given`
}
