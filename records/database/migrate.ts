import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { acquireFileLock } from './lock.ts'
import type { DatabaseOptions, Db } from './open.ts'

/** PostgreSQL advisory lock: any number that nothing else locks. */
const SETUP_LOCK_KEY = 4_687_787
const LOCK_WAIT_MS = 60_000
const CONNECT_TIMEOUT_MS = 10_000

/** Runs `work` while no other process of this installation does: several nodes may start at the same time. */
export function withSetupLock<T>(database: DatabaseOptions, work: () => Promise<T>): Promise<T> {
  return 'dataDir' in database
    ? withFileLock(join(database.dataDir, 'setup.lock'), work)
    : withAdvisoryLock(database.databaseUrl, work)
}

async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = await acquireFileLock(file, LOCK_WAIT_MS)
  return work().finally(() => lock.release())
}

/** Uses an own connection: the lock ends with it, also when this process is killed. */
async function withAdvisoryLock<T>(databaseUrl: string, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  })
  await client.connect()
  try {
    await client.query(`set lock_timeout = ${LOCK_WAIT_MS}`)
    await client.query('select pg_advisory_lock($1)', [SETUP_LOCK_KEY])
    return await work()
  } finally {
    await client.end()
  }
}

/** Runs the pending migrations and returns their names. Call it inside `withSetupLock`. */
export async function migrate(db: Db): Promise<string[]> {
  const config = {
    directory: join(fileURLToPath(new URL('..', import.meta.url)), 'migrations'),
    loadExtensions: ['.ts'],
  }
  // The setup lock is the real lock. knex's own lock row is stale after a process was killed during a
  // migration.
  await db.write.migrate.forceFreeMigrationsLock(config)
  const [, names] = (await db.write.migrate.latest(config)) as [number, string[]]
  return names
}
