/** The database: one SQLite file (the embedded default) or PostgreSQL, both through knex. The only file that makes a knex. */
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import { type Announcements, createAnnouncements } from './announcements.ts'
import { TunedSqlite } from './sqlite-client.ts'

// Epoch milliseconds and counts are far below 2^53, so int8 may be a number on PostgreSQL as it is on SQLite.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

export interface Db extends Announcements {
  dialect: 'sqlite' | 'postgres'
  /** For reads outside a transaction. On SQLite a pool of read-only connections, so that no reader waits for the writer. */
  read: Knex
  /** For transactions. On SQLite the only connection that writes. */
  write: Knex
  close(): Promise<void>
}

export type DatabaseOptions = { databaseUrl: string } | { dataDir: string }

/** knex would print connection errors on standard output, where only answers belong. They are thrown too, and logged where they are caught. */
const QUIET = {
  warn: () => undefined,
  error: () => undefined,
  deprecate: () => undefined,
  debug: () => undefined,
}

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
export function openDatabase(
  options: DatabaseOptions,
  { queryTimeoutMs }: { queryTimeoutMs?: number } = {},
): Db {
  return 'databaseUrl' in options
    ? openPostgres(options.databaseUrl, queryTimeoutMs)
    : openSqlite(join(options.dataDir, 'muster.sqlite'))
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
  return {
    dialect: 'postgres',
    read: pool,
    write: pool,
    ...createAnnouncements(),
    close: () => pool.destroy(),
  }
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
        afterCreate(
          connection: { exec(sql: string, done: (error: Error | null) => void): void },
          done: (error: Error | null) => void,
        ) {
          connection.exec(pragmas.map((pragma) => `PRAGMA ${pragma};`).join(''), done)
        },
      },
    })
  const common = [
    'journal_mode = WAL',
    'synchronous = FULL',
    'foreign_keys = ON',
    'busy_timeout = 10000',
  ]
  const cached = (kibibytes: number): string => `cache_size = -${kibibytes}`
  const write = open(1, [...common, cached(WRITER_CACHE_KIB)])
  const read = open(SQLITE_READERS, [...common, cached(READER_CACHE_KIB), 'query_only = ON'])
  return {
    dialect: 'sqlite',
    read,
    write,
    ...createAnnouncements(),
    async close() {
      await read.destroy()
      await write.destroy()
    },
  }
}
