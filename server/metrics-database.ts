/** The metrics of the database, of the work that waits in it, and of what is removed from it. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { PoolUse } from '../records/database/knex-internals.ts'
import { findLastBackup } from '../records/database/last-backup.ts'
import type { Db } from '../records/database/open.ts'
import { findPausedAt } from '../records/delivery-pause.ts'
import { removalRules } from '../records/removal-rules.ts'
import {
  countPausedBulkJobs,
  countUndelivered,
  countWaitingCommits,
  findConnections,
  findDatabaseBytes,
  findWalBytes,
} from '../records/reports/database-state.ts'
import { countWebhookStates } from '../records/reports/webhook-health.ts'
import { countAllStrays } from '../records/weeks.ts'
import type { ServerClock } from './clock.ts'
import type { Config } from './config.ts'
import { addGauge, addLabelledGauge } from './metrics.ts'
import { type Readiness, UNREADY_REASONS } from './readiness.ts'
import type { RequestLog } from './request-log.ts'

/** Counts that read many rows are at most this old, so that frequent scrapes cost little. */
const MAX_COUNT_AGE_MS = 5_000

/** The pools of this process. */
export function reportPools(registry: Registry, pools: () => Record<string, PoolUse>): void {
  const gauge = (name: string, help: string, field: keyof PoolUse): void =>
    addLabelledGauge(registry, { name, help, label: 'pool' }, async () =>
      Object.fromEntries(Object.entries(pools()).map(([pool, use]) => [pool, use[field]])),
    )
  gauge('muster_database_pool_used', 'Connections in use, by pool.', 'used')
  gauge('muster_database_pool_max', 'The most connections of each pool.', 'max')
  gauge(
    'muster_database_pool_waiting',
    'Queries and transactions that wait for a connection, by pool.',
    'waiting',
  )
}

export function reportStandby(registry: Registry, { standby }: Db): void {
  addGauge(
    registry,
    'muster_database_standby_used',
    'Whether this node reads a standby: 1 or 0. No value without DATABASE_READ_URL.',
    () => standby && Number(standby.problem === undefined),
  )
}

export function reportReadiness(registry: Registry, readiness: Readiness): void {
  const help = 'Whether the node is ready as far as this reason is concerned: 1 or 0.'
  addLabelledGauge(registry, { name: 'muster_ready', help, label: 'reason' }, async () => {
    const found = await readiness.findReasons()
    return Object.fromEntries(
      UNREADY_REASONS.map((reason) => [reason, Number(!found.includes(reason))]),
    )
  })
}

/** What PostgreSQL says about its connections and commits. Only workers report it. */
export function reportPostgres(registry: Registry, db: Db, readiness: Readiness): void {
  const isPostgres = db.dialect === 'postgres'
  const connections = cached(async () => (isPostgres ? findConnections(db) : undefined))
  addGauge(
    registry,
    'muster_database_connections',
    'Connections of all clients to PostgreSQL. No value in embedded mode.',
    async () => (await connections())?.used,
  )
  addGauge(
    registry,
    'muster_database_connections_max',
    'The most connections that PostgreSQL accepts from ordinary users. No value in embedded mode.',
    async () => (await connections())?.max,
  )
  addGauge(
    registry,
    'muster_database_commits_waiting',
    'Commits that have waited for a standby for more than a second. No value in embedded mode.',
    async () => {
      if (!isPostgres) return undefined
      // Its write waits as well, so the wait shows even when nobody changes anything.
      await readiness.findReasons()
      return countWaitingCommits(db)
    },
  )
}

/** Metrics of the database, which all nodes share. Only workers report them. */
export function reportDatabase(registry: Registry, db: Db, now: () => Date): void {
  addLabelledGauge(
    registry,
    { name: 'muster_deliveries', help: 'Undelivered deliveries, by state.', label: 'state' },
    cached(() => countUndelivered(db)),
  )
  addLabelledGauge(
    registry,
    { name: 'muster_webhooks', help: 'Webhooks, by the state of their health.', label: 'state' },
    cached(() => countWebhookStates(db, now())),
  )
  addGauge(
    registry,
    'muster_deliveries_paused',
    'Whether all deliveries are paused: 1 or 0.',
    async () => Number((await findPausedAt(db.read)) !== undefined),
  )
  addGauge(registry, 'muster_bulk_jobs_paused', 'Bulk jobs that are paused.', () =>
    countPausedBulkJobs(db),
  )
  addGauge(registry, 'muster_database_size_bytes', 'Size of the database.', () =>
    findDatabaseBytes(db),
  )
  addLabelledGauge(
    registry,
    {
      name: 'muster_rows_outside_weeks',
      help: 'Rows that are in no weekly partition, at most 1,000, by table. No value without partitions.',
      label: 'table',
    },
    () => countAllStrays(db),
  )
  addGauge(
    registry,
    'muster_database_wal_bytes',
    'Size of the write-ahead log. PostgreSQL shows it to members of pg_monitor only.',
    () => findWalBytes(db),
  )
}

/** Nothing is known about the backups of PostgreSQL. */
export function reportBackup(registry: Registry, { database }: Pick<Config, 'database'>): void {
  addGauge(
    registry,
    'muster_last_backup_timestamp_seconds',
    'When "muster backup" took the last backup. 0: never. No value in PostgreSQL mode.',
    async () => {
      if (!('dataDir' in database)) return undefined
      const last = await findLastBackup(database.dataDir)
      return (last?.takenAt ?? 0) / 1_000
    },
  )
}

export function reportRequestLog(registry: Registry, requestLog: RequestLog): void {
  addGauge(
    registry,
    'muster_request_log_waiting',
    'Entries of the request log that are not written yet.',
    () => requestLog.stats().waiting,
  )
  const dropped = new Counter({
    name: 'muster_request_log_dropped_total',
    help: 'Entries of the request log that were dropped since the start.',
    registers: [registry],
    collect() {
      dropped.reset()
      dropped.inc(requestLog.stats().dropped)
    },
  })
}

export function reportClock(registry: Registry, db: Db, clock: ServerClock): void {
  addGauge(
    registry,
    'muster_clock_in_doubt',
    'Whether the clock is in doubt, so that no row is deleted by its age: 1 or 0.',
    () => Number(clock.isInDoubt()),
  )
  addGauge(
    registry,
    'muster_clock_offset_seconds',
    'How far the clock of this node is ahead of that of PostgreSQL. No value in embedded mode.',
    () => (db.dialect === 'postgres' ? clock.offsetMs() / 1_000 : undefined),
  )
}

export interface RemovalMetrics {
  onRemoved(table: string, rows: number): void
  /** Call it when all rules of one kind have removed their expired rows. */
  onRun(kind: 'housekeeping' | 'retention', at: Date): void
}

export function newRemovalMetrics(registry: Registry): RemovalMetrics {
  const removed = new Counter({
    name: 'muster_retention_rows_removed_total',
    help: 'Expired rows that this process has removed since the start, by table.',
    labelNames: ['table'],
    registers: [registry],
  })
  const lastRun = new Gauge({
    name: 'muster_retention_last_run_timestamp_seconds',
    help:
      'When this process last completed a removal of expired rows: ' +
      'retention runs hourly in workers, housekeeping each minute in all nodes.',
    labelNames: ['kind'],
    registers: [registry],
  })
  for (const { table } of removalRules) removed.inc({ table }, 0)
  return {
    onRemoved: (table, rows) => removed.inc({ table }, rows),
    onRun: (kind, at) => lastRun.set({ kind }, at.getTime() / 1000),
  }
}

/** Reads again only when the last value is older than `MAX_COUNT_AGE_MS`. */
function cached<T>(read: () => Promise<T>): () => Promise<T> {
  let value: Promise<T> | undefined
  let readAtMs = 0
  return () => {
    if (value === undefined || performance.now() - readAtMs > MAX_COUNT_AGE_MS) {
      readAtMs = performance.now()
      value = read()
    }
    return value
  }
}
