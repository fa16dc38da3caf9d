/** Removes what has expired, in the background. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import { deleteExpiredFiles } from '../records/export-runs.ts'
import { deleteExpiredIdempotencyKeys } from '../records/idempotency-keys.ts'
import { deleteOldRequests } from '../records/request-log.ts'
import { deleteOutdated } from '../records/retention.ts'
import { deleteExpiredSessions } from '../records/sessions.ts'
import { RunLoop } from '../webhooks/run-loop.ts'
import type { ServerClock } from './clock.ts'
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
  clock: ServerClock
  log: Logger
  removals: RemovalMetrics
}

/** Deletes expired keys, requests, files and sessions every minute. */
export function startHousekeeping({ db, clock, log, removals }: HousekeepingOptions): Repeated {
  return repeat(
    HOUSEKEEPING_MS,
    async () => {
      const time = await clock.findDeletionTime()
      if (time === undefined) return
      removals.onRemoved('idempotency_keys', await deleteExpiredIdempotencyKeys(db, time))
      removals.onRemoved('request_log', await deleteOldRequests(db, time))
      await deleteExpiredFiles(db, time)
      removals.onRemoved('sessions', await deleteExpiredSessions(db, time))
      removals.onRun('housekeeping', clock.now())
    },
    (error) => log.warn({ err: error }, 'Old rows could not be removed; trying again in a minute'),
  )
}

/** Deletes outdated events and attempts now, and every hour. */
export function startRetention(options: HousekeepingOptions): Repeated {
  const { db, config, clock, log, removals } = options
  const days = { eventDays: config.eventRetentionDays, attemptDays: config.attemptRetentionDays }
  const retention = repeat(
    RETENTION_MS,
    async (stopping) => {
      const time = await clock.findDeletionTime()
      if (time === undefined) return
      await deleteOutdated(db, days, time, stopping, removals.onRemoved)
      if (!stopping.aborted) removals.onRun('retention', clock.now())
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
