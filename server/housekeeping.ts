/** Removes what has expired, in the background. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import { deleteExpiredFiles } from '../records/export-runs.ts'
import { deleteExpiredIdempotencyKeys } from '../records/idempotency-keys.ts'
import { deleteOldRequests } from '../records/request-log.ts'
import { deleteOutdated } from '../records/retention.ts'
import { deleteExpiredSessions } from '../records/sessions.ts'
import { RunLoop } from '../webhooks/run-loop.ts'
import type { Config } from './config.ts'
import type { RemovalMetrics } from './metrics-database.ts'

const HOUSEKEEPING_MS = 60_000
const RETENTION_MS = 60 * 60_000

export interface Repeated {
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

export interface HousekeepingOptions {
  db: Db
  config: Config
  now: () => Date
  log: Logger
  removals: RemovalMetrics
}

/** Deletes expired keys, requests, files and sessions every minute. */
export function startHousekeeping({ db, now, log, removals }: HousekeepingOptions): Repeated {
  return repeat(
    HOUSEKEEPING_MS,
    async () => {
      const at = now().getTime()
      removals.onRemoved('idempotency_keys', await deleteExpiredIdempotencyKeys(db, at))
      removals.onRemoved('request_log', await deleteOldRequests(db, at))
      await deleteExpiredFiles(db, at)
      removals.onRemoved('sessions', await deleteExpiredSessions(db, at))
      removals.onRun('housekeeping', now())
    },
    (error) => log.warn({ err: error }, 'Old rows could not be removed; trying again in a minute'),
  )
}

/** Deletes outdated events and attempts now, and every hour. */
export function startRetention(options: HousekeepingOptions): Repeated {
  const { db, config, now, log, removals } = options
  const days = { eventDays: config.eventRetentionDays, attemptDays: config.attemptRetentionDays }
  const retention = repeat(
    RETENTION_MS,
    async (stopping) => {
      await deleteOutdated(db, days, now(), stopping, removals.onRemoved)
      if (!stopping.aborted) removals.onRun('retention', now())
    },
    (error) =>
      log.warn(
        { err: error },
        'Outdated events and attempts could not be removed; trying again in an hour',
      ),
  )
  retention.wake()
  return retention
}
