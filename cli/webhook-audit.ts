import { insertAuditEntry } from '../records/audit-log.ts'
import type { WriteScope } from '../records/database/scope.ts'
import { type Webhook, webhookName } from '../records/webhooks.ts'

/** Records an operator's action in the account's audit log.
 *  Does nothing if the webhook was deleted meanwhile. */
export async function auditWebhook(
  scope: WriteScope,
  webhook: Webhook | undefined,
  verb: string,
  { now, details = {} }: { now: Date; details?: Record<string, unknown> },
): Promise<void> {
  if (!webhook) return
  const target = { type: 'webhook', id: webhook.id, name: webhookName(webhook) } as const
  await insertAuditEntry(
    scope,
    { user: null, action: `webhook.${verb}`, target, details, ip: null },
    now,
  )
}
