import type { Logger } from 'pino'
import type { DeletionTime } from '../records/clock-spans.ts'
import type { Db } from '../records/database/open.ts'
import { disableDeadWebhook, listDeadWebhooks } from '../records/dead-webhooks.ts'

interface Options {
  db: Db
  log: Logger
  time: DeletionTime
  /** How long all attempts of a webhook must have failed. */
  afterMs: number
  signal: AbortSignal
}

export async function disableDeadWebhooks(options: Options): Promise<void> {
  const { db, log, time, afterMs, signal } = options
  for (const dead of await listDeadWebhooks(db, time, afterMs)) {
    if (signal.aborted) return
    const { id, accountId, failingSince } = dead
    if (await disableDeadWebhook(db, dead, new Date(time.now)))
      log.warn(
        { webhook: id, account: accountId, failing_since: new Date(failingSince).toISOString() },
        'A webhook was disabled: no attempt has succeeded for days',
      )
  }
}
