/** The list of webhooks. */
import { findWebhookHealth, type WebhookHealth } from '../../../records/reports/webhook-health.ts'
import { listWebhooks, readableUrl, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { formatMoment, percentileDuration } from '../format.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  getFromStandby,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  buttonLink,
  card,
  empty,
  NO_VALUE,
  numberColumn,
  table,
  timeElement,
  twoLines,
} from '../ui.ts'
import { attemptResult } from './delivery-rows.ts'
import {
  attemptBars,
  healthPill,
  isInTrouble,
  limitedCount,
  linkedCount,
  succeededShare,
  urgencyOf,
} from './health.ts'
import { findUnreadableSecrets } from './unreadable-secrets.ts'

export const webhooksRoutes: Route[] = [getFromStandby('/webhooks', isOwnerOrAdmin, webhooksPage)]

async function webhooksPage(visit: Visit): Promise<ConsolePage> {
  const { scope, user, now } = visit
  const webhooks = await listWebhooks(scope)
  const ids = webhooks.map(({ id }) => id)
  const [health, unreadableSecrets] = await Promise.all([
    findWebhookHealth(scope, ids, now),
    findUnreadableSecrets(visit),
  ])
  const canManage = canManageWebhooks(user)
  return {
    title: 'Webhooks',
    lead: 'Your endpoints receive events as signed POST requests. Failed deliveries are retried.',
    actions: [
      buttonLink('/webhooks/jobs', 'Bulk jobs', 'quiet'),
      canManage && buttonLink('/webhooks/new', 'Create webhook', 'primary'),
    ],
    body: [
      !canManage && (await readOnlyNote(visit, 'webhooks')),
      card(
        '',
        webhooks.length === 0
          ? noWebhooks
          : webhooksTable(webhooks, { health, unreadableSecrets }, now),
      ),
    ],
  }
}

const noWebhooks = empty(
  'No webhooks yet',
  html`Stop polling the API: a webhook sends each event to your endpoint within a second.
    <a href="/docs/guides/webhooks">How to receive webhooks</a>`,
)

interface WebhookStates {
  health: Map<string, WebhookHealth>
  unreadableSecrets: Set<string>
}

function webhooksTable(
  webhooks: Webhook[],
  { health, unreadableSecrets }: WebhookStates,
  now: Date,
): Html {
  const columns = [
    'Webhook',
    'Health',
    'Events',
    'Last 24 hours',
    numberColumn('Succeeded'),
    numberColumn('p95'),
    numberColumn('Waiting'),
    numberColumn('Failed'),
  ]
  const urgency = ({ id }: Webhook): number => {
    const found = health.get(id)
    return found ? urgencyOf(found, unreadableSecrets.has(id)) : 0
  }
  const sorted = webhooks.toSorted((one, other) => urgency(other) - urgency(one))
  const rows = sorted.map((webhook) => {
    const webhookHealth = health.get(webhook.id)
    return {
      id: `webhook-${webhook.id}`,
      cells: [
        nameCell(webhook),
        webhookHealth && healthCell(webhookHealth, unreadableSecrets.has(webhook.id)),
        eventsCell(webhook),
        webhookHealth && attemptBars(webhookHealth),
        webhookHealth && succeededShare(webhookHealth.lastDay),
        webhookHealth && p95Cell(webhookHealth),
        webhookHealth && waitingCell(webhookHealth, now),
        webhookHealth && failedCell(webhook, webhookHealth),
      ],
    }
  })
  return table('Webhooks', columns, rows)
}

function nameCell(webhook: Webhook): Html {
  const name = html`<bdi>${webhookName(webhook)}</bdi>`
  const link = html`<a href="/console/webhooks/${webhook.id}">${name}</a>`
  const url =
    webhook.description !== '' && html`<span class="mono">${readableUrl(webhook.url)}</span>`
  return twoLines(link, url, 'webhook-name')
}

function healthCell(health: WebhookHealth, isSecretUnreadable: boolean): Html {
  const { failingSince, lastAttempt } = health
  const state = healthPill(health, isSecretUnreadable)
  if (!isInTrouble(health) || lastAttempt === null) return state
  const since = failingSince !== null && `since ${formatMoment(failingSince)}: `
  return twoLines(state, html`<span class="nowrap">${since}${attemptResult(lastAttempt)}</span>`)
}

function p95Cell({ p95Ms }: WebhookHealth): Html {
  return p95Ms === null ? NO_VALUE : html`<span class="nowrap">${percentileDuration(p95Ms)}</span>`
}

function eventsCell({ eventTypes }: Webhook): Content {
  if (eventTypes.includes('*')) return 'All'
  const [first, ...others] = eventTypes
  const more =
    others.length > 0 &&
    html`<span class="muted" title="${others.join(', ')}">+ ${others.length}</span>`
  return html`<span class="nowrap"><code>${first}</code> ${more}</span>`
}

function failedCell({ id }: Webhook, { undelivered }: WebhookHealth): Html {
  const { failed, countedUpTo } = undelivered
  return linkedCount(failed, `/webhooks/${id}?state=failed`, countedUpTo)
}

function waitingCell(
  { undelivered: { retrying, pending, countedUpTo, oldestWaitingSince } }: WebhookHealth,
  now: Date,
): Content {
  const waiting = retrying + pending
  if (waiting === 0) return NO_VALUE
  const oldest = html`<span class="nowrap">oldest ${timeElement(oldestWaitingSince, now)}</span>`
  return twoLines(limitedCount(waiting, countedUpTo), oldest, 'at-end')
}
