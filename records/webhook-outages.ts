/** Ends the outages of webhooks, and leaves pauses out of them. The changes that attempts cause are
 *  in attempt-counts.ts. */
import type { Sql } from './database/statements.ts'

/** The failed attempts so far do not count any more: the webhook has another URL, or was
 *  enabled. */
export async function endOutage(sql: Sql, webhookId: string): Promise<void> {
  await sql('webhook_health').where({ webhook_id: webhookId }).update({
    failures: 0,
    failing_since: null,
    failing_until: null,
    failing_ms: 0,
    disabled_at: null,
  })
}

/** Call it at the end of a pause of deliveries or of a suspension. No attempts were made meanwhile,
 *  so the time from the last failed attempt until `now` does not count as outage. `accountId`: only
 *  the webhooks of this account. */
export async function excludePauseFromOutages(
  sql: Sql,
  now: Date,
  accountId?: string,
): Promise<void> {
  const outages = sql('webhook_health').whereNotNull('failing_until')
  if (accountId !== undefined)
    outages.whereIn('webhook_id', sql('webhooks').where({ account_id: accountId }).select('id'))
  await outages.update({ failing_until: now.getTime() })
}
