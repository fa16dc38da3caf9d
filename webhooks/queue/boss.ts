/** pg-boss on PostgreSQL, or on embedded PostgreSQL in memory. Only queue/ imports pg-boss. */

import { hash } from 'node:crypto'
import type pg from 'pg'
import { type ConstructorOptions, fromPglite, PgBoss, systemClock } from 'pg-boss'
import type { Logger } from 'pino'
import { Backends, BoundedConnection } from '../../records/database/backends.ts'
import { closeWhenReadOnly, connectionTo } from '../../records/database/hosts.ts'
import type { PoolUse } from '../../records/database/knex-internals.ts'
import { type ConnectionLimits, DEFAULT_LIMITS } from '../../records/database/limits.ts'
import { type Pglite, type RunningPglite, startPglite, type Thread } from './pglite.ts'

/** The database of the queue. */
export interface QueuePlace
  extends Partial<Pick<ConnectionLimits, 'queuePoolSize' | 'keepAliveMs'>> {
  /** Undefined: embedded PostgreSQL. Required when the records are in PostgreSQL. */
  databaseUrl?: string
  /** Embedded PostgreSQL that was started before. */
  thread?: Promise<Thread>
}

export interface BossOptions extends QueuePlace {
  log: Logger
}

export interface Boss {
  jobs: PgBoss
  /** Undefined with DATABASE_URL. */
  embedded?: RunningPglite
  /** Creates a queue, and creates it again after every restart of embedded PostgreSQL. */
  addQueue(name: string, settings: QueueSettings): Promise<void>
  /** The connection pools by name. Embedded PostgreSQL has none. */
  pools(): Record<string, PoolUse>
  stop(graceMs: number): Promise<void>
}

interface QueueSettings {
  policy: 'standard' | 'exclusive'
  retryLimit: number
  expireInSeconds: number
}

/** A lease expires when it is not renewed for this long. pg-boss allows no less than 10. */
const LEASE_SECONDS = 10
/** A worker that hangs while it leases must not keep the attempts locked. */
const LEASING_SETTINGS = { idle_in_transaction_session_timeout: LEASE_SECONDS * 1_000 }
/** How often pg-boss looks for expired leases. One process at a time does so. If that process dies,
 *  another one begins within twice this time. */
const SUPERVISE_SECONDS = 2
/** Effectively unlimited: pg-boss need not warn of a long queue. */
const WARNING_QUEUE_SIZE = 1_000_000
/** Leases that a database crash loses are simply repeated, so commits need not wait for the disk.
 *  The table of jobs is empty one moment and full the next, so planner statistics are useless.
 *  Without the `enable_` settings, each lease reads and sorts the whole queue instead of its first
 *  rows by index. With these settings, PostgreSQL before 18 overestimates the cost of unavoidable
 *  sequential scans, and would compile such queries if `jit` were on. */
const SESSION_SETTINGS = {
  synchronous_commit: 'off',
  enable_bitmapscan: 'off',
  enable_seqscan: 'off',
  jit: 'off',
}
/** PGlite is in memory, so WAL is useless. Queues are never deleted, so the foreign keys to them
 *  are useless, too: checking them costs 10 % per job. */
const REMOVE_OVERHEAD = `
  alter table pgboss.job_common set unlogged;
  alter table pgboss.job_common
    drop constraint if exists q_fkey, drop constraint if exists dlq_fkey`
/** A lost connection must not block the workers for ever. Even the migrations of pg-boss take less
 *  than 30 seconds. */
const CONNECTION_LIMITS = {
  connectionTimeoutMillis: 5_000,
  query_timeout: 30_000,
}

/** pg-boss looks for expired leases when its clock shows a certain time. With the clock of the
 *  machine, pg-boss would wait for hours if that clock went back by hours. If it went back by more
 *  than 24 days, pg-boss would wait in a busy loop: Node.js turns a timer of more than 24 days into
 *  one of 1 ms. */
const STEADY_CLOCK = { ...systemClock, now: () => performance.timeOrigin + performance.now() }

/** With this setting, pg sends statements before earlier ones have completed. The types of pg do
 *  not declare it. */
const PIPELINED: object = { pipeline: true }

export async function startBoss(options: BossOptions): Promise<Boss> {
  const { databaseUrl, thread, log } = options
  const queues = new Map<string, QueueSettings>()
  // The pg-boss of `jobs` does not notice a restart, so a temporary one creates the queues again.
  const rebuild = async (fresh: Pglite): Promise<void> => {
    const rebuilding = createBoss({ db: fromPglite(fresh), backend: 'pglite' }, log)
    try {
      await rebuilding.start()
      await fresh.exec(REMOVE_OVERHEAD)
      for (const [name, settings] of queues) await createQueue(rebuilding, name, settings)
    } finally {
      await rebuilding.stop({ graceful: false })
    }
  }
  const embedded =
    databaseUrl === undefined
      ? await startPglite({ settings: SESSION_SETTINGS, thread, rebuild, log })
      : undefined
  const jobs = createBoss(
    embedded
      ? { db: fromPglite(embedded), backend: 'pglite' }
      : connectionOptions(options, options.queuePoolSize ?? DEFAULT_LIMITS.queuePoolSize),
    log,
  )
  try {
    await jobs.start()
    await embedded?.exec(REMOVE_OVERHEAD)
  } catch (error) {
    await jobs.stop({ graceful: false }).catch(() => undefined)
    await embedded?.stop()
    throw error
  }
  return {
    jobs,
    embedded,
    async addQueue(name, settings) {
      queues.set(name, settings)
      await createQueue(jobs, name, settings)
    },
    pools: () => findPools(jobs),
    async stop(graceMs) {
      await jobs.stop({ graceful: graceMs > 0, timeout: graceMs })
      await embedded?.stop()
    },
  }
}

function connectionOptions(
  { databaseUrl, keepAliveMs = DEFAULT_LIMITS.keepAliveMs }: QueuePlace,
  max: number,
) {
  const target = {
    ...(databaseUrl === undefined ? {} : connectionTo(databaseUrl)),
    application_name: 'muster-queue',
  }
  const backends = new Backends(max, target)
  return {
    ...target,
    backends: () => backends,
    onConnect: (client: BoundedConnection) => applySettings(client, SESSION_SETTINGS),
    max,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    notifyKeepAliveInitialDelayMs: keepAliveMs,
    Client: PreparingClient,
    ...CONNECTION_LIMITS,
  }
}

/** Poolers in session mode refuse settings among the startup parameters, so a client sends the
 *  settings once it is connected. */
async function applySettings(
  client: BoundedConnection,
  settings: Record<string, unknown>,
): Promise<void> {
  closeWhenReadOnly(client)
  const statements = Object.entries(settings).map(([name, value]) => `set ${name}=${value}`)
  await Promise.all([client.query(statements.join(';')), client.isDirect()])
}

/** Returns a function that creates clients for the sessions of workers, each with a connection of
 *  its own to the database of the queue. Undefined: the database is embedded. */
export function sessionClientFactory(place: QueuePlace): (() => pg.Client) | undefined {
  if (place.databaseUrl === undefined) return undefined
  const options = { ...connectionOptions(place, 1), ...PIPELINED }
  return () => {
    const client = new PreparingClient(options)
    // Only a pool calls `onConnect`. pg sends these settings before the statements that follow
    // `connect()`.
    const settings = { ...SESSION_SETTINGS, ...LEASING_SETTINGS }
    client.once('connect', () => applySettings(client, settings).catch(() => undefined))
    return client
  }
}

/** Gives each statement that has parameters a name, so that PostgreSQL plans it once per
 *  connection. pg-boss has few statements, and planning one takes longer than running it for a few
 *  jobs. */
class PreparingClient extends BoundedConnection {
  // biome-ignore lint/suspicious/noExplicitAny: `query` has many signatures.
  override query(...input: any[]): any {
    const [text, values, ...others] = input
    const query = super.query as (...args: unknown[]) => unknown
    if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0)
      return query.apply(this, input)
    return query.call(this, { name: hash('sha1', text), text, values }, ...others)
  }
}

function createBoss(database: ConstructorOptions, log: Logger): PgBoss {
  const boss = new PgBoss({
    ...database,
    clock: STEADY_CLOCK,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    warningQueueSize: WARNING_QUEUE_SIZE,
  })
  boss.on('error', (error) => log.error({ err: error }, 'The queue reported an error'))
  boss.on('warning', (warning) => log.warn({ warning }, 'The queue reported a warning'))
  return boss
}

/** pg-boss's types do not declare its pool. */
function findPools(boss: PgBoss): Record<string, PoolUse> {
  const { pool } = boss.getDb() as { pool?: pg.Pool }
  if (!pool) return {}
  const { totalCount, idleCount, waitingCount, options } = pool
  return { queue: { used: totalCount - idleCount, max: options.max, waiting: waitingCount } }
}

async function createQueue(boss: PgBoss, name: string, settings: QueueSettings): Promise<void> {
  const { policy, ...changeable } = {
    ...settings,
    heartbeatSeconds: LEASE_SECONDS,
    retryDelay: 0,
  }
  await boss.createQueue(name, { policy, ...changeable })
  // `createQueue` leaves an existing queue as it is.
  await boss.updateQueue(name, changeable)
}
