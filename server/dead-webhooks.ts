/** Disables dead webhooks in the background: webhooks whose attempts have all failed for days. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import { disableDeadWebhook, listDeadWebhooks } from '../records/dead-webhooks.ts'
import type { DeletionTime } from '../records/deletion-time.ts'
import { DAY_MS } from '../records/time-units.ts'
import { type BackgroundWork, repeat } from '../runtime/run-loop.ts'
import type { ServerClock } from './clock.ts'

const INTERVAL_MS = 60_000

interface Options {
  db: Db
  log: Logger
  /** How long all attempts of a webhook must have failed. */
  afterDays: number
}

interface BackgroundOptions extends Options {
  clock: Pick<ServerClock, 'findDeletionTime'>
}

/** Disables dead webhooks every minute, unless the clock is in doubt or `afterDays` is 0. */
export function startDisablingDeadWebhooks({
  clock,
  ...options
}: BackgroundOptions): BackgroundWork {
  return repeat(
    INTERVAL_MS,
    async (signal) => {
      const time = options.afterDays === 0 ? undefined : await clock.findDeletionTime()
      if (time !== undefined) await disableDeadWebhooks(options, time, signal)
    },
    (error) =>
      options.log.warn(
        { err: error },
        'Dead webhooks could not be disabled; trying again in a minute',
      ),
  )
}

export async function disableDeadWebhooks(
  { db, log, afterDays }: Options,
  time: DeletionTime,
  signal: AbortSignal,
): Promise<void> {
  for (const dead of await listDeadWebhooks(db, time, afterDays * DAY_MS)) {
    if (signal.aborted) return
    const { id, accountId, failingSince } = dead
    if (await disableDeadWebhook(db, dead, new Date(time.now)))
      log.warn(
        { webhook: id, account: accountId, failing_since: new Date(failingSince).toISOString() },
        'A webhook was disabled: no attempt has succeeded for days',
      )
  }
}
