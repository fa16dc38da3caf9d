/** The webhook that a page is about. */
import { findWebhook, type Webhook, webhookName } from '../../../records/webhooks.ts'
import type { ConsolePage, Visit } from '../page.ts'

/** The webhook in the page's URL. Throws 404 if the account has no such webhook. */
export async function loadWebhook({ scope, params, ctx }: Visit): Promise<Webhook> {
  return (await findWebhook(scope, params.webhook ?? '')) ?? ctx.throw(404)
}

export function webhookCrumbs(webhook: Webhook): ConsolePage['crumbs'] {
  return [
    { label: 'Webhooks', to: '/webhooks' },
    { label: webhookName(webhook), to: `/webhooks/${webhook.id}` },
  ]
}

/** The path of the form with the fields of the webhook. */
export function editPath({ id, format }: Webhook): string {
  return format === 'slack' ? `/notifications/${id}` : `/webhooks/${id}/edit`
}
