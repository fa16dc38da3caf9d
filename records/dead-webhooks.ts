/** Webhooks without a successful attempt for days. The service disables them. */
import { insertAuditEntry } from './audit-log.ts'
import type { Db } from './database/open.ts'
import { accountTransaction } from './database/scope.ts'
import { select } from './database/statements.ts'
import type { DeletionTime } from './deletion-time.ts'
import { ARE_PAUSED } from './delivery-pause.ts'
import { DAY_MS } from './time-units.ts'
import { disableWebhook, lockWebhook, webhookTarget } from './webhooks.ts'

interface DeadWebhook {
  id: string
  accountId: string
  /** Epoch milliseconds. */
  failingSince: number
}

/** The webhooks without a successful attempt for `afterMs`, and with a failed one in the last 24
 *  hours. None of suspended accounts, and none while all deliveries are paused. */
export async function listDeadWebhooks(
  { read }: Db,
  time: DeletionTime,
  afterMs: number,
): Promise<DeadWebhook[]> {
  const rows = await select<{ id: string; account_id: string; failing_since: number }>(
    read,
    `select webhooks.id, account_id, failing_since
     from webhook_health join webhooks on webhooks.id = webhook_id
     where failing_ms >= ? and failing_since <= ? and last_attempt_at between ? and ?
       and enabled and deleted_at is null and suspended_at is null and not ${ARE_PAUSED}`,
    [afterMs, time.createdBefore(afterMs), time.now - DAY_MS, time.now],
  )
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    failingSince: row.failing_since,
  }))
}

/** Disables the webhook and writes an entry to the audit log. Returns false and changes nothing
 *  when an attempt has succeeded meanwhile, or the webhook was disabled or deleted. */
export function disableDeadWebhook(
  db: Db,
  { id, accountId, failingSince }: DeadWebhook,
  now: Date,
): Promise<boolean> {
  return accountTransaction(db, accountId, async (scope) => {
    const webhook = await lockWebhook(scope, id)
    if (!webhook?.enabled) return false
    const isStillDead = await scope.trx
      .sql('webhook_health')
      .where({ webhook_id: id, failing_since: failingSince, disabled_at: null })
      .update({ disabled_at: now.getTime() })
    if (!isStillDead) return false
    await disableWebhook(scope, id, now)
    await insertAuditEntry(
      scope,
      {
        user: { id: null, fullName: 'Muster' },
        action: 'webhook.disabled',
        target: webhookTarget(webhook),
        details: { failing_since: new Date(failingSince).toISOString() },
        ip: null,
      },
      now,
    )
    return true
  })
}
