/** The settings of a webhook, and the actions on it: test, enable, disable, delete. */
import { findUser } from '../../../records/users.ts'
import { readableUrl, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { removeWebhook, sendTestEvent, switchWebhook } from '../../../webhooks/webhook-changes.ts'
import { type Html, html } from '../../shared/html.ts'
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
      configuration(visit, webhook, creator?.fullName ?? 'the CLI'),
      canManage && buttonLink(editPath(webhook), 'Edit'),
    ),
    canManage && webhook.enabled && webhook.format === 'event' && missedEvents(webhook),
    canManage && card(webhook.enabled ? 'Disable or delete' : 'Delete', stopActions(webhook)),
  ])
}

function configuration({ user, now }: Visit, webhook: Webhook, creator: string): Html {
  const { id, eventTypes, ordering, headerNames, createdAt, updatedAt, format } = webhook
  const chips = (names: string[]): Html => html`<span class="event-chips">${names.map(code)}</span>`
  return facts([
    ['Events', eventTypes.includes('*') ? 'All, including types added later' : chips(eventTypes)],
    ['Order', ordering === 'none' ? 'As fast as possible' : 'In order for each record'],
    headerNames.length > 0 && ['Headers', chips(headerNames)],
    format === 'event' && canManageWebhooks(user) && ['Signing secret', secretFact(webhook)],
    ['ID', copyableId(id)],
    ['Created', html`${timeElement(createdAt, now)} by ${creator}`],
    updatedAt !== createdAt && ['Updated', timeElement(updatedAt, now)],
  ])
}

function secretFact({ id, hasNextSecret }: Webhook): Html {
  const path = `/console/webhooks/${id}/secret`
  return hasNextSecret
    ? html`The next secret is not active yet. <a href="${path}">Activate it</a>`
    : html`<a href="${path}">View or rotate</a>`
}

function missedEvents({ id }: Webhook): Html {
  const text = html`Send events that this webhook never received, for example while it was disabled.
    To retry failed deliveries, open <a href="/console/webhooks/${id}">Deliveries</a>.`
  const control = buttonLink(`/webhooks/${id}/send-missed`, 'Send missed events')
  return card('Missed events', actionRows([actionRow({ text, control })]))
}

function stopActions(webhook: Webhook): Html {
  return actionRows([
    webhook.enabled &&
      actionRow({
        text: 'Nothing is sent until you enable the webhook again.',
        control: disableButton(webhook),
      }),
    actionRow({
      text: 'The webhook and its delivery log are no longer shown.',
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
