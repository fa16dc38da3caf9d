/** The overview: requests and deliveries of the last 24 hours. Members see record counts. */
import { resources } from '../../generated/resources.ts'
import {
  type DeliveryTraffic,
  findDeliveryTraffic,
} from '../../records/reports/delivery-traffic.ts'
import { listRateLimitUse, type RateLimitUse } from '../../records/reports/rate-limit-use.ts'
import { HOUR_MS, MINUTE_MS } from '../../records/reports/request-counts.ts'
import { findTraffic, type Traffic } from '../../records/reports/traffic.ts'
import { findOwner } from '../../records/users.ts'
import { listWebhooks, type Webhook, webhookName } from '../../records/webhooks.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { meter, sparkline, stackedBars, sum } from './charts.ts'
import { firstSteps, gettingStarted } from './first-steps.ts'
import { count, counted, duration } from './format.ts'
import { reloadEvery } from './htmx.ts'
import { icon } from './icons.ts'
import { anyUser, type ConsolePage, get, isAdmin, may, type Route, type Visit } from './page.ts'
import { plural } from './records/labels.ts'
import { listRecords } from './records/references.ts'
import { addressOf, maySee } from './records/resources.ts'
import { formatPercent, outcomeSeries } from './requests/request-figures.ts'
import { buttonLink, card, empty, pill, stats, table } from './ui.ts'
import { deliverySeries } from './webhooks/health.ts'

export const overviewRoutes: Route[] = [get('', anyUser, overview)]

const REFRESH_SECONDS = 15
const DAY_MS = 24 * HOUR_MS
const BUCKET_MS = 30 * MINUTE_MS
const MAX_WEBHOOKS = 6
const MAX_USERS = 6

async function overview(visit: Visit): Promise<ConsolePage> {
  const { user, account } = visit
  if (!isAdmin(user, {}))
    return { title: 'Overview', lead: account.name, body: await recordCounts(visit) }
  return {
    title: 'Overview',
    lead: `${account.name} in the last 24 hours. Times are in UTC.`,
    body: await lastDay(visit),
  }
}

async function lastDay(visit: Visit): Promise<Content> {
  const { scope, now } = visit
  const end = now.getTime() - (now.getTime() % BUCKET_MS) + BUCKET_MS
  const webhooks = await listWebhooks(scope)
  const ids = webhooks.map(({ id }) => id)
  const [traffic, deliveries, use, steps] = await Promise.all([
    findTraffic(scope, { from: end - DAY_MS, until: null }, BUCKET_MS, end),
    findDeliveryTraffic(scope, ids, now),
    listRateLimitUse(scope, now, MAX_USERS),
    firstSteps(visit, webhooks.length > 0),
  ])
  const isNew = traffic.requests === 0 && webhooks.length === 0
  const cards = [
    requestsCard(traffic),
    deliveriesCard(visit, webhooks, deliveries),
    webhooksCard(webhooks, deliveries),
    rateLimitCard(visit, use),
  ]
  return [
    steps.some(({ isDone }) => !isDone) && gettingStarted(steps),
    html`<div id="last-day"${reloadEvery(REFRESH_SECONDS, '/console', 'last-day')}>
      ${dayStats(traffic, deliveries)}
      ${!isNew && html`<div class="halves">${cards}</div>`}
    </div>`,
  ]
}

function dayStats(traffic: Traffic, { hours, webhooks, countedUpTo }: DeliveryTraffic): Html {
  const { buckets, requests, clientErrors, serverErrors, durations } = traffic
  const errors = clientErrors + serverErrors
  const total = (state: 'delivered' | 'failed' | 'waiting'): number =>
    sum(hours.map((hour) => hour[state]))
  const [delivered, failed, waiting] = [total('delivered'), total('failed'), total('waiting')]
  const failing = [...webhooks.values()].filter((webhook) => webhook.failed > 0).length
  // Counting stopped at a limit, so there may be more.
  const orMore = countedUpTo === null ? '' : '+'
  return stats([
    {
      label: 'Requests',
      value: count(requests),
      note: durations && `median ${duration(durations.p50)}`,
      chart:
        requests > 0 &&
        sparkline(buckets.map((bucket) => bucket.ok + bucket.clientErrors + bucket.serverErrors)),
    },
    {
      label: 'Errors',
      value: formatPercent(errors, requests),
      note: requests > 0 && counted(serverErrors, 'server error'),
      chart:
        errors > 0 && sparkline(buckets.map((bucket) => bucket.clientErrors + bucket.serverErrors)),
    },
    {
      label: 'Delivered to webhooks',
      value: `${count(delivered)}${orMore}`,
      note: waiting > 0 && `${count(waiting)} in progress`,
      chart: delivered > 0 && sparkline(hours.map((hour) => hour.delivered)),
    },
    {
      label: 'Failed deliveries',
      value: `${count(failed)}${failed > 0 ? orMore : ''}`,
      note: failing > 0 && `on ${counted(failing, 'webhook')}`,
      chart: failed > 0 && sparkline(hours.map((hour) => hour.failed)),
    },
  ])
}

function requestsCard({ buckets, requests }: Traffic): Html {
  const chart = stackedBars({
    title: 'Requests',
    startsAt: buckets.map(({ startsAt }) => startsAt),
    width: BUCKET_MS,
    series: outcomeSeries(buckets),
  })
  const none = empty('No requests', 'The API received no requests in the last 24 hours.')
  const allRequests = buttonLink('/requests', 'All requests', 'quiet')
  return card('Requests', requests > 0 ? chart : none, allRequests)
}

function deliveriesCard(
  { user }: Visit,
  webhooks: Webhook[],
  { hours, countedUpTo }: DeliveryTraffic,
): Html {
  const chart = stackedBars({
    title: 'Deliveries',
    startsAt: hours.map(({ startsAt }) => startsAt),
    width: HOUR_MS,
    series: deliverySeries(hours),
  })
  const limitNote =
    countedUpTo !== null &&
    html`<p class="muted">Counts at most ${count(countedUpTo)} deliveries per webhook and hour.</p>`
  const isEmpty = sum(deliverySeries(hours).flatMap(({ values }) => values)) === 0
  const none =
    webhooks.length === 0
      ? empty(
          'No webhooks',
          'Stop polling the API: get notified of every change by webhook.',
          may('webhooks')(user, {}) && buttonLink('/webhooks/new', 'Create webhook'),
        )
      : empty('No deliveries', 'No subscribed events happened in the last 24 hours.')
  const allWebhooks = buttonLink('/webhooks', 'All webhooks', 'quiet')
  return card('Deliveries', isEmpty ? none : [chart, limitNote], allWebhooks)
}

const NO_DELIVERIES = { delivered: 0, failed: 0, waiting: 0 }

/** Failing webhooks come first, then those with the most deliveries in progress. */
function webhooksCard(webhooks: Webhook[], { webhooks: counts }: DeliveryTraffic): Content {
  if (webhooks.length === 0) return false
  const rows = webhooks
    .map((webhook) => ({ webhook, ...(counts.get(webhook.id) ?? NO_DELIVERIES) }))
    .sort((one, other) => other.failed - one.failed || other.waiting - one.waiting)
    .slice(0, MAX_WEBHOOKS)
    .map(({ webhook, failed, waiting, delivered }) => ({
      cells: [
        webhookCell(webhook, failed > 0),
        linkedCount(failed, `/webhooks/${webhook.id}?state=failed`),
        linkedCount(waiting, `/webhooks/${webhook.id}?state=retrying`),
        linkedCount(delivered, `/webhooks/${webhook.id}?state=delivered`),
      ],
    }))
  const columns = [
    'Webhook',
    { label: 'Failed', isNumber: true },
    { label: 'In progress', isNumber: true },
    { label: 'Delivered', isNumber: true },
  ]
  return card('Webhooks', table('Webhooks', columns, rows))
}

function webhookCell(webhook: Webhook, isFailing: boolean): Content {
  const state = isFailing ? pill('bad', 'Failing') : !webhook.enabled && pill('quiet', 'Disabled')
  return html`
    <a class="clipped" href="/console/webhooks/${webhook.id}">
      <bdi>${webhookName(webhook)}</bdi>
    </a>
    ${state}`
}

function linkedCount(value: number, to: string): Html {
  return value === 0
    ? html`<span class="muted">0</span>`
    : html`<a href="/console${to}">${count(value)}</a>`
}

function rateLimitCard({ config }: Visit, use: RateLimitUse[]): Content {
  if (use.length === 0) return false
  const limit = config.rateLimitPerMinute
  const rows = use.map(({ user, peakRequests, refusedRequests }) => {
    const to = `/requests?range=1h&user=${user.id}`
    const tone = peakRequests < limit * 0.8 ? 'first' : refusedRequests === 0 ? 'second' : 'third'
    return {
      cells: [
        html`<a href="/console${to}">${user.fullName}</a>${meter(peakRequests / limit, tone)}`,
        html`${count(peakRequests)}<span class="muted"> of ${count(limit)}</span>`,
        linkedCount(refusedRequests, `${to}&status=429`),
      ],
    }
  })
  const columns = [
    'User',
    { label: 'Peak per minute', isNumber: true },
    { label: 'Rate-limited', isNumber: true },
  ]
  return card('Rate limit, last hour', table('Rate limit', columns, rows))
}

/** For Members, who do not work with the API. */
async function recordCounts(visit: Visit): Promise<Html> {
  const visible = resources.filter((resource) => maySee(visit.user, resource))
  if (visible.length === 0) {
    const owner = await findOwner(visit.scope)
    const text = `You have no access to records yet. Ask ${owner?.fullName}, the Account Owner.`
    return card('', empty('Nothing here yet', text))
  }
  const tiles = await Promise.all(
    visible.map(async (resource) => {
      const { meta } = await listRecords(visit, resource, { 'page[size]': 1 })
      return html`<li>
        <a href="/console${addressOf(resource)}">
          ${icon(resource.slug)}
          <strong>${plural(resource)}</strong>
          <span class="stat-value">${count(meta.total)}</span>
        </a>
      </li>`
    }),
  )
  return html`<ul class="tiles">${tiles}</ul>`
}
