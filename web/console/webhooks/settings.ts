/** The settings of a webhook, and the actions on it: test, enable, disable, delete. */
import type { WebhookHealth } from '../../../records/reports/webhook-health.ts'
import { findUser } from '../../../records/users.ts'
import { readableUrl, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { removeWebhook, sendTestEvent, switchWebhook } from '../../../webhooks/webhook-changes.ts'
import { type Html, html } from '../../shared/html.ts'
import { absoluteTime } from '../format.ts'
import { commandOnce } from '../idempotent-form.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  get,
  isOwnerOrAdmin,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  actionForm,
  actionRow,
  actionRows,
  buttonLink,
  card,
  code,
  confirmButton,
  copyableId,
  facts,
  timeElement,
} from '../ui.ts'
import { loadHealth } from './health.ts'
import { editPath, loadWebhook } from './webhook.ts'
import { webhookPage } from './webhook-page.ts'

export const webhookSettingsRoutes: Route[] = [
  get('/webhooks/:webhook/settings', isOwnerOrAdmin, settingsPage),
  post('/webhooks/:webhook/test', canManageWebhooks, sendTest),
  post('/webhooks/:webhook/enable', canManageWebhooks, (visit) => setEnabled(visit, true)),
  post('/webhooks/:webhook/disable', canManageWebhooks, (visit) => setEnabled(visit, false)),
  post('/webhooks/:webhook/delete', canManageWebhooks, deleteWebhook),
]

async function settingsPage(visit: Visit): Promise<ConsolePage> {
  const { scope, user } = visit
  const webhook = await loadWebhook(visit)
  const { createdBy } = webhook
  const canManage = canManageWebhooks(user)
  const creator = createdBy === null ? undefined : await findUser(scope, createdBy)
  const health = await loadHealth(visit, webhook)
  return webhookPage(visit, { webhook, health }, 'settings', [
    !canManage && (await readOnlyNote(visit, 'webhooks')),
    card(
      'Configuration',
      configuration(webhook, creator?.fullName ?? 'the CLI', visit.now),
      canManage && buttonLink(editPath(webhook), 'Edit'),
    ),
    canManage && card('Actions', webhookActions(webhook, health)),
  ])
}

function configuration(webhook: Webhook, creator: string, now: Date): Html {
  const { id, url, description, eventTypes, ordering, headerNames, createdAt, updatedAt } = webhook
  const chips = (names: string[]): Html => html`<span class="event-chips">${names.map(code)}</span>`
  const none = html`<span class="muted">None</span>`
  return facts([
    ['URL', html`<bdi class="mono">${readableUrl(url)}</bdi>`],
    ['Description', description === '' ? none : html`<bdi>${description}</bdi>`],
    ['Events', eventTypes.includes('*') ? 'All, including types added later' : chips(eventTypes)],
    ['Headers', headerNames.length === 0 ? none : chips(headerNames)],
    ['Order', ordering === 'none' ? 'As fast as possible' : 'In order for each record'],
    ['ID', copyableId(id)],
    ['Created', html`by ${creator}, ${timeElement(createdAt, now)} (${absoluteTime(createdAt)})`],
    ['Updated', timeElement(updatedAt, now)],
  ])
}

function webhookActions(webhook: Webhook, { undelivered }: WebhookHealth): Html {
  const { id, enabled, format, hasNextSecret } = webhook
  const to = `/webhooks/${id}`
  const secretText = hasNextSecret
    ? 'The next secret is prepared but not active yet.'
    : 'View or rotate the signing secret.'
  return actionRows([
    format === 'event' &&
      actionRow({
        text: secretText,
        control: buttonLink(`${to}/secret`, 'Signing secret'),
      }),
    enabled && [
      format === 'event' &&
        actionRow({
          text: 'Send events that this webhook never received, for example while it was disabled.',
          control: buttonLink(`${to}/send-missed`, 'Send missed events'),
        }),
      actionRow({
        text: 'Retry every failed delivery in a time range.',
        control: buttonLink(`${to}/retry-failed`, 'Retry failed deliveries'),
      }),
      undelivered.retrying > 0 &&
        actionRow({
          text: 'Make the next attempt of every retrying delivery now, for example after a repair.',
          control: buttonLink(`${to}/retry-waiting`, 'Retry waiting deliveries'),
        }),
      actionRow({
        text: 'Stop sending until you enable this webhook again.',
        control: disableButton(webhook),
      }),
    ],
    !enabled &&
      actionRow({
        text: 'Send events that happen from now on.',
        control: actionForm({ to: `${to}/enable`, label: 'Enable webhook' }),
      }),
    actionRow({
      text: 'Stop sending for good. The delivery log is no longer shown.',
      control: deleteButton(webhook),
    }),
  ])
}

function disableButton({ id }: Webhook): Html {
  return confirmButton('Disable webhook …', {
    title: 'Disable this webhook?',
    text: [
      'Nothing is sent until you enable it again. ',
      'Scheduled retries are cancelled and marked failed. ',
      'After enabling it, you can send the events it missed.',
    ],
    openStyle: '',
    body: actionForm({ to: `/webhooks/${id}/disable`, label: 'Disable webhook', style: 'danger' }),
  })
}

function deleteButton({ id, url }: Webhook): Html {
  return confirmButton('Delete webhook …', {
    title: 'Delete this webhook?',
    text: html`Nothing more is sent to <bdi class="mono">${readableUrl(url)}</bdi>. Scheduled retries are
      cancelled and its delivery log is no longer shown. You cannot undo this.`,
    body: actionForm({ to: `/webhooks/${id}/delete`, label: 'Delete webhook', style: 'danger' }),
  })
}

async function sendTest(visit: Visit): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const tooOften = await visit.throttles.consume('test_event', webhook.id)
  if (tooOften) throw tooOften
  await commandOnce(visit, async (scope) => {
    const id = await sendTestEvent({ ...visit, scope }, webhook.id)
    return { id: id ?? visit.ctx.throw(404) }
  })
  return redirect(`/webhooks/${webhook.id}`, 'Test event sent. The response will appear below.')
}

async function setEnabled(visit: Visit, enabled: boolean): Promise<PageResult> {
  const id = visit.params.webhook ?? ''
  await visit.change(
    async (scope) =>
      (await switchWebhook({ ...visit, scope }, id, enabled)) ?? visit.ctx.throw(404),
  )
  const text = enabled
    ? 'Webhook enabled. It receives events from now on.'
    : 'Webhook disabled. Nothing is sent until you enable it again.'
  return redirect(`/webhooks/${id}`, text)
}

async function deleteWebhook(visit: Visit): Promise<PageResult> {
  const id = visit.params.webhook ?? ''
  const deleted = await visit.change(
    async (scope) => (await removeWebhook({ ...visit, scope }, id)) ?? visit.ctx.throw(404),
  )
  return redirect('/webhooks', `Webhook “${webhookName(deleted)}” deleted.`)
}
