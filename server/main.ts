/** One server: its database, delivery engine and HTTP, from start to stop. */
import type { Logger } from 'pino'
import { makeExport } from '../operations/export-job.ts'
import { problemIn } from '../operations/violations.ts'
import { listRunningBulkJobIds } from '../records/bulk-jobs.ts'
import { type Db, openDatabase } from '../records/database/open.ts'
import { deleteExpiredFiles, listDueExportIds } from '../records/export-runs.ts'
import { deleteExpiredIdempotencyKeys, releaseAbandonedKeys } from '../records/idempotency-keys.ts'
import { deleteOldRequests } from '../records/request-log.ts'
import { deleteOutdated } from '../records/retention.ts'
import { deleteExpiredSessions } from '../records/sessions.ts'
import { runBulkJob } from '../webhooks/bulk.ts'
import { watchInvalidEvents } from '../webhooks/emit.ts'
import { type Engine, type EngineOptions, startEngine } from '../webhooks/engine/engine.ts'
import { RunLoop } from '../webhooks/run-loop.ts'
import { proveSecretKeys } from '../webhooks/secret-keys.ts'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { type HttpServer, listen } from './http.ts'
import { newMetrics, reportDeliveries } from './metrics.ts'
import { newReadiness } from './readiness.ts'
import { startRequestLog } from './request-log.ts'
import { startSchemaWatch } from './schema-watch.ts'

/** For requests and attempts in flight. A stop may take 20 s in all. */
const GRACE_MS = 18_000
const QUERY_TIMEOUT_MS = 15_000
const HOUSEKEEPING_MS = 60_000
const RETENTION_MS = 60 * 60_000

export interface Running {
  /** For example `http://127.0.0.1:3000`. */
  url: string
  db: Db
  /** Refuses new requests, finishes those in flight within 20 s, writes the request log, closes
   *  everything. */
  stop(): Promise<void>
}

export interface ServerOptions {
  log: Logger
  now?: () => Date
}

/** Starts a server on a migrated database. Throws when the port is in use, the database is not reachable,
 *  or its schema or SECRET_KEY does not fit it; then nothing is left open. */
export async function start(
  config: Config,
  { log, now = () => new Date() }: ServerOptions,
): Promise<Running> {
  const db = openDatabase(config.database, { queryTimeoutMs: QUERY_TIMEOUT_MS })
  const metrics = newMetrics()
  const unwatch = watchInvalidEvents((event, errors) =>
    metrics.recordViolation({ event, ...problemIn(errors) }),
  )
  const requestLog = startRequestLog(db, log)
  const housekeeping = startHousekeeping(db, now, log)
  let retention: Repeated | undefined
  let engine: Engine | undefined
  let http: HttpServer | undefined
  let stopped: Promise<void> | undefined

  async function stopAll(): Promise<void> {
    const deadline = Date.now() + GRACE_MS
    const errors: unknown[] = []
    // An error of one part must not keep the others open.
    const ended = (stopping: Promise<void> | undefined): Promise<unknown> =>
      Promise.resolve(stopping).catch((error) => errors.push(error))
    unwatch()
    // The engine starts no more attempts, while requests in flight still get their responses.
    await Promise.all(
      [http?.stop(GRACE_MS), engine?.stop(GRACE_MS), retention?.stop(), housekeeping.stop()].map(
        ended,
      ),
    )
    await ended(requestLog.stop())
    await ended(db.close())
    for (const error of errors)
      log.error({ err: error }, 'A part of the server could not be stopped')
    if (Date.now() > deadline)
      log.warn(
        'Some requests or attempts did not finish in time; the next start repeats these attempts',
      )
    if (errors.length > 0)
      throw new AggregateError(errors, 'The server could not be stopped in order')
  }
  const stop = (): Promise<void> => (stopped ??= stopAll())

  try {
    const schema = await startSchemaWatch(db, config, log)
    await proveSecretKeys(db, config.secretKeys)
    const readiness = newReadiness(db, config, schema, () => engine)
    const app = createApp({ db, config, log, now, metrics, requestLog, readiness })
    // SQLite has one server, so the requests that still hold an idempotency key were cut off.
    if (db.dialect === 'sqlite') await releaseAbandonedKeys(db)
    // Before the engine: a port in use is reported at once, and requests are served while the queue is
    // filled.
    http = await listen(app.callback(), config)
    if (config.role !== 'api') {
      engine = await startDelivery(db, config, now, log)
      reportDeliveries(metrics.registry, engine)
      retention = startRetention(db, config, now, log)
    }
    return {
      url: `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${http.port}`,
      db,
      stop,
    }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

function startDelivery(db: Db, config: Config, now: () => Date, log: Logger): Promise<Engine> {
  const exports = {
    due: (at: Date) => listDueExportIds(db, at),
    run: (id: string, signal: AbortSignal) => makeExport(db, id, now, signal),
  }
  const bulk = {
    due: () => listRunningBulkJobIds(db),
    run: (id: string, signal: AbortSignal) => runBulkJob(db, id, now, signal),
  }
  return startEngine({
    ...queuePlace(config),
    db,
    config,
    log,
    now,
    backgroundJobs: { exports, bulk },
  })
}

/** The queue is in the same PostgreSQL, or in an embedded one with a cache directory that makes the next
 *  start faster. */
function queuePlace({
  database,
}: Config): Pick<EngineOptions, 'databaseUrl' | 'backend' | 'cacheDir'> {
  return 'databaseUrl' in database ? database : { cacheDir: database.dataDir }
}

interface Repeated {
  /** Runs now. */
  wake(): void
  stop(): Promise<void>
}

function repeat(
  everyMs: number,
  work: (stopping: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Repeated {
  const stopping = new AbortController()
  const loop = new RunLoop(() => work(stopping.signal), onError)
  const timer = setInterval(loop.wake, everyMs).unref()
  return {
    wake: loop.wake,
    stop() {
      clearInterval(timer)
      stopping.abort()
      return loop.stop()
    },
  }
}

function startHousekeeping(db: Db, now: () => Date, log: Logger): Repeated {
  return repeat(
    HOUSEKEEPING_MS,
    async () => {
      const at = now().getTime()
      await deleteExpiredIdempotencyKeys(db, at)
      await deleteOldRequests(db, at)
      await deleteExpiredFiles(db, at)
      await deleteExpiredSessions(db, at)
    },
    (error) => log.warn({ err: error }, 'Old rows could not be removed; trying again in a minute'),
  )
}

/** Deletes outdated events and attempts now, and every hour. */
function startRetention(
  db: Db,
  { eventRetentionDays: eventDays, attemptRetentionDays: attemptDays }: Config,
  now: () => Date,
  log: Logger,
): Repeated {
  const retention = repeat(
    RETENTION_MS,
    (stopping) => deleteOutdated(db, { eventDays, attemptDays }, now(), stopping),
    (error) =>
      log.warn(
        { err: error },
        'Outdated events and attempts could not be removed; trying again in an hour',
      ),
  )
  retention.wake()
  return retention
}
