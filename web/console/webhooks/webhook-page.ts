/** Builds the two pages of a webhook, deliveries and settings, which share their head. */
import type { WebhookHealth } from '../../../records/reports/webhook-health.ts'
import { readableUrl, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { type Content, html } from '../../shared/html.ts'
import { newFormKey } from '../idempotent-form.ts'
import { type ConsolePage, canManageWebhooks, type Visit } from '../page.ts'
import { actionForm, copyButton, tabs } from '../ui.ts'
import { healthAlert, reloadedHealthPill } from './health.ts'
import { findUnreadableSecrets, unreadableSecretNote } from './unreadable-secrets.ts'

export async function webhookPage(
  visit: Visit,
  { webhook, health }: { webhook: Webhook; health: WebhookHealth },
  tab: 'deliveries' | 'settings',
  body: Content,
): Promise<ConsolePage> {
  const canManage = canManageWebhooks(visit.user)
  const isSecretUnreadable = (await findUnreadableSecrets(visit)).has(webhook.id)
  const to = `/webhooks/${webhook.id}`
  const testButton = actionForm({
    to: `${to}/test`,
    label: 'Send test event',
    style: 'primary',
    fields: newFormKey(),
    target: tab === 'deliveries' ? 'log' : undefined,
  })
  return {
    title: webhookName(webhook),
    lead: html`<span class="webhook-head">
      ${reloadedHealthPill(health, isSecretUnreadable)}
      <bdi class="mono">${readableUrl(webhook.url)}</bdi>
      ${copyButton(webhook.url, 'URL')}
    </span>`,
    crumbs: [{ label: 'Webhooks', to: '/webhooks' }],
    actions: canManage && webhook.enabled && testButton,
    listId: tab === 'deliveries' ? 'log' : undefined,
    body: [
      html`<div class="above-table">
        ${tabs('Webhook', [
          { label: 'Deliveries', to, isCurrent: tab === 'deliveries' },
          { label: 'Settings', to: `${to}/settings`, isCurrent: tab === 'settings' },
        ])}
      </div>`,
      isSecretUnreadable && unreadableSecretNote(webhook.id, canManage),
      healthAlert(visit, webhook, health),
      body,
    ],
  }
}
