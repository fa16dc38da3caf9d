/** Disables webhooks without a successful attempt for days, in the background. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import { disableDeadWebhooks } from '../webhooks/dead-webhooks.ts'
import { type BackgroundWork, repeat } from '../webhooks/run-loop.ts'
import type { ServerClock } from './clock.ts'

const INTERVAL_MS = 60_000
const DAY_MS = 86_400_000

interface Options {
  db: Db
  clock: Pick<ServerClock, 'findDeletionTime'>
  log: Logger
  /** 0: never. */
  afterDays: number
}

/** Looks for dead webhooks every minute, unless the clock is in doubt. */
export function startDisabling({ db, clock, log, afterDays }: Options): BackgroundWork {
  return repeat(
    INTERVAL_MS,
    async (signal) => {
      const time = afterDays === 0 ? undefined : await clock.findDeletionTime()
      if (time !== undefined)
        await disableDeadWebhooks({ db, log, time, afterMs: afterDays * DAY_MS, signal })
    },
    (error) =>
      log.warn({ err: error }, 'Dead webhooks could not be disabled; trying again in a minute'),
  )
}
