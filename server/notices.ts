/** Tells accounts in the background about their webhooks and quotas. Ends of jobs are told in their
 *  own transactions. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import type { Quotas } from '../records/quotas.ts'
import { type BackgroundWork, repeat } from '../runtime/run-loop.ts'
import { notifyOfQuotas, notifyOfWebhooks, sendDigests } from '../webhooks/notices.ts'

const WEBHOOKS_INTERVAL_MS = 60_000
/** Longer, because counting the use of quotas costs more. */
const QUOTAS_INTERVAL_MS = 10 * 60_000

interface Options {
  db: Db
  log: Logger
  now: () => Date
  quotas: Quotas
  baseUrl: string
}

export function startNotices({ db, log, now, quotas, baseUrl }: Options): BackgroundWork[] {
  const warn = (error: unknown): void =>
    log.warn({ err: error }, 'Notices could not be sent; trying again in a few minutes')
  return [
    repeat(
      WEBHOOKS_INTERVAL_MS,
      async (stopping) => {
        await notifyOfWebhooks(db, now(), stopping)
        await sendDigests(db, baseUrl, now(), stopping)
      },
      warn,
    ),
    repeat(QUOTAS_INTERVAL_MS, (stopping) => notifyOfQuotas(db, quotas, now(), stopping), warn),
  ]
}
