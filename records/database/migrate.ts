import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type pg from 'pg'
import { Refused } from '../../errors.ts'
import { withConnection } from './connection.ts'
import { errorCode } from './errors.ts'
import { connectionTo } from './hosts.ts'
import { acquireFileLock } from './lock.ts'
import { type Migration, readMigrations } from './migration-files.ts'
import { type DatabaseOptions, type Db, type PostgresPlace, withoutPooler } from './open.ts'
import { assertSupported } from './version.ts'

/** PostgreSQL advisory lock: any number that nothing else locks. */
const SETUP_LOCK_KEY = 4_687_787
const LOCK_WAIT_MS = 60_000
const LOCK_RETRY_MS = 100
const CONNECT_TIMEOUT_MS = 10_000

const OLDER_THAN_FIRST_RELEASE =
  'This database is older than the first release of Muster and cannot be upgraded: set DATA_DIR to a new ' +
  'folder, or DATABASE_URL to an empty database.'

type AppliedMigration = Pick<Migration, 'name' | 'checksum'>

/** Runs `work` under a lock of the installation: several nodes may start at the same time. Throws
 *  `Refused` when another process holds the lock for a minute. */
export function withSetupLock<T>(database: DatabaseOptions, work: () => Promise<T>): Promise<T> {
  return 'dataDir' in database
    ? withFileLock(join(database.dataDir, 'setup.lock'), work)
    : withAdvisoryLock(withoutPooler(database), work)
}

async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = await acquireFileLock(file, LOCK_WAIT_MS)
  return work().finally(() => lock.release())
}

/** Uses a connection of its own: the lock ends with it, also when this process is killed. The lock
 *  belongs to a transaction, because a pooler in transaction mode shares sessions. */
function withAdvisoryLock<T>(database: PostgresPlace, work: () => Promise<T>): Promise<T> {
  const config = {
    ...connectionTo(database.databaseUrl),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  }
  return withConnection(config, async (client) => {
    await assertSupported(async (text) => (await client.query(text)).rows)
    await acquireAdvisoryLock(client)
    return work().finally(() => client.query('commit').catch(() => undefined))
  })
}

/** Begins the transaction that holds the lock. Between two tries no transaction is open. Otherwise,
 *  behind a pooler, waiting nodes could occupy all connections to PostgreSQL. */
async function acquireAdvisoryLock(client: pg.Client): Promise<void> {
  const deadlineMs = performance.now() + LOCK_WAIT_MS
  while (performance.now() < deadlineMs) {
    await client.query('begin; set local idle_in_transaction_session_timeout = 0')
    // Without parameters, because PostgreSQL would keep the snapshot of a statement with parameters, and
    // `create index concurrently` would wait for the end of this transaction.
    const { rows } = await client.query(
      `select pg_try_advisory_xact_lock(${SETUP_LOCK_KEY}) as locked`,
    )
    if (rows[0].locked) return
    await client.query('rollback')
    await delay(LOCK_RETRY_MS)
  }
  throw new Refused(
    `Another process has been setting up the database for ${LOCK_WAIT_MS / 1_000} s. ` +
      'Start again when it has finished.',
  )
}

/** Runs the pending migrations and returns their names. Call it inside `withSetupLock`. Throws
 *  `Refused` when the file of a migration has changed or is missing, when the database ran a
 *  different migration, and when the database is older than the first release. */
export async function migrate(db: Db): Promise<string[]> {
  await createMigrationsTable(db)
  const pending = await listPending(db)
  if (db.dialect === 'sqlite') {
    // The index of a large table must not be built in memory.
    await db.write.raw('pragma temp_store = FILE')
    // A migration that replaces a table drops the old one, which must not delete the rows that refer to it. The
    // pragma has no effect in a transaction.
    await db.write.raw('pragma foreign_keys = off')
  }
  for (const { name, checksum, load } of pending) {
    const { up, isConcurrent = false } = await load()
    const run = async (knex: Knex): Promise<void> => {
      await up(knex).catch(async (error) => {
        throw await toRefusal(knex, name, error)
      })
      await knex('migrations').insert({ name, checksum, applied_at: Date.now() })
    }
    const isAlone = isConcurrent && db.dialect === 'postgres'
    await (isAlone ? run(db.write) : db.write.transaction(run))
  }
  if (db.dialect === 'sqlite') await db.write.raw('pragma foreign_keys = on')
  return pending.map(({ name }) => name)
}

/** Says what to do about a row that another program has stored, and that breaks a key of a migration. */
async function toRefusal(knex: Knex, name: string, error: unknown): Promise<unknown> {
  const reason = await findBrokenKey(knex, error)
  if (reason === undefined) return error
  return new Refused(
    `The migration ${name} has changed nothing. ${reason} Correct or delete the row, with psql or sqlite3. ` +
      'Then run the command again.',
    { cause: error },
  )
}

async function findBrokenKey(knex: Knex, error: unknown): Promise<string | undefined> {
  const { table, detail } = error as { table?: string; detail?: string }
  const code = errorCode(error)
  if (code === '23503') return `A row of the table ${table} breaks a new key. ${detail}`
  // On SQLite, a migration looks for such rows by itself, because keys are off. An error of SQLite has a code.
  if (code !== '' || knex.client.config.client === 'pg') return undefined
  const [row] = await knex.raw('pragma foreign_key_check')
  return (
    row &&
    `Row ${row.rowid} of the table ${row.table} refers to no row of its account in ${row.parent}.`
  )
}

/** The names of the migrations that have not run. Changes nothing. Throws `Refused` as `migrate`
 *  does. */
export async function listPendingMigrations(db: Db): Promise<string[]> {
  const pending = (await hasMigrationsTable(db)) ? await listPending(db) : await readMigrations()
  return pending.map(({ name }) => name)
}

async function listPending({ write }: Db): Promise<Migration[]> {
  const migrations = await readMigrations()
  const applied: AppliedMigration[] = await write('migrations').select('name', 'checksum')
  assertSameMigrations(migrations, applied)
  return migrations.filter(({ name }) => !applied.some((other) => other.name === name))
}

/** Throws `Refused` for a database older than the first release whose table has another name. */
export async function hasMigrationsTable({ write }: Db): Promise<boolean> {
  if (await write.schema.hasTable('migrations')) return true
  if (await write.schema.hasTable('knex_migrations')) throw new Refused(OLDER_THAN_FIRST_RELEASE)
  return false
}

async function createMigrationsTable(db: Db): Promise<void> {
  if (await hasMigrationsTable(db)) return
  const { dialect, write } = db
  const textType = dialect === 'postgres' ? 'text collate "C"' : 'text'
  await write.schema.createTable('migrations', (table) => {
    table.specificType('name', textType).primary()
    table.specificType('checksum', textType).notNullable()
    table.bigInteger('applied_at').notNullable()
  })
}

/** Accepts applied migrations that are newer than this version: during an upgrade, old and new
 *  nodes share the database. */
function assertSameMigrations(migrations: Migration[], applied: AppliedMigration[]): void {
  const oldest = migrations.at(0)?.name ?? ''
  if (applied.some(({ name }) => name < oldest)) throw new Refused(OLDER_THAN_FIRST_RELEASE)
  const newest = migrations.at(-1)?.name ?? ''
  for (const { name, checksum } of applied) {
    const file = migrations.find((migration) => migration.name === name)
    const isExpected = file ? file.checksum === checksum : name >= newest
    if (!isExpected)
      throw new Refused(
        `The database ran a migration ${name} that differs from the one of this version. ` +
          'Start the version of Muster that last ran on this database, or restore a backup.',
      )
  }
}
