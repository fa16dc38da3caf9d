/** The page of an event: its record, its cause, its payload and its deliveries, which can be sent
 *  again. */
import { Refused } from '../../../errors.ts'
import { findAccountKey } from '../../../records/api-keys.ts'
import type { AttemptSummary } from '../../../records/attempts.ts'
import { type Delivery, listDeliveriesOfEvent } from '../../../records/deliveries.ts'
import {
  eventFromStored,
  findEventRow,
  type PublicEvent,
  type StoredEventRow,
} from '../../../records/events.ts'
import { findUser } from '../../../records/users.ts'
import { findWebhookNames, listWebhooks, type Webhook } from '../../../records/webhooks.ts'
import { commandDelivery, type DeliveryCommand } from '../../../webhooks/webhook-changes.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { absoluteTime, counted, duration } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import { commandOnce, newFormKey } from '../idempotent-form.ts'
import { jsonBlock } from '../json-block.ts'
import {
  type ConsolePage,
  canManageKeys,
  canManageWebhooks,
  get,
  isOwner,
  isOwnerOrAdmin,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { recordFact, resourceOfType } from '../records/record-link.ts'
import { canViewResource, fieldLabel } from '../records/resources.ts'
import {
  actionForm,
  card,
  copyableId,
  empty,
  facts,
  note,
  numberColumn,
  pill,
  shortId,
  table,
  timeElement,
} from '../ui.ts'
import {
  attemptDots,
  attemptResult,
  DELIVERY_STATES,
  deliveryPath,
  isInProgress,
  withAttempts,
} from '../webhooks/delivery-rows.ts'
import { causeFacts } from './cause.ts'

export const eventRoutes: Route[] = [
  get('/events/:event', isOwnerOrAdmin, eventPage),
  post('/events/:event/resend', canManageWebhooks, resend),
]

/** An event has one delivery for each webhook, and an account has at most 50 webhooks at once. */
const MAX_DELIVERIES = 100
const REFRESH_SECONDS = 2
const DELIVERIES_ID = 'event-deliveries'

/** The event in the page's URL. Throws 404 if the account has no such event. */
async function loadEvent({ scope, params, ctx }: Visit): Promise<StoredEventRow> {
  return (await findEventRow(scope, params.event ?? '')) ?? ctx.throw(404)
}

async function eventPage(visit: Visit): Promise<ConsolePage> {
  const row = await loadEvent(visit)
  const event = eventFromStored(row)
  const resource = resourceOfType(event.resource.type)
  const canView = resource !== undefined && canViewResource(visit.user, resource)
  const at = Date.parse(event.created_at)
  return {
    title: event.event_type,
    lead: html`${timeElement(at, visit.now)}, ${absoluteTime(at)}`,
    crumbs: [{ label: 'Events', to: '/events' }],
    body: [
      card(
        '',
        html`<div class="card-body request-detail">${await eventFacts(visit, event, row)}</div>`,
      ),
      await deliveriesCard(visit, event),
      canView && changesCard(event),
      card('Payload', payload(event, canView)),
    ],
  }
}

async function eventFacts(visit: Visit, event: PublicEvent, row: StoredEventRow): Promise<Html> {
  return facts([
    ['Event ID', copyableId(event.id)],
    ['Event', html`<a href="/docs/events/${event.event_type}">${event.event_type}</a>`],
    ['Record', await recordFact(visit, event.resource)],
    ['Caused by', await actorOf(visit, event)],
    ...(await causeFacts(visit, row)),
  ])
}

async function actorOf({ scope, user }: Visit, { actor }: PublicEvent): Promise<Content> {
  if (!actor) return 'Not recorded'
  const { type, id, user_id: userId } = actor
  if (userId === null || id === null) return 'Muster'
  const [person, key] = await Promise.all([
    findUser(scope, userId),
    type === 'api_key' ? findAccountKey(scope, id) : undefined,
  ])
  const name = person?.fullName ?? 'A former user'
  const personLink =
    isOwner(user) && person ? html`<a href="/console/people/${userId}">${name}</a>` : name
  if (type !== 'api_key') return [personLink, ', in the console']
  const keyName = key?.name ?? 'a former key'
  const keyLink =
    canManageKeys(user) && key ? html`<a href="/console/api-keys/${id}">${keyName}</a>` : keyName
  return [personLink, ', with the key ', keyLink]
}

function changesCard({ changes }: PublicEvent): Content {
  if (!changes || changes.length === 0) return false
  const rows = changes.map(({ field, before, after }) => ({
    cells: [fieldLabel(field), valueText(before), valueText(after)],
  }))
  return card('Changes', table('Changes', ['Field', 'Before', 'After'], rows))
}

/** Undefined: the value was too large to be stored. */
function valueText(value: unknown): Html {
  if (value === undefined) return html`<span class="muted">Not stored</span>`
  return html`<code>${JSON.stringify(value)}</code>`
}

function payload({ event_type, resource, data }: PublicEvent, canView: boolean): Content {
  if (!canView)
    return note('busy', 'The payload is hidden because you have no access to these records.')
  return [
    jsonBlock(JSON.stringify({ event_type, resource, data }), 'payload'),
    html`<p class="muted">Each delivery adds its own <code>id</code>.</p>`,
  ]
}

async function deliveriesCard(visit: Visit, event: PublicEvent): Promise<Html> {
  const { scope, user, now } = visit
  const deliveries = await listDeliveriesOfEvent(scope, event.id, MAX_DELIVERIES)
  const webhooks = new Map((await listWebhooks(scope)).map((webhook) => [webhook.id, webhook]))
  const names = await findWebhookNames(
    scope,
    deliveries.map(({ webhookId }) => webhookId),
  )
  const sendable = deliveries.filter(
    (delivery) =>
      canManageWebhooks(user) && canSend(delivery, webhooks.get(delivery.webhookId), now),
  )
  const rows = (await withAttempts(visit, deliveries)).map((row) => ({
    cells: deliveryCells(visit, event, row, {
      name: names.get(row.delivery.webhookId) ?? '',
      isDeleted: !webhooks.has(row.delivery.webhookId),
      canSend: sendable.includes(row.delivery),
    }),
  }))
  const isMoving = deliveries.some((delivery) => isInProgress(delivery, now))
  const reload =
    isMoving && reloadEvery(REFRESH_SECONDS, `/console/events/${event.id}`, DELIVERIES_ID)
  const body =
    rows.length > 0
      ? table('Deliveries', COLUMNS, rows)
      : empty('No deliveries', 'No enabled webhook was subscribed to this event.')
  return html`<div id="${DELIVERIES_ID}"${reload}>
    ${card('Deliveries', body, sendable.length > 1 && sendButton(event, sendable.length))}
  </div>`
}

const COLUMNS = [
  'State',
  'Webhook',
  'Delivery',
  'Response',
  numberColumn('Duration'),
  'Attempts',
  { label: 'Actions', isHidden: true },
]

function deliveryCells(
  { now }: Visit,
  event: PublicEvent,
  { delivery, attempts }: { delivery: Delivery; attempts: AttemptSummary[] },
  webhook: { name: string; isDeleted: boolean; canSend: boolean },
): Content[] {
  const { id, state, webhookId } = delivery
  const { tone, label } = DELIVERY_STATES[state]
  const last = attempts.at(-1)
  const shortDelivery = html`<code title="${id}">${shortId(id)}</code>`
  const sending = isInProgress(delivery, now) && html`<span class="muted nowrap">Sending …</span>`
  return [
    pill(tone, label),
    webhook.isDeleted
      ? html`${webhook.name} <span class="muted">(deleted)</span>`
      : html`<a href="/console/webhooks/${webhookId}">${webhook.name}</a>`,
    webhook.isDeleted
      ? shortDelivery
      : html`<a href="/console${deliveryPath(delivery)}">${shortDelivery}</a>`,
    last && attemptResult(last),
    last && duration(last.durationMs),
    attemptDots(delivery, attempts),
    html`<div class="row-actions">
      ${webhook.canSend ? sendOneButton(event, delivery) : sending}
    </div>`,
  ]
}

function canSend(delivery: Delivery, webhook: Webhook | undefined, now: Date): boolean {
  const isWaitingItsTurn = delivery.state === 'pending' && delivery.nextAttemptAt === null
  return webhook?.enabled === true && !isInProgress(delivery, now) && !isWaitingItsTurn
}

const COMMANDS: Record<Delivery['state'], { command: DeliveryCommand; label: string }> = {
  delivered: { command: 'resend', label: 'Resend' },
  failed: { command: 'retry', label: 'Retry' },
  pending: { command: 'attempt', label: 'Retry now' },
  retrying: { command: 'attempt', label: 'Retry now' },
}

function sendOneButton({ id }: PublicEvent, { id: delivery, state }: Delivery): Html {
  return actionForm({
    to: `/events/${id}/resend`,
    label: COMMANDS[state].label,
    style: state === 'delivered' ? 'quiet' : '',
    fields: { delivery, ...newFormKey() },
    target: DELIVERIES_ID,
  })
}

function sendButton({ id }: PublicEvent, deliveries: number): Html {
  return actionForm({
    to: `/events/${id}/resend`,
    label: `Resend to ${counted(deliveries, 'webhook')}`,
    fields: newFormKey(),
    target: DELIVERIES_ID,
  })
}

/** Sends one delivery again, or all. A refusal of one does not keep back the others. */
async function resend(visit: Visit): Promise<PageResult> {
  const { form, scope, ctx } = visit
  const event = await loadEvent(visit)
  const only = form.get('delivery')
  const all = await listDeliveriesOfEvent(scope, event.id, MAX_DELIVERIES)
  const deliveries = only === null ? all : all.filter(({ id }) => id === only)
  if (deliveries.length === 0) return ctx.throw(404)
  const refusals: string[] = []
  let sent = 0
  await commandOnce(visit, async (changeScope) => {
    refusals.length = 0
    sent = 0
    for (const delivery of deliveries) {
      try {
        const { command } = COMMANDS[delivery.state]
        if (await commandDelivery({ ...visit, scope: changeScope }, delivery, command)) sent++
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        refusals.push(error.message)
      }
    }
    return { id: event.id }
  })
  const to = `/events/${event.id}`
  // This form was sent before: the first request did everything.
  if (sent === 0 && refusals.length === 0) return { to }
  return redirect(to, resultText(sent, refusals), sent > 0 ? 'ok' : 'bad')
}

function resultText(sent: number, refusals: string[]): string {
  const reasons = [...new Set(refusals)].join(' ')
  if (sent === 0) return reasons
  const sending = `Sending now to ${counted(sent, 'webhook')}.`
  return refusals.length === 0
    ? sending
    : `${sending} ${counted(refusals.length, 'delivery', 'deliveries')} not sent. ${reasons}`
}
