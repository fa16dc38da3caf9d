/** The overview: requests and deliveries of the last 24 hours. Members see what to do next. */
import { listRateLimitUse, type RateLimitUse } from '../../records/reports/rate-limit-use.ts'
import { findTraffic, type Traffic } from '../../records/reports/traffic.ts'
import {
  findWebhookHealth,
  type Undelivered,
  type WebhookHealth,
} from '../../records/reports/webhook-health.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../records/time-units.ts'
import { listWebhooks, type Webhook, webhookName } from '../../records/webhooks.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { limitMeter, sparkline, stackedBars, sum } from './charts.ts'
import { firstSteps, gettingStarted } from './first-steps.ts'
import { count, counted, percentileDuration, zoneTitle } from './format.ts'
import { reloadEvery } from './htmx.ts'
import { memberHome } from './member-home.ts'
import { TROUBLED_WEBHOOKS_ID } from './navigation.ts'
import {
  anyUser,
  type ConsolePage,
  canManageWebhooks,
  getFromStandby,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from './page.ts'
import { formatPercent, requestBars, requestStats } from './requests/request-figures.ts'
import { isReload, sharedPage, sharedRead } from './shared-reads.ts'
import { buttonLink, card, empty, numberColumn, type Stat, stats, table } from './ui.ts'
import {
  attemptBars,
  attemptSeries,
  healthPill,
  linkedCount,
  succeededShare,
  urgencyOf,
} from './webhooks/health.ts'
import { findUnreadableSecrets } from './webhooks/unreadable-secrets.ts'

export const overviewRoutes: Route[] = [getFromStandby('', anyUser, overview)]

const REFRESH_SECONDS = 15
const BUCKET_MS = 30 * MINUTE_MS
const MAX_WEBHOOKS = 6
const MAX_USERS = 6

async function overview(visit: Visit): Promise<ConsolePage> {
  const { user, account } = visit
  if (!isOwnerOrAdmin(user))
    return { title: 'Overview', lead: account.name, body: await memberHome(visit) }
  return sharedPage(visit, async () => ({
    title: 'Overview',
    lead: `${account.name} in the last 24 hours. Times are in ${zoneTitle()}.`,
    body: await lastDay(visit),
  }))
}

async function lastDay(visit: Visit): Promise<Content> {
  const { scope, now } = visit
  const endOfBucket = now.getTime() - (now.getTime() % BUCKET_MS) + BUCKET_MS
  const webhooks = await listWebhooks(scope)
  const ids = webhooks.map(({ id }) => id)
  const [[traffic, use], healths, unreadable, steps] = await Promise.all([
    sharedRead(visit, ['last day', endOfBucket], () =>
      Promise.all([
        findTraffic(scope, { from: endOfBucket - DAY_MS, until: null }, BUCKET_MS, endOfBucket),
        listRateLimitUse(scope, now, MAX_USERS),
      ]),
    ),
    findWebhookHealth(scope, ids, now),
    findUnreadableSecrets(visit),
    isReload(visit) ? [] : firstSteps(visit, webhooks.length > 0),
  ])
  const rows = webhooks.flatMap((webhook): WebhookRow[] => {
    const health = healths.get(webhook.id)
    return health ? [{ webhook, health, isSecretUnreadable: unreadable.has(webhook.id) }] : []
  })
  const alsoReloaded = `#${TROUBLED_WEBHOOKS_ID}:outerMorph`
  const reload = reloadEvery(REFRESH_SECONDS, '/console', 'last-day', alsoReloaded)
  const isNewAccount = traffic.requests === 0 && webhooks.length === 0
  const cards = [
    requestsCard(traffic),
    attemptsCard(visit, rows),
    webhooksCard(rows),
    rateLimitCard(visit, use),
  ]
  return [
    steps.some(({ isDone }) => !isDone) && gettingStarted(steps),
    html`<div id="last-day"${reload}>
      ${dayStats(traffic, rows)}
      ${!isNewAccount && html`<div class="halves">${cards}</div>`}
    </div>`,
  ]
}

interface WebhookRow {
  webhook: Webhook
  health: WebhookHealth
  isSecretUnreadable: boolean
}

function dayStats(traffic: Traffic, rows: WebhookRow[]): Html {
  const { serverErrors, durations } = traffic
  return stats([
    ...requestStats(traffic, {
      requests: durations && `median ${percentileDuration(durations.p50)}`,
      errors: counted(serverErrors, 'server error'),
    }),
    ...webhookStats(rows),
  ])
}

function webhookStats(rows: WebhookRow[]): Stat[] {
  const hours = sumHours(rows)
  const succeeded = sum(hours.map((hour) => hour.succeeded))
  const attempts = succeeded + sum(hours.map((hour) => hour.failed))
  const undelivered = rows.map(({ health }) => health.undelivered)
  const waiting = sum(undelivered.map(({ pending, retrying }) => pending + retrying))
  const failed = sum(undelivered.map((one) => one.failed))
  // `+` if the count of one webhook has stopped at its limit.
  const orMore = (read: (one: Undelivered) => number): string =>
    undelivered.some((one) => read(one) >= one.countedUpTo) ? '+' : ''
  const failedText = `${count(failed)}${orMore((one) => one.failed)}`
  return [
    {
      label: 'Webhook attempts',
      value: count(attempts),
      note: attempts > 0 && `${formatPercent(succeeded, attempts)} succeeded`,
      chart: attempts > 0 && sparkline(hours.map((hour) => hour.succeeded + hour.failed)),
    },
    {
      label: 'Failed deliveries',
      value: failed > 0 ? html`<a href="/console/deliveries">${failedText}</a>` : failedText,
      note:
        waiting > 0 && `${count(waiting)}${orMore((one) => one.pending + one.retrying)} waiting`,
    },
  ]
}

function sumHours(rows: WebhookRow[]): WebhookHealth['hours'] {
  const hoursByRow = rows.map(({ health }) => health.hours)
  return (hoursByRow[0] ?? []).map(({ startsAt }, index) => ({
    startsAt,
    succeeded: sum(hoursByRow.map((hours) => hours[index]?.succeeded ?? 0)),
    failed: sum(hoursByRow.map((hours) => hours[index]?.failed ?? 0)),
  }))
}

function requestsCard(traffic: Traffic): Html {
  const none = empty('No requests', 'The API received no requests in the last 24 hours.')
  return card(
    'Requests',
    traffic.requests > 0 ? requestBars('Requests', traffic, BUCKET_MS, {}) : none,
    buttonLink('/requests', 'All requests', 'quiet'),
  )
}

function attemptsCard({ user }: Visit, rows: WebhookRow[]): Html {
  const hours = sumHours(rows)
  const series = attemptSeries(hours)
  const isEmpty = sum(series.flatMap(({ values }) => values)) === 0
  const none =
    rows.length === 0
      ? empty(
          'No webhooks',
          'Stop polling the API: get notified of every change by webhook.',
          canManageWebhooks(user) && buttonLink('/webhooks/new', 'Create webhook'),
        )
      : empty('No attempts', 'Webhooks received nothing in the last 24 hours.')
  const chart = stackedBars({
    title: 'Webhook attempts',
    startsAt: hours.map(({ startsAt }) => startsAt),
    bucketMs: HOUR_MS,
    series,
  })
  return card(
    'Webhook attempts',
    isEmpty ? none : chart,
    buttonLink('/webhooks', 'All webhooks', 'quiet'),
  )
}

function webhooksCard(rows: WebhookRow[]): Content {
  if (rows.length === 0) return false
  const urgency = ({ health, isSecretUnreadable }: WebhookRow): number =>
    urgencyOf(health, isSecretUnreadable)
  const tableRows = rows
    .toSorted((one, other) => urgency(other) - urgency(one))
    .slice(0, MAX_WEBHOOKS)
    .map((row) => ({ cells: webhookCells(row) }))
  const columns = [
    'Webhook',
    'Last 24 hours',
    numberColumn('Succeeded'),
    numberColumn('Waiting'),
    numberColumn('Failed'),
  ]
  return card('Webhooks', table('Webhooks', columns, tableRows))
}

function webhookCells({ webhook, health, isSecretUnreadable }: WebhookRow): Content[] {
  const { failed, pending, retrying, countedUpTo } = health.undelivered
  const to = `/webhooks/${webhook.id}`
  // The linked log filters by one state only: by `retrying` if there are such deliveries, because
  // they have failed attempts to look at.
  const waitingState = retrying > 0 ? 'retrying' : 'pending'
  return [
    html`<a class="clipped" href="/console${to}"><bdi>${webhookName(webhook)}</bdi></a>
      ${healthPill(health, isSecretUnreadable)}`,
    attemptBars(health),
    succeededShare(health.lastDay),
    linkedCount(pending + retrying, `${to}?state=${waitingState}`, countedUpTo),
    linkedCount(failed, `${to}?state=failed`, countedUpTo),
  ]
}

function rateLimitCard({ config }: Visit, use: RateLimitUse[]): Content {
  if (use.length === 0) return false
  const rows = use.map(({ user, peakRequests, refusedRequests, requestsPerMinute }) => {
    const limit = requestsPerMinute ?? config.quotas.requests_per_minute
    const to = `/requests?range=1h&user=${user.id}`
    const peakMeter = limitMeter(peakRequests / limit, refusedRequests > 0)
    return {
      cells: [
        html`<a href="/console${to}">${user.fullName}</a>${peakMeter}`,
        html`${count(peakRequests)}<span class="muted"> of ${count(limit)}</span>`,
        linkedCount(refusedRequests, `${to}&status=429`),
      ],
    }
  })
  const columns = ['User', numberColumn('Peak per minute'), numberColumn('Rate-limited')]
  return card('Rate limit, last hour', table('Rate limit', columns, rows))
}
