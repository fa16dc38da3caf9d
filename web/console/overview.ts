/** How the account is doing: the last 24 hours of its requests and deliveries, and for a new account how to begin. */
import { resources } from '../../generated/resources.ts'
import { listAccountKeys } from '../../records/api-keys.ts'
import {
  type DeliveryTraffic,
  findDeliveryTraffic,
} from '../../records/reports/delivery-traffic.ts'
import { HOUR_MS, MINUTE_MS } from '../../records/reports/request-counts.ts'
import {
  findTraffic,
  hasRequests,
  listRateLimitUse,
  type RateLimitUse,
  type Traffic,
} from '../../records/reports/traffic.ts'
import { findOwner } from '../../records/users.ts'
import { listWebhooks, type Webhook, webhookName } from '../../records/webhooks.ts'
import { apiCurlCommand } from '../shared/curl.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { meter, sparkline, stackedBars } from './charts.ts'
import { anyUser, get, isAdmin, may, type Page, type Route, type Visit } from './page.ts'
import { plural } from './records/names.ts'
import { addressOf, maySee } from './records/resources.ts'
import { outcomeSeries, shareOf } from './requests/request-figures.ts'
import {
  buttonLink,
  card,
  codeBlock,
  count,
  counted,
  duration,
  empty,
  icon,
  POLL,
  pill,
  stats,
  table,
} from './ui.ts'

export const overviewRoutes: Route[] = [get('', anyUser, overview)]

const REFRESH_SECONDS = 15
const DAY_MS = 24 * HOUR_MS
const BUCKET_MS = 30 * MINUTE_MS

async function overview(visit: Visit): Promise<Page> {
  const isDeveloper = isAdmin(visit.user, {})
  return {
    title: 'Overview',
    lead: isDeveloper
      ? `${visit.account.name} in the last 24 hours. Times are in UTC.`
      : visit.account.name,
    body: isDeveloper ? await lastDay(visit) : await records(visit),
  }
}

async function lastDay(visit: Visit): Promise<Html> {
  const { scope, now } = visit
  const end = now.getTime() - (now.getTime() % BUCKET_MS) + BUCKET_MS
  const webhooks = await listWebhooks(scope)
  const [traffic, deliveries, use, steps] = await Promise.all([
    findTraffic(scope, { from: end - DAY_MS, until: null }, BUCKET_MS, end),
    findDeliveryTraffic(
      scope,
      webhooks.map(({ id }) => id),
      now,
    ),
    listRateLimitUse(scope, now, SHOWN_USERS),
    firstSteps(visit, webhooks),
  ])
  const isNew = traffic.requests === 0 && webhooks.length === 0
  return html`${steps.some(({ isDone }) => !isDone) && gettingStarted(steps)}<div id="last-day" hx-get="/console" hx-trigger="every ${REFRESH_SECONDS}s" hx-target="#last-day" hx-select="#last-day" hx-swap="outerMorph ignoreTitle:true"${POLL}>${strip(traffic, deliveries)}${!isNew && html`<div class="halves">${requestsCard(traffic)}${deliveriesCard(visit, webhooks, deliveries)}${webhooksCard(webhooks, deliveries)}${rateLimitCard(visit, use)}</div>`}</div>`
}

function strip(traffic: Traffic, { hours, webhooks, countedUpTo }: DeliveryTraffic): Html {
  const { buckets, requests, clientErrors, serverErrors, durations } = traffic
  const total = (name: 'delivered' | 'failed' | 'waiting'): number =>
    hours.reduce((sum, hour) => sum + hour[name], 0)
  const failing = [...webhooks.values()].filter(({ failed }) => failed > 0).length
  const more = countedUpTo === null ? '' : '+'
  return stats([
    {
      label: 'Requests',
      value: count(requests),
      note: durations && `half in ${duration(durations.p50)}`,
      chart:
        requests > 0 &&
        sparkline(buckets.map((bucket) => bucket.ok + bucket.clientErrors + bucket.serverErrors)),
    },
    {
      label: 'Errors',
      value: shareOf(clientErrors + serverErrors, requests),
      note: requests > 0 && counted(serverErrors, 'server error'),
      chart:
        clientErrors + serverErrors > 0 &&
        sparkline(buckets.map((bucket) => bucket.clientErrors + bucket.serverErrors)),
    },
    {
      label: 'Delivered to webhooks',
      value: `${count(total('delivered'))}${more}`,
      note: total('waiting') > 0 && `${count(total('waiting'))} under way`,
      chart: total('delivered') > 0 && sparkline(hours.map(({ delivered }) => delivered)),
    },
    {
      label: 'Failed deliveries',
      value: `${count(total('failed'))}${more && total('failed') > 0 && more}`,
      note: failing > 0 && `of ${counted(failing, 'webhook')}`,
      chart: total('failed') > 0 && sparkline(hours.map(({ failed }) => failed)),
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
  return card(
    'Requests',
    requests > 0
      ? chart
      : empty('No requests', 'Nothing was asked of the API in the last 24 hours.'),
    {
      actions: buttonLink('/requests', 'All requests', 'quiet'),
    },
  )
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
    series: [
      { name: 'Delivered', tone: 'first', values: hours.map(({ delivered }) => delivered) },
      { name: 'Under way', tone: 'second', values: hours.map(({ waiting }) => waiting) },
      { name: 'Failed', tone: 'third', values: hours.map(({ failed }) => failed) },
    ],
  })
  const isEmpty = hours.every(
    ({ delivered, waiting, failed }) => delivered + waiting + failed === 0,
  )
  const none =
    webhooks.length === 0
      ? empty(
          'No webhooks',
          'Let the API tell you what happens, instead of asking again and again.',
          may('webhooks')(user, {}) && buttonLink('/webhooks/new', 'Create a webhook'),
        )
      : empty(
          'No deliveries',
          'Nothing happened in the last 24 hours that a webhook is subscribed to.',
        )
  return card(
    'Deliveries',
    isEmpty
      ? none
      : [
          chart,
          countedUpTo !== null &&
            html`<p class="muted">Of each webhook, up to ${count(countedUpTo)} an hour are counted.</p>`,
        ],
    {
      actions: buttonLink('/webhooks', 'All webhooks', 'quiet'),
    },
  )
}

const SHOWN_WEBHOOKS = 6

/** What needs somebody's eye comes first. */
function webhooksCard(webhooks: Webhook[], { webhooks: counts }: DeliveryTraffic): Content {
  if (webhooks.length === 0) return false
  const of = (webhook: Webhook) => counts.get(webhook.id) ?? { delivered: 0, failed: 0, waiting: 0 }
  const sorted = webhooks.toSorted(
    (one, other) => of(other).failed - of(one).failed || of(other).waiting - of(one).waiting,
  )
  const figure = (webhook: Webhook, value: number, state: string): Content =>
    value === 0
      ? html`<span class="muted">0</span>`
      : html`<a href="/console/webhooks/${webhook.id}?state=${state}">${count(value)}</a>`
  return card(
    'Webhooks',
    table(
      [
        'Webhook',
        { label: 'Failed', isNumber: true },
        { label: 'Under way', isNumber: true },
        { label: 'Delivered', isNumber: true },
      ],
      sorted.slice(0, SHOWN_WEBHOOKS).map((webhook) => {
        const { delivered, failed, waiting } = of(webhook)
        return {
          cells: [
            html`<a class="clipped" href="/console/webhooks/${webhook.id}"><bdi>${webhookName(webhook)}</bdi></a>${failed > 0 ? pill('bad', 'Failing') : !webhook.enabled && pill('quiet', 'Disabled')}`,
            figure(webhook, failed, 'failed'),
            figure(webhook, waiting, 'retrying'),
            figure(webhook, delivered, 'delivered'),
          ],
        }
      }),
      { label: 'Webhooks' },
    ),
  )
}

const SHOWN_USERS = 6

function rateLimitCard({ config }: Visit, use: RateLimitUse[]): Content {
  if (use.length === 0) return false
  const limit = config.rateLimitPerMinute
  return card(
    'Rate limit, last hour',
    table(
      ['User', { label: 'Busiest minute', isNumber: true }, { label: 'Refused', isNumber: true }],
      use.map(({ user, requests, refused }) => ({
        cells: [
          html`<a href="/console/requests?range=1h&amp;user=${user.id}">${user.fullName}</a>${meter(requests / limit, requests < limit * 0.8 ? 'first' : refused === 0 ? 'second' : 'third')}`,
          html`${count(requests)}<span class="muted"> of ${count(limit)}</span>`,
          refused === 0
            ? html`<span class="muted">0</span>`
            : html`<a href="/console/requests?range=1h&amp;user=${user.id}&amp;status=429">${count(refused)}</a>`,
        ],
      })),
      { label: 'Rate limit' },
    ),
  )
}

interface Step {
  title: string
  isDone: boolean
  text: Content
}

async function firstSteps({ scope, user, config }: Visit, webhooks: Webhook[]): Promise<Step[]> {
  const [keys, revoked, isCalled] = await Promise.all([
    listAccountKeys(scope, { isRevoked: false, limit: 1 }),
    listAccountKeys(scope, { isRevoked: true, limit: 1 }),
    hasRequests(scope),
  ])
  const hasKey = keys.length + revoked.length > 0
  const ask = 'The Account Owner can let you do that.'
  const call = apiCurlCommand({
    method: 'GET',
    url: `${config.baseUrl}/public/v1/participants`,
    body: null,
  })
  return [
    {
      title: 'Make an API key',
      isDone: hasKey,
      text: html`<p>Every call is made with a key. It is shown once: keep it like a password. ${may('api_keys')(user, {}) ? html`<a href="/console/api-keys">Make a key</a>` : ask}</p>`,
    },
    {
      title: 'Make the first call',
      isDone: isCalled,
      text: html`<p>With the key in the environment as MUSTER_API_KEY. What you asked and what was answered is then in the <a href="/console/requests">API Dashboard</a>.</p>${codeBlock(call, 'first call')}`,
    },
    {
      title: 'Add a webhook',
      isDone: webhooks.length > 0,
      text: html`<p>Each event is sent to an address of yours within a second. ${may('webhooks')(user, {}) ? html`<a href="/console/webhooks/new">Add a webhook</a>` : ask}</p>`,
    },
  ]
}

function gettingStarted(steps: Step[]): Html {
  const left = steps.filter(({ isDone }) => !isDone).length
  return card(
    'Getting started',
    html`<ol class="first-steps">${steps.map(
      ({ title, isDone, text }) =>
        html`<li${isDone && html` class="done"`}><h3>${title}${isDone && html` <span class="visually-hidden">(done)</span>`}</h3>${!isDone && text}</li>`,
    )}</ol><p class="muted">${counted(left, 'step')} left. The <a href="/docs/">documentation</a> has the rest: a <a href="/docs/guides/getting-started">guide to begin with</a>, every operation, and code to copy.</p>`,
  )
}

/** For those who have nothing to do with the API: what they may see. */
async function records(visit: Visit): Promise<Html> {
  const own = resources.filter((resource) => maySee(visit.user, resource))
  if (own.length === 0) {
    const owner = await findOwner(visit.scope)
    return card(
      '',
      empty(
        'Nothing here yet',
        `You may not see any records. ${owner?.fullName}, the Account Owner, can change that.`,
      ),
    )
  }
  const counts = await Promise.all(
    own.map(async ({ operations }) => {
      const page = await visit.call(operations.list, {
        query: { 'page[number]': 1, 'page[size]': 1 },
      })
      return (page as { meta: { total: number } }).meta.total
    }),
  )
  return html`<ul class="tiles">${own.map(
    (resource, index) =>
      html`<li><a href="/console${addressOf(resource)}">${icon(resource.slug)}<strong>${plural(resource)}</strong><span class="stat-value">${count(counts[index] ?? 0)}</span></a></li>`,
  )}</ul>`
}
