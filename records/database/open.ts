/** The database: one SQLite file (the embedded default) or PostgreSQL, both through knex. The only
 *  file that creates a knex. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import { type Announcements, createAnnouncements, NOTIFY_CHANNEL } from './announcements.ts'
import { Backends, type BoundedConfig } from './backends.ts'
import { isDamage } from './errors.ts'
import { closeWhenReadOnly, connectionTo } from './hosts.ts'
import type { NamedStatement } from './inserts.ts'
import {
  PoolerTolerantClient,
  type PoolUse,
  PreparingSqliteClient,
  poolUse,
  runStatement,
} from './knex-internals.ts'
import { type ConnectionLimits, DEFAULT_LIMITS } from './limits.ts'
import { OpenTransactions } from './open-transactions.ts'
import { giveToFolderOwner } from './owner.ts'
import type { PoolerTolerantConnection, Settings } from './pooler.ts'
import { SharedCommits } from './shared-commits.ts'
import { Standby, type StandbyPlace } from './standby.ts'
import type { Dialect, Sql } from './statements.ts'
import { MIN_POSTGRES } from './version.ts'
import { WITHOUT_WAIT } from './without-wait.ts'

// Epoch milliseconds and counts are far below 2^53, so int8 may be a number on PostgreSQL as it is
// on SQLite.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

export interface Db extends Announcements {
  dialect: Dialect
  /** Reads outside a transaction, and on PostgreSQL what a read writes. No reader waits for a writer:
   *  on SQLite, all other connections are read-only. On PostgreSQL, a commit may wait for a
   *  standby. */
  read: Knex & Pick<Sql, 'direct'>
  /** Transactions. On SQLite the only connection that writes. */
  write: Knex & Pick<Sql, 'direct'>
  /** SQLite only. */
  sharedCommits?: SharedCommits
  /** PostgreSQL with DATABASE_READ_URL only: for reads that may be some seconds old. */
  standby?: Standby
  /** A time by the monotonic clock of this process. Each transaction of any node that began before it
   *  has ended. Undefined: PostgreSQL does not say. */
  findOldestTransactionMs(): Promise<number | undefined>
  /** The connection pools by name. */
  pools(): Record<string, PoolUse>
  storage: Storage
  close(): Promise<void>
}

interface Storage {
  /** The last time, by the monotonic clock, that the storage refused a write of this process
   *  because it is full, faulty or read-only. `-Infinity`: never. */
  refusedAtMs: number
  /** The damage that this process has found. */
  damage?: string
}

export interface PostgresPlace {
  databaseUrl: string
  /** The URL without the pooler. Undefined: the same as `databaseUrl`. */
  directUrl?: string
}

export type DatabaseOptions = (PostgresPlace & Partial<ConnectionLimits>) | { dataDir: string }

/** The same database without a pooler in front. */
export function withoutPooler<Options extends DatabaseOptions>(options: Options): Options {
  return 'databaseUrl' in options && options.directUrl !== undefined
    ? { ...options, databaseUrl: options.directUrl }
    : options
}

/** knex prints connection errors on standard output, which is for the output of commands. It also
 *  throws them. */
const NO_LOG = {
  warn: () => undefined,
  error: () => undefined,
  deprecate: () => undefined,
  debug: () => undefined,
}

const SQLITE_READERS = 4
/** Each connection has its own page cache. The operating system caches the file as well, so a miss
 *  is cheap. */
const WRITER_CACHE_KIB = 16_000
const READER_CACHE_KIB = 4_000
/** pg sends statements before earlier ones have completed. knex's types do not declare this setting
 *  of pg. */
const PIPELINED: object = { pipeline: true }
const ACQUIRE_TIMEOUT_MS = 5_000
/** A node that hangs must not keep its rows locked. Less than the default of `lockTimeoutMs`, so that a
 *  request that waits for such a row succeeds. */
const IDLE_IN_TRANSACTION_MS = 8_000
/** A node asks PostgreSQL to cancel a statement this long after PostgreSQL should have cancelled it
 *  by itself. A COMMIT has no `statement_timeout`, and neither has a statement outside a transaction
 *  behind a pooler. */
const CANCEL_MARGIN_MS = 1_000
/** Then the node closes the connection: the server may be gone. */
const GIVE_UP_MARGIN_MS = 2_000
/** The part of the connections that reads have for themselves. */
const READ_PART = 1 / 3

/** PostgreSQL keeps the plans of named statements and of foreign keys. While a table is small, such a
 *  plan reads all of it, and goes on to do so until autovacuum has noticed that the table has grown:
 *  in the first minutes of an installation, each change would read all events and deliveries.
 *  PostgreSQL before 18 overestimates the cost of unavoidable scans, and would compile such queries
 *  if `jit` were on. */
const BY_INDEX: Settings = { enable_seqscan: 'off', jit: 'off' }

interface PostgresUse {
  /** No timeout by default. */
  statementTimeoutMs?: number
  standby?: StandbyPlace
}

export function openDatabase(options: DatabaseOptions, use: PostgresUse = {}): Db {
  return 'databaseUrl' in options
    ? openPostgres(options.databaseUrl, { ...DEFAULT_LIMITS, ...options }, use)
    : openSqlite(sqliteFile(options.dataDir))
}

/** SQLite: opens all connections for reads. Later, the process may lack file descriptors. */
export async function openReaders({ dialect, read }: Db): Promise<void> {
  if (dialect === 'sqlite')
    await Promise.all(Array.from({ length: SQLITE_READERS }, () => read.raw('select 1')))
}

export function sqliteFile(dataDir: string): string {
  return join(dataDir, 'muster.sqlite')
}

function openPostgres(
  databaseUrl: string,
  limits: ConnectionLimits,
  { statementTimeoutMs, standby: place }: PostgresUse,
): Db {
  const readers = Math.max(1, Math.floor(limits.poolSize * READ_PART))
  const open = (poolSize: number, url = databaseUrl, settings: Settings = {}): Knex =>
    openPool(url, { ...limits, poolSize }, { settings, statementTimeoutMs })
  const read = open(readers)
  const write = open(limits.poolSize - readers, databaseUrl, BY_INDEX)
  const standby = place && new Standby(open(readers, place.url), read, place.maxLagMs)
  const announcements = createAnnouncements((messages) => notify(read, messages))
  const openTransactions = new OpenTransactions(read)
  return {
    dialect: 'postgres',
    read,
    write,
    standby,
    ...announcements,
    storage: { refusedAtMs: Number.NEGATIVE_INFINITY },
    findOldestTransactionMs: () => openTransactions.findOldestMs(),
    pools: () => ({
      read: poolUse(read),
      write: poolUse(write),
      ...(standby && { standby: standby.use() }),
    }),
    async close() {
      await announcements.flushNotifications()
      await standby?.close()
      await read.destroy()
      await write.destroy()
    },
  }
}

function openPool(
  databaseUrl: string,
  { poolSize, lockTimeoutMs, keepAliveMs }: ConnectionLimits,
  { settings: extraSettings, statementTimeoutMs }: PostgresUse & { settings: Settings },
): Knex & Pick<Sql, 'direct'> {
  const settings: Settings = {
    ...extraSettings,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    // 0 overrides a timeout that is set for the PostgreSQL user.
    statement_timeout: statementTimeoutMs ?? 0,
  }
  const target = { ...connectionTo(databaseUrl), application_name: 'muster' }
  const backends = new Backends(poolSize, target)
  const bounds: Pick<BoundedConfig, 'backends' | 'cancelAfterMs'> = {
    backends: () => backends,
    cancelAfterMs: statementTimeoutMs && statementTimeoutMs + CANCEL_MARGIN_MS,
  }
  const connection = {
    ...target,
    ...PIPELINED,
    ...bounds,
    connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    query_timeout: statementTimeoutMs && statementTimeoutMs + GIVE_UP_MARGIN_MS,
  }
  const pool = knex({
    client: PoolerTolerantClient,
    // Otherwise, knex asks the first connections for it, and closes none that fails to respond.
    version: String(MIN_POSTGRES),
    compileSqlOnError: false,
    log: NO_LOG,
    connection,
    pool: {
      min: 0,
      max: poolSize,
      afterCreate(connection: PoolerTolerantConnection, done: (error?: Error) => void) {
        closeWhenReadOnly(connection)
        connection.applySettings(settings).then(
          () => done(),
          // The pool does not close a connection that it did not get.
          (error: Error) => connection.end(() => done(error)),
        )
      },
    },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
  })
  // Migrations recognise PostgreSQL by this name, and those that have landed must not change.
  pool.client.config.client = 'pg'
  return Object.assign(pool, {
    direct: (statement: NamedStatement) => runStatement(pool, statement),
  })
}

/** Does not wait for the disk. A crash of PostgreSQL may lose a notification. The nodes also search
 *  the database regularly, and so find what it announced. */
function notify(pool: Knex, messages: string[]): Promise<unknown> {
  return pool.raw(
    `select ${WITHOUT_WAIT}, pg_notify('${NOTIFY_CHANNEL}', message)
     from unnest(?::text[]) as message`,
    [messages],
  )
}

/** The first pragma, because the others may wait for a lock. */
const BUSY_TIMEOUT = 'busy_timeout = 10000'
/** Only for an empty file. In a file with tables, this pragma would not change the mode, and would
 *  lock the file for writing. */
const AUTO_VACUUM = 'auto_vacuum = INCREMENTAL'

/** Otherwise, a statement that changes many pages needs a temporary file. While the process lacks file
 *  descriptors, it would fail, so the service could create records, but not store the results of
 *  their attempts. */
const TEMPORARY_IN_MEMORY = 'temp_store = MEMORY'

function openSqlite(filename: string): Db {
  const open = (connections: number, pragmas: string[]): Knex =>
    knex({
      client: PreparingSqliteClient,
      connection: { filename },
      useNullAsDefault: true,
      // Error messages must not contain values: they include hashes and personal data.
      compileSqlOnError: false,
      log: NO_LOG,
      acquireConnectionTimeout: 15_000,
      pool: {
        // Idle connections stay open: while the process lacks file descriptors, none can be opened.
        min: connections,
        max: connections,
        afterCreate(
          connection: { exec(sql: string, done: (error: Error | null) => void): void },
          done: (error: Error | null) => void,
        ) {
          const isEmpty = (statSync(filename, { throwIfNoEntry: false })?.size ?? 0) === 0
          const all = [BUSY_TIMEOUT, ...(isEmpty ? [AUTO_VACUUM] : []), ...pragmas]
          // Before the first write: SQLite gives the owner of this file the files of the WAL, too.
          if (isEmpty) giveToFolderOwner(filename)
          connection.exec(all.map((pragma) => `PRAGMA ${pragma};`).join(''), done)
        },
      },
    })
  const common = ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']
  const cached = (kibibytes: number): string => `cache_size = -${kibibytes}`
  const write = open(1, [...common, cached(WRITER_CACHE_KIB), TEMPORARY_IN_MEMORY])
  const read = open(SQLITE_READERS, [...common, cached(READER_CACHE_KIB), 'query_only = ON'])
  const sharedCommits = new SharedCommits(write)
  const storage: Storage = { refusedAtMs: Number.NEGATIVE_INFINITY }
  for (const pool of [write, read])
    pool.on('query-error', (error: Error) => {
      if (isDamage(error)) storage.damage ??= error.message
    })
  return {
    dialect: 'sqlite',
    read,
    write,
    sharedCommits,
    ...createAnnouncements(),
    storage,
    findOldestTransactionMs: async () => sharedCommits.openSinceMs ?? performance.now(),
    pools() {
      const { waiting, ...use } = poolUse(write)
      return {
        read: poolUse(read),
        write: { ...use, waiting: waiting + sharedCommits.waiting },
      }
    },
    async close() {
      await read.destroy()
      await write.destroy()
    },
  }
}
