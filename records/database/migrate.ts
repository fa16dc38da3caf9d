import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { acquireFileLock } from './lock.ts'
import type { Db } from './open.ts'

/** Any fixed number: the key of the advisory lock under which one node at a time migrates and sets up. */
const SETUP_LOCK = 4_687_787
const WAIT_MS = 60_000

/** Runs `work` while no other process of this installation does: several nodes may start at once. */
export async function whileAlone<T>(
  where: { databaseUrl: string } | { dataDir: string },
  work: () => Promise<T>,
): Promise<T> {
  if ('dataDir' in where) {
    const lock = await acquireFileLock(join(where.dataDir, 'setup.lock'), WAIT_MS)
    return work().finally(() => lock.release())
  }
  // A connection of its own: the lock ends with it, also when this process is killed.
  const client = new pg.Client({
    connectionString: where.databaseUrl,
    connectionTimeoutMillis: 10_000,
  })
  await client.connect()
  try {
    await client.query(`set lock_timeout = ${WAIT_MS}`)
    await client.query('select pg_advisory_lock($1)', [SETUP_LOCK])
    return await work()
  } finally {
    await client.end()
  }
}

/** Brings the tables up to date; returns the names of the migrations it ran. Call it inside `whileAlone`. */
export async function migrate(db: Db): Promise<string[]> {
  const config = {
    directory: join(fileURLToPath(new URL('..', import.meta.url)), 'migrations'),
    loadExtensions: ['.ts'],
  }
  // We hold the real lock. What knex's own lock table says is left over from a process killed in a migration.
  await db.write.migrate.forceFreeMigrationsLock(config)
  const [, names] = (await db.write.migrate.latest(config)) as [number, string[]]
  return names
}
