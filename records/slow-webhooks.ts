import { SHORT_SPAN_MS } from './attempt-counts.ts'
import { hostOf } from './attempt-requests.ts'
import type { Db } from './database/open.ts'
import { select } from './database/statements.ts'
import { binColumnsFrom } from './duration-bins.ts'

export interface SlowWebhook {
  webhookId: string
  accountId: string
  /** With the port. */
  host: string
  hasSucceeded: boolean
}

interface SlowRow {
  id: string
  account_id: string
  url: string
  /** SQLite returns 0 or 1. */
  has_succeeded: boolean | number
}

interface SlowRule {
  since: Date
  /** An attempt that takes this long is slow. A slightly shorter one may count as slow, too:
   *  durations are counted in bins. */
  slowMs: number
  /** A webhook is slow if at least this many of its attempts, and more than half of them, were
   *  slow. */
  slowAttempts: number
}

/** The webhooks that are slow by the rule, including deleted ones. */
export async function listSlowWebhooks(db: Db, rule: SlowRule): Promise<SlowWebhook[]> {
  const slowCount = `sum(${binColumnsFrom(rule.slowMs).join(' + ')})`
  const rows = await select<SlowRow>(
    db.read,
    `select id, account_id, url, has_succeeded from webhooks join (
       select webhook_id, sum(succeeded) > 0 as has_succeeded from attempt_counts
       where starts_at >= ? and span_ms = ?
       group by webhook_id having ${slowCount} >= ? and 2 * ${slowCount} > sum(succeeded + failed)
     ) as slow on slow.webhook_id = webhooks.id`,
    [rule.since.getTime(), SHORT_SPAN_MS, rule.slowAttempts],
  )
  return rows.map(({ id, account_id, url, has_succeeded }) => ({
    webhookId: id,
    accountId: account_id,
    host: hostOf(url),
    hasSucceeded: Boolean(has_succeeded),
  }))
}
