/** Whose webhook it is, and who may do something with it. */
import type { AuditTarget } from '../../../records/audit-log.ts'
import { findWebhook, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { may, type Page, type Visit } from '../page.ts'

export const mayManage = may('webhooks')

/** The webhook of the address. Throws 404. */
export async function webhookOf({ scope, params, ctx }: Visit): Promise<Webhook> {
  return (await findWebhook(scope, params.webhook?.toLowerCase() ?? '')) ?? ctx.throw(404)
}

/** Of what belongs to a webhook. */
export function crumbsOf(webhook: Webhook): Page['crumbs'] {
  return [
    { label: 'Webhooks', to: '/webhooks' },
    { label: webhookName(webhook), to: `/webhooks/${webhook.id}` },
  ]
}

/** For the audit log. */
export function targetOf(webhook: Webhook): AuditTarget {
  return { type: 'webhook', id: webhook.id, name: webhookName(webhook) }
}
