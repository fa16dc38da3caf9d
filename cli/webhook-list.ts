import type { Db } from '../records/database/open.ts'
import { readScope } from '../records/database/scope.ts'
import { findWebhookHealth, type WebhookHealth } from '../records/reports/webhook-health.ts'
import { listWebhooks, readableUrl, type Webhook } from '../records/webhooks.ts'
import { type Columns, databaseCommand, listOutput } from './commands.ts'
import { lookUpAccountIds } from './lookup.ts'
import { formatTime } from './shell.ts'

interface ListedWebhook {
  webhook: Webhook
  health: WebhookHealth
}

export const list = databaseCommand({
  name: 'list',
  summary: 'list webhooks with their health',
  description:
    'List webhooks with their health, oldest first. SUCCEEDED counts the attempts of the last 24 hours, ' +
    'and WAITING the deliveries that have an attempt left.',
  declare: (command) =>
    command.option('--account <account>', 'only webhooks of this account: its ID or its name'),
  examples: ['muster webhook list', 'muster webhook list --account ID --json'],
  async run({ db, now }, { account }: { account?: string }) {
    const accountIds = await lookUpAccountIds(db, account)
    const webhooks = await listWithHealth(db, accountIds, now())
    return listOutput(webhooks, {
      toDocument,
      columns: COLUMNS,
      none:
        'No webhooks yet. Create one:\n' +
        "  muster webhook create --account ID --url URL --events '*'",
    })
  },
})

async function listWithHealth(db: Db, accountIds: string[], now: Date): Promise<ListedWebhook[]> {
  const listed: ListedWebhook[] = []
  for (const accountId of accountIds) {
    const scope = readScope(db, accountId)
    const webhooks = await listWebhooks(scope)
    const ids = webhooks.map(({ id }) => id)
    const healths = await findWebhookHealth(scope, ids, now)
    for (const webhook of webhooks) {
      const health = healths.get(webhook.id)
      // A webhook without health was deleted meanwhile.
      if (health) listed.push({ webhook, health })
    }
  }
  return listed
}

function toDocument({ webhook, health }: ListedWebhook) {
  return {
    id: webhook.id,
    account_id: webhook.accountId,
    url: webhook.url,
    description: webhook.description,
    event_types: webhook.eventTypes,
    ordering: webhook.ordering,
    header_names: webhook.headerNames,
    enabled: webhook.enabled,
    disabled_at: formatTime(webhook.disabledAt),
    has_next_secret: webhook.hasNextSecret,
    created_at: formatTime(webhook.createdAt),
    updated_at: formatTime(webhook.updatedAt),
    health: toHealthDocument(health),
  }
}

function toHealthDocument(health: WebhookHealth) {
  const { lastAttempt, undelivered } = health
  return {
    state: health.state,
    disabled_by_service: health.isDisabledByService,
    failing_since: formatTime(health.failingSince),
    last_attempt_at: formatTime(lastAttempt?.at ?? null),
    last_status: lastAttempt?.status ?? null,
    last_success_at: formatTime(health.lastSuccessAt),
    attempts_last_hour: health.lastHour,
    attempts_last_day: health.lastDay,
    p95_ms: health.p95Ms,
    waiting: countWaiting(health),
    oldest_waiting_since: formatTime(undelivered.oldestWaitingSince),
  }
}

/** Counts the deliveries that have an attempt left, up to `countedUpTo`. If the result is
 *  `countedUpTo`, there may be more. */
function countWaiting({ undelivered }: WebhookHealth): number {
  return Math.min(undelivered.countedUpTo, undelivered.pending + undelivered.retrying)
}

const COLUMNS: Columns<ListedWebhook> = {
  ID: ({ webhook }) => webhook.id,
  HEALTH: ({ health }) => health.state.replace('_', ' '),
  SUCCEEDED: ({ health: { lastDay } }) =>
    `${lastDay.succeeded} of ${lastDay.succeeded + lastDay.failed}`,
  WAITING: ({ health }) => {
    const waiting = countWaiting(health)
    const mayBeMore = waiting === health.undelivered.countedUpTo
    return `${waiting}${mayBeMore ? '+' : ''}`
  },
  URL: ({ webhook }) => readableUrl(webhook.url),
  EVENTS: ({ webhook }) => webhook.eventTypes.join(','),
}
