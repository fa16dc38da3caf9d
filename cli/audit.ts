import { insertAuditEntry, type NewAuditEntry } from '../records/audit-log.ts'
import type { WriteScope } from '../records/database/scope.ts'
import { type Webhook, webhookTarget } from '../records/webhooks.ts'

/** Records an operator's action in the account's audit log. */
export function auditCommand(
  scope: WriteScope,
  entry: Omit<NewAuditEntry, 'user' | 'ip'>,
  now: Date,
): Promise<void> {
  return insertAuditEntry(scope, { ...entry, user: null, ip: null }, now)
}

/** Records an operator's action on a webhook. The verb `deleted` gives the action
 *  `webhook.deleted`. */
export async function auditWebhook(
  scope: WriteScope,
  webhook: Webhook,
  { verb, details }: { verb: string; details?: Record<string, unknown> },
  now: Date,
): Promise<void> {
  const target = webhookTarget(webhook)
  await auditCommand(scope, { action: `webhook.${verb}`, target, details }, now)
}
