/** One server: its database, delivery engine and HTTP, from start to stop. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { AccountQuotas } from '../operations/account-quota.ts'
import { makeExport } from '../operations/export-job.ts'
import { KeysInUse } from '../operations/idempotency.ts'
import { runImport } from '../operations/import-job.ts'
import { problemIn } from '../operations/violations.ts'
import { listUnfinishedDeletionIds } from '../records/account-deletions.ts'
import { eraseAccount } from '../records/account-erasure.ts'
import { listRunningBulkJobIds } from '../records/bulk-jobs.ts'
import { type Db, openDatabase, openReaders, withoutPooler } from '../records/database/open.ts'
import { assertOwnSessions } from '../records/database/pooler.ts'
import { findPausedAt, pauseDeliveries } from '../records/delivery-pause.ts'
import { listDueIds } from '../records/file-jobs.ts'
import { checkWrite } from '../records/write-checks.ts'
import type { BackgroundWork } from '../runtime/run-loop.ts'
import { runBulkJob } from '../webhooks/bulk.ts'
import { watchInvalidEvents } from '../webhooks/emit.ts'
import { type Engine, type EngineOptions, startEngine } from '../webhooks/engine/engine.ts'
import { warnOfPause } from '../webhooks/engine/pause-watch.ts'
import type { Thread } from '../webhooks/queue/pglite.ts'
import { proveSecretKeys } from '../webhooks/secret-keys.ts'
import { createApp, createMetricsApp } from './app.ts'
import { type ServerClock, startClock } from './clock.ts'
import type { Config } from './config.ts'
import { startDamageChecks } from './damage.ts'
import { startDisablingDeadWebhooks } from './dead-webhooks.ts'
import { startHousekeeping } from './housekeeping.ts'
import { type HttpServer, listen, urlOf } from './http.ts'
import { newMetrics } from './metrics.ts'
import {
  newRemovalMetrics,
  reportBackup,
  reportClock,
  reportDatabase,
  reportPools,
  reportPostgres,
  reportReadiness,
  reportRequestLog,
  reportStandby,
} from './metrics-database.ts'
import { newAttemptObserver, reportDeliveries, reportSecrets } from './metrics-delivery.ts'
import { startNotices } from './notices.ts'
import { setOutageProbe } from './outage-log.ts'
import { newReadiness, type Readiness } from './readiness.ts'
import { type RequestLog, startRequestLog } from './request-log.ts'
import { checkSchema } from './schema-check.ts'
import { watchStandby } from './standby.ts'

/** The most exports, and the most imports, in progress on a node, each of a different account. They
 *  take turns: see operations/export-job.ts and import-job.ts. */
const CONCURRENT_FILE_JOBS = 8
/** How long requests and attempts in flight may take at a stop. The whole stop may take 20 s. */
const GRACE_MS = 18_000

export interface Running {
  /** For example `http://127.0.0.1:3000`. */
  url: string
  /** The port of `/metrics` and `/violations` if METRICS_PORT is set, otherwise that of `url`. */
  metricsPort: number
  db: Db
  /** The idempotency keys of requests in progress. */
  keysInUse: KeysInUse
  /** Starts no more attempts, and responds with 503 on /readyz. Serves requests for `DRAIN_MS`, or
   *  until `skip` aborts. With ROLE=worker, there are no clients to wait for. */
  drain(skip: AbortSignal): Promise<void>
  /** Refuses new requests, gives those in flight up to `GRACE_MS`, writes the request log, closes
   *  everything. */
  stop(): Promise<void>
}

interface ServerOptions {
  log: Logger
  /** Replaces the clock of the database. */
  now?: () => Date
  /** The thread of an embedded PostgreSQL that the caller has started. */
  queueThread?: Promise<Thread>
}

/** The parts of a server. An optional part is undefined until it starts, or if this server does not
 *  have it. */
interface Parts {
  db: Db
  unwatchEvents: () => void
  clock?: ServerClock
  requestLog?: RequestLog
  readiness?: Readiness
  http?: HttpServer
  metricsHttp?: HttpServer
  engine?: Engine
  /** Resolves when the engine has stopped. Set when `drain` begins to stop it. */
  engineStopped?: Promise<void>
  backgroundWork: BackgroundWork[]
}

/** Starts a server on a migrated database. Throws when the port is in use, the database is not
 *  reachable, its schema does not fit this version, or SECRET_KEY does not fit the database. Before
 *  it throws, it closes everything. */
export async function start(config: Config, options: ServerOptions): Promise<Running> {
  const { log } = options
  const isWorker = config.role !== 'api'
  if (isWorker && 'databaseUrl' in config.database)
    await assertOwnSessions(config.database.directUrl)
  const db = openDatabase(isWorker ? withoutPooler(config.database) : config.database, config)
  const metrics = newMetrics()
  const { registry } = metrics
  const parts: Parts = {
    db,
    backgroundWork: [],
    unwatchEvents: watchInvalidEvents((event, errors) =>
      metrics.recordViolation({ event, ...problemIn(errors) }),
    ),
  }
  reportPools(registry, () => ({ ...db.pools(), ...parts.engine?.pools() }))
  reportSecrets(registry)
  reportStandby(registry, db)
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => (stopped ??= stopParts(parts, log))

  try {
    const schema = await checkSchema(db, log)
    await openReaders(db)
    await proveSecretKeys(db, config.secretKeys)
    if (db.standby) parts.backgroundWork.push(watchStandby(db.standby, log))
    const clock = await startClock(db, log, options.now)
    parts.clock = clock
    reportClock(registry, db, clock)
    const { now } = clock
    setOutageProbe(log, () => Promise.all([db.read.raw('select 1'), checkWrite(db)]))
    parts.backgroundWork.push(startDamageChecks(db, log))
    const maxBytesPerDay = config.requestLogBytesPerDay
    const requestLog = startRequestLog({ db, log, now, maxBytesPerDay })
    parts.requestLog = requestLog
    reportRequestLog(registry, requestLog)
    const removals = newRemovalMetrics(registry)
    const housekeeping = { db, config, clock, log, removals }
    parts.backgroundWork.push(startHousekeeping('minute', housekeeping))
    if (config.pausesDeliveries) await pauseDeliveries(db, now())
    const readiness = newReadiness(db, config, schema, () => parts.engine)
    parts.readiness = readiness
    reportReadiness(registry, readiness)
    const keysInUse = new KeysInUse()
    const app = createApp({ db, config, log, now, metrics, requestLog, readiness, keysInUse })
    // Before the engine: a port in use is reported at once, and requests are served while the queue
    // is filled.
    const http = await listen(app.callback(), config)
    parts.http = http
    if (config.metricsPort !== undefined)
      parts.metricsHttp = await listen(createMetricsApp({ config, metrics }).callback(), {
        host: config.host,
        port: config.metricsPort,
      })
    if (isWorker) {
      const onAttempt = newAttemptObserver(registry)
      const thread = options.queueThread
      const readClock = clock.read
      parts.engine = await startDelivery({ db, config, now, readClock, log, onAttempt, thread })
      reportDeliveries(registry, parts.engine)
      reportDatabase(registry, db, now)
      reportPostgres(registry, db, readiness)
      reportBackup(registry, config)
      const hourly = startHousekeeping('hour', housekeeping)
      const afterDays = config.disableWebhooksAfterDays
      parts.backgroundWork.push(hourly, startDisablingDeadWebhooks({ db, clock, log, afterDays }))
      hourly.wake()
      const { quotas, baseUrl } = config
      parts.backgroundWork.push(...startNotices({ db, log, now, quotas, baseUrl }))
    } else {
      // In a worker, the engine warns of the pause itself.
      const pausedAt = await findPausedAt(db.read)
      if (pausedAt !== undefined) warnOfPause(log, pausedAt)
    }
    return {
      url: urlOf(config.host, http.port),
      metricsPort: (parts.metricsHttp ?? http).port,
      db,
      keysInUse,
      drain: (skip) => drainParts(parts, config, skip),
      stop,
    }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

async function drainParts(
  parts: Parts,
  { role, drainMs }: Pick<Config, 'role' | 'drainMs'>,
  skip: AbortSignal,
): Promise<void> {
  parts.readiness?.startDraining()
  parts.http?.drain()
  parts.engineStopped = parts.engine?.stop(GRACE_MS)
  // `stopParts` reports the error.
  parts.engineStopped?.catch(() => undefined)
  if (role !== 'worker') await delay(drainMs, undefined, { signal: skip }).catch(() => undefined)
}

async function stopParts(parts: Parts, log: Logger): Promise<void> {
  const { db, clock, requestLog, backgroundWork, http, engine } = parts
  const deadline = performance.now() + GRACE_MS
  const errors: unknown[] = []
  // An error of one part must not keep the others open.
  const collectError = (stopping: Promise<void> | undefined): Promise<unknown> =>
    Promise.resolve(stopping).catch((error) => errors.push(error))
  parts.unwatchEvents()
  clock?.stop()
  // The engine starts no more attempts, while requests in flight still get their responses.
  const engineStopped = parts.engineStopped ?? engine?.stop(GRACE_MS)
  await Promise.all(
    [http?.stop(GRACE_MS), engineStopped, ...backgroundWork.map((work) => work.stop())].map(
      collectError,
    ),
  )
  await collectError(parts.metricsHttp?.stop(0))
  await collectError(requestLog?.stop())
  await collectError(db.close())
  for (const error of errors) log.error({ err: error }, 'A part of the server could not be stopped')
  if (performance.now() > deadline)
    log.warn(
      'Some requests or attempts did not finish in time; the next start repeats these attempts',
    )
  if (errors.length > 0)
    throw new AggregateError(errors, 'Some parts of the server could not be stopped')
}

interface DeliveryOptions
  extends Pick<EngineOptions, 'db' | 'log' | 'readClock' | 'onAttempt' | 'thread'> {
  config: Config
  now: () => Date
}

function startDelivery(options: DeliveryOptions): Promise<Engine> {
  const { db, config, now } = options
  const exports = {
    due: (at: Date) => listDueIds(db, 'exports', at),
    run: (id: string, signal: AbortSignal) =>
      makeExport({ db, now, quotas: config.quotas }, id, signal),
    concurrency: CONCURRENT_FILE_JOBS,
  }
  const quotas = new AccountQuotas({ db, now, quotas: config.quotas })
  const imports = {
    due: (at: Date) => listDueIds(db, 'imports', at),
    run: (id: string, signal: AbortSignal) => runImport({ db, now, quotas }, id, signal),
    concurrency: CONCURRENT_FILE_JOBS,
  }
  const bulk = {
    due: () => listRunningBulkJobIds(db),
    run: (id: string, signal: AbortSignal) => runBulkJob(db, id, now, signal),
  }
  const deletions = {
    due: () => listUnfinishedDeletionIds(db.read),
    run: (id: string, signal: AbortSignal) => eraseAccount(db, id, now, signal),
  }
  return startEngine({
    // The queue is in the PostgreSQL of the records. Without `databaseUrl`, it is embedded.
    ...withoutPooler(config.database),
    ...options,
    backgroundJobs: { exports, imports, bulk, deletions },
  })
}
