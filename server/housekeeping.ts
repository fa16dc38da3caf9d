/** Removes outdated rows and returns their space, in the background. */
import type { Logger } from 'pino'
import { isUnavailable } from '../records/database/errors.ts'
import { returnFreeSpace } from '../records/database/free-space.ts'
import type { Db } from '../records/database/open.ts'
import { type RemovalRule, removalRules } from '../records/removal-rules.ts'
import { newRemovalRun } from '../records/removal-run.ts'
import { createWeeks, type WeeklyTable, weeklyTables } from '../records/weeks.ts'
import { type BackgroundWork, repeat } from '../runtime/run-loop.ts'
import type { ServerClock } from './clock.ts'
import type { Config } from './config.ts'
import type { RemovalMetrics } from './metrics-database.ts'

/** A run applies all removal rules of one schedule once. `lockKey` is a PostgreSQL advisory lock
 *  that only these runs use. A run ends early when another node has the lock. With one lock for
 *  both schedules, the many runs of `minute` would end a long run of `hour`. */
const SCHEDULES = {
  minute: {
    kind: 'housekeeping',
    intervalMs: 60_000,
    lockKey: 7_305_518_841,
    failure: 'Expired rows could not be removed; trying again in a minute',
  },
  hour: {
    kind: 'retention',
    intervalMs: 60 * 60_000,
    lockKey: 7_305_518_842,
    failure: 'Outdated rows could not be removed; trying again in an hour',
  },
} as const

interface HousekeepingOptions {
  db: Db
  config: Config
  clock: Pick<ServerClock, 'now' | 'findDeletionTime'>
  log: Logger
  removals: RemovalMetrics
}

/** Applies the rules of one schedule, every minute or every hour, unless the clock is in doubt. The
 *  hourly schedule also returns free space. */
export function startHousekeeping(
  every: RemovalRule['every'],
  { db, config, clock, log, removals }: HousekeepingOptions,
): BackgroundWork {
  const { kind, intervalMs, lockKey, failure } = SCHEDULES[every]
  const rules = removalRules.filter((rule) => rule.every === every)
  async function removeOutdated(signal: AbortSignal): Promise<void> {
    const time = await clock.findDeletionTime()
    if (time === undefined) return
    const run = newRemovalRun({
      db,
      time,
      retention: config.retentionDays,
      lockKey,
      signal,
      onRemoved: removals.onRemoved,
    })
    let hasFailed = false
    // An error in one table must not stop the removal in the others.
    for (const { table, remove } of rules)
      await remove(run).catch((error: unknown) => {
        if (isUnavailable(error)) throw error
        hasFailed = true
        log.warn({ err: error, table }, failure)
      })
    if (!hasFailed && !run.hasEndedEarly()) removals.onRun(kind, clock.now())
  }
  async function prepareAllWeeks(signal: AbortSignal): Promise<void> {
    for (const table of weeklyTables) {
      if (signal.aborted) return
      await prepareWeeks(table).catch((error: unknown) => {
        if (isUnavailable(error)) throw error
        log.warn(
          { err: error, table },
          'Weekly partitions could not be created; trying again in an hour',
        )
      })
    }
  }
  async function prepareWeeks(table: WeeklyTable): Promise<void> {
    if (await createWeeks(db, table, clock.now().getTime()))
      log.warn(
        { table },
        'Some rows are in no weekly partition: the clock of a node was wrong, or no worker ran for a month. ' +
          'They are removed row by row when they are outdated.',
      )
  }
  return repeat(
    intervalMs,
    async (signal) => {
      if (every === 'hour') await prepareAllWeeks(signal)
      await removeOutdated(signal)
      if (every === 'hour') await returnFreeSpace(db, signal)
    },
    (error) => log.warn({ err: error }, failure),
  )
}
