/** One webhook: how it is doing, its log, its settings, and what can be done with it. */
import { hasSentMissedSince, listUnfinishedBulkJobs } from '../../../records/bulk-jobs.ts'
import { deliveryStates } from '../../../records/deliveries.ts'
import { type FoundDeliveries, searchDeliveries } from '../../../records/delivery-search.ts'
import {
  type DeliveryHealth,
  findDeliveryHealth,
} from '../../../records/reports/delivery-health.ts'
import { findUser } from '../../../records/users.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  type Webhook,
  webhookName,
} from '../../../records/webhooks.ts'
import { emitTest } from '../../../webhooks/emit.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Answer, get, isAdmin, type Page, post, type Route, type Visit } from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  action,
  button,
  buttonLink,
  card,
  code,
  confirmed,
  copyButton,
  count,
  empty,
  facts,
  idOf,
  note,
  pager,
  selectField,
  stats,
  tabs,
  textField,
  timeOf,
  utc,
} from '../ui.ts'
import { jobProgress } from './bulk-jobs.ts'
import {
  deliveriesTable,
  type LogQuery,
  logAddress,
  loggedTypes,
  readLogQuery,
  rowsOf,
  STATES,
} from './delivery-log.ts'
import { mayManage, targetOf, webhookOf } from './webhook-access.ts'
import { atMost, healthBars, shareOf, stateOf } from './webhooks.ts'

export const webhookRoutes: Route[] = [
  get('/webhooks/:webhook', isAdmin, logPage),
  get('/webhooks/:webhook/settings', isAdmin, settingsPage),
  post('/webhooks/:webhook/test', mayManage, sendTest),
  post('/webhooks/:webhook/enable', mayManage, enable),
  post('/webhooks/:webhook/disable', mayManage, disable),
  post('/webhooks/:webhook/delete', mayManage, remove),
]

const REFRESH_SECONDS = 3

/** Of both its pages. */
function pageOf({ user }: Visit, webhook: Webhook, isSettings: boolean, body: Content): Page {
  const to = `/webhooks/${webhook.id}`
  return {
    title: webhookName(webhook),
    lead: html`<span class="webhook-head">${stateOf(webhook)}<bdi class="mono">${webhook.url}</bdi>${copyButton(webhook.url, 'address')}</span>`,
    crumbs: [{ label: 'Webhooks', to: '/webhooks' }],
    actions:
      mayManage(user, {}) &&
      (webhook.enabled
        ? action({
            to: `${to}/test`,
            label: 'Send test event',
            style: 'primary',
            target: isSettings ? undefined : 'log',
          })
        : action({ to: `${to}/enable`, label: 'Enable', style: 'primary' })),
    body: html`<div class="above-table">${tabs('Webhook', [
      { label: 'Deliveries', to, isCurrent: !isSettings },
      { label: 'Settings', to: `${to}/settings`, isCurrent: isSettings },
    ])}</div>${body}`,
  }
}

async function logPage(visit: Visit): Promise<Page> {
  const { scope, user, now } = visit
  const webhook = await webhookOf(visit)
  const query = readLogQuery(visit.query)
  const isWrong = Object.keys(query.errors).length > 0
  const [health, found] = await Promise.all([
    findDeliveryHealth(scope, [webhook.id], now),
    isWrong ? NOTHING : searchDeliveries(scope, { ...query.search, webhookId: webhook.id }),
  ])
  const retryFailed = buttonLink(
    `/webhooks/${webhook.id}/retry-failed${onlyTimes(query)}`,
    'Retry failed …',
    'quiet',
  )
  const page = pageOf(visit, webhook, false, [
    !mayManage(user, {}) && (await readOnlyNote(visit, 'webhooks')),
    html`<div id="standing">${await standing(visit, webhook)}${healthStrip(webhook, health.get(webhook.id), now)}</div>`,
    card('Deliveries', [filters(webhook, query), await log(visit, webhook, query, found)], {
      actions: html`${stateTabs(webhook, query)}${mayManage(user, {}) && webhook.enabled && retryFailed}`,
    }),
  ])
  return { ...page, status: isWrong ? 422 : 200 }
}

const NOTHING: FoundDeliveries = { deliveries: [], nextFrom: null, isCutShort: false }

/** What somebody should know first: that nothing is sent, that something was missed, that work is under way. */
async function standing({ scope, user, now }: Visit, webhook: Webhook): Promise<Content> {
  const { id, enabled, disabledAt } = webhook
  const canManage = mayManage(user, {})
  if (!enabled)
    return note('warn', [
      html`Disabled ${timeOf(disabledAt, now)}: nothing is sent.`,
      canManage && ' What happens meanwhile can be sent once it is enabled again.',
    ])
  const jobs = await listUnfinishedBulkJobs(scope, id)
  const hasMissed =
    disabledAt !== null && canManage && !(await hasSentMissedSince(scope, id, disabledAt))
  return [
    hasMissed &&
      html`<div class="note busy next-attempt"><span>It was disabled ${timeOf(disabledAt, now)} and is enabled again. What happened meanwhile has not been sent.</span>${buttonLink(`/webhooks/${id}/send-missed`, 'Send what was missed …')}</div>`,
    jobs.map((job) => card('', jobProgress(job, { now, canManage, isLink: true }))),
  ]
}

function healthStrip({ id }: Webhook, health: DeliveryHealth | undefined, now: Date): Content {
  if (!health) return false
  const {
    hours,
    isSample,
    sampleSize,
    failed,
    retrying,
    pending,
    countedUpTo,
    oldestWaitingSince,
  } = health
  const [delivered, ended] = hours.reduce(
    ([some, all], hour) => [some + hour.delivered, all + hour.delivered + hour.failed],
    [0, 0],
  )
  return stats([
    {
      label: 'Delivered, last 24 hours',
      value: shareOf(health),
      note: isSample
        ? html`<span title="Of each hour, the newest ${count(sampleSize)} were counted">of a sample</span>`
        : ended === 0
          ? 'nothing has ended'
          : `${count(delivered)} of ${count(ended)}`,
      chart: ended > 0 && healthBars(health),
    },
    {
      label: 'Failed, last 24 hours',
      value: atMost(failed, countedUpTo),
      note:
        failed > 0
          ? html`<a href="/console${logAddress(id, { state: 'failed' })}">See them</a>`
          : 'none',
    },
    {
      label: 'Retrying now',
      value: atMost(retrying, countedUpTo),
      note:
        retrying > 0
          ? html`<a href="/console${logAddress(id, { state: 'retrying' })}">See them</a>`
          : 'none',
    },
    {
      label: 'Pending now',
      value: atMost(pending, countedUpTo),
      note:
        pending > 0
          ? html`<a href="/console${logAddress(id, { state: 'pending' })}">See them</a>`
          : 'none',
    },
    {
      label: 'Oldest that waits',
      value: timeOf(oldestWaitingSince, now, '–'),
      note: oldestWaitingSince === null ? 'nothing does' : 'pending or retrying',
    },
  ])
}

function stateTabs({ id }: Webhook, { given }: LogQuery): Html {
  const tab = (state: string, label: string) => ({
    label,
    to: logAddress(id, { ...given, state }),
    isCurrent: (given.state ?? '') === state,
  })
  return tabs('State', [
    tab('', 'All'),
    ...deliveryStates.map((state) => tab(state, STATES[state].label)),
  ])
}

function filters({ id }: Webhook, { given, errors }: LogQuery): Html {
  const value = (name: string): string => given[name] ?? ''
  return html`<form class="filters" method="get" action="/console/webhooks/${id}">${given.state && html`<input type="hidden" name="state" value="${given.state}">`}${[
    selectField({
      name: 'type',
      label: 'Event',
      none: 'All',
      value: value('type'),
      choices: loggedTypes.map((type) => ({ value: type, label: type })),
      errors,
    }),
    textField({
      name: 'since',
      label: 'From (UTC)',
      type: 'datetime-local',
      value: value('since'),
      errors,
    }),
    textField({
      name: 'until',
      label: 'Until (UTC)',
      type: 'datetime-local',
      value: value('until'),
      errors,
    }),
    textField({
      name: 'id',
      label: 'Id of delivery or event',
      value: value('id'),
      maxLength: 100,
      errors,
    }),
    html`<div class="filter-buttons">${button('Filter')}${Object.keys(given).some((name) => name !== 'state') && buttonLink(logAddress(id, given.state ? { state: given.state } : {}), 'Clear', 'quiet')}</div>`,
  ]}</form>`
}

/** The rows, which bring themselves up to date: on the first page alone, or they would wander away. */
async function log(
  visit: Visit,
  webhook: Webhook,
  query: LogQuery,
  found: FoundDeliveries,
): Promise<Html> {
  const { given, isFirstPage } = query
  const rows = await rowsOf(visit, found.deliveries)
  const isLive = isFirstPage && Object.keys(query.errors).length === 0
  const address = `/console${logAddress(webhook.id, given)}`
  const refresh =
    isLive &&
    html` hx-get="${address}" hx-trigger="every ${REFRESH_SECONDS}s" hx-target="#log" hx-select="#log" hx-swap="outerMorph ignoreTitle:true" hx-select-oob="#standing:outerMorph"`
  return html`<div id="log"${refresh}>${
    rows.length > 0
      ? deliveriesTable(
          visit,
          webhook,
          rows.map((row) => ({ ...row, view: 'closed', isInLive: isLive })),
        )
      : noDeliveries(query, found)
  }${pages(webhook, query, found)}</div>`
}

function noDeliveries(
  { given, errors, isFirstPage }: LogQuery,
  { isCutShort }: FoundDeliveries,
): Html {
  if (Object.keys(errors).length > 0)
    return empty('Nothing was looked for', 'Mend what is marked above, and filter again.')
  if (isCutShort)
    return empty(
      'Nothing so far',
      'Many deliveries were looked at, and none of them is what you look for. There are more.',
    )
  if (Object.keys(given).length > 0 || !isFirstPage)
    return empty('No such deliveries', 'None matches what you look for.')
  return empty(
    'Nothing has been sent yet',
    'Each event that this webhook is subscribed to appears here by itself, with what your receiver answered. A test event shows at once whether it is reached.',
  )
}

function pages(
  { id }: Webhook,
  { search, given, isFirstPage }: LogQuery,
  { deliveries, nextFrom, isCutShort }: FoundDeliveries,
): Html {
  const isBackwards = search.newerThan !== undefined
  const older = isBackwards ? (deliveries.at(-1)?.id ?? search.newerThan) : nextFrom
  const newer = isBackwards ? nextFrom : (deliveries[0]?.id ?? search.olderThan)
  return pager({
    previous: isFirstPage || !newer ? undefined : logAddress(id, given, { after: newer }),
    next: older ? logAddress(id, given, { before: older }) : undefined,
    note: isCutShort
      ? 'Many were looked at. There may be more.'
      : isFirstPage
        ? deliveries.length > 0 && 'Newest first'
        : html`<a href="/console${logAddress(id, given)}">The newest</a>`,
  })
}

/** What the log looks for goes over to what is retried. */
function onlyTimes({ given }: LogQuery): string {
  const query = new URLSearchParams(
    Object.entries(given).filter(
      ([name]) => name === 'since' || name === 'until' || name === 'type',
    ),
  )
  return query.size > 0 ? `?${query}` : ''
}

async function settingsPage(visit: Visit): Promise<Page> {
  const { scope, user, now } = visit
  const webhook = await webhookOf(visit)
  const { id, eventTypes, ordering, createdBy, createdAt, updatedAt, description } = webhook
  const canManage = mayManage(user, {})
  const creator = createdBy === null ? undefined : await findUser(scope, createdBy)
  return pageOf(visit, webhook, true, [
    !canManage && (await readOnlyNote(visit, 'webhooks')),
    card(
      'What it is',
      facts([
        ['Address', html`<bdi class="mono">${webhook.url}</bdi>`],
        [
          'Description',
          description === ''
            ? html`<span class="muted">None</span>`
            : html`<bdi>${description}</bdi>`,
        ],
        [
          'Events',
          eventTypes.includes('*')
            ? 'All, those to come included'
            : html`<span class="event-chips">${eventTypes.map(code)}</span>`,
        ],
        ['Order', ordering === 'none' ? 'As fast as possible' : 'In order for each record'],
        ['Id', idOf(id)],
        [
          'Created',
          html`${timeOf(createdAt, now)} by ${creator?.fullName ?? 'the command line'}, ${utc(createdAt)}`,
        ],
        ['Changed', timeOf(updatedAt, now)],
      ]),
      { actions: canManage && buttonLink(`/webhooks/${id}/edit`, 'Edit') },
    ),
    canManage &&
      card('What can be done', html`<div class="doings card-body">${doings(webhook)}</div>`),
  ])
}

function doings(webhook: Webhook): Content {
  const { id, enabled, hasNextSecret } = webhook
  const to = `/webhooks/${id}`
  const doing = (title: string, text: string, body: Content): Html =>
    html`<div><div><h3>${title}</h3><p>${text}</p></div>${body}</div>`
  return [
    doing(
      'Signing secret',
      hasNextSecret
        ? 'The next secret is prepared, and does not sign yet.'
        : 'Show it again, or change it without a gap.',
      buttonLink(`${to}/secret`, 'Signing secret'),
    ),
    enabled &&
      doing(
        'Send what was missed',
        'Events of which it has got nothing, such as those of a time in which it was disabled.',
        buttonLink(`${to}/send-missed`, 'Send what was missed …'),
      ),
    enabled &&
      doing(
        'Retry what failed',
        'One more attempt for each delivery that failed in some time.',
        buttonLink(`${to}/retry-failed`, 'Retry failed …'),
      ),
    enabled
      ? doing(
          'Disable',
          'Nothing is sent any more, until it is enabled again.',
          disableButton(webhook),
        )
      : doing(
          'Enable',
          'It gets the events from then on.',
          action({ to: `${to}/enable`, label: 'Enable' }),
        ),
    doing('Delete', 'It and its log disappear.', deleteButton(webhook)),
  ]
}

function disableButton({ id }: Webhook): Html {
  return confirmed('Disable …', {
    title: 'Disable this webhook?',
    text: 'Nothing is sent to it from now on. Deliveries that are on the schedule end as failed. Once it is enabled again, you can send what it missed.',
    style: '',
    body: action({ to: `/webhooks/${id}/disable`, label: 'Disable', style: 'danger' }),
  })
}

function deleteButton({ id, url }: Webhook): Html {
  return confirmed('Delete …', {
    title: 'Delete this webhook?',
    text: html`Nothing more is sent to <bdi class="mono">${url}</bdi>. Deliveries that are on the schedule end as failed, and the log is no longer shown. This cannot be undone.`,
    body: action({ to: `/webhooks/${id}/delete`, label: 'Delete for good', style: 'danger' }),
  })
}

async function sendTest(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  await visit.change(async (scope) => {
    const deliveryId = await emitTest(scope, webhook.id, visit.now)
    if (deliveryId === undefined) visit.ctx.throw(404)
    await visit.audit(scope, {
      action: 'webhook.test_sent',
      target: targetOf(webhook),
      details: { delivery_id: deliveryId },
    })
  })
  return {
    to: `/webhooks/${webhook.id}`,
    notice: {
      kind: 'ok',
      text: 'A test event is on its way. What is answered appears in the log.',
    },
  }
}

async function enable(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  await visit.change(async (scope) => {
    if (!(await enableWebhook(scope, webhook.id, visit.now))) visit.ctx.throw(404)
    if (!webhook.enabled)
      await visit.audit(scope, { action: 'webhook.enabled', target: targetOf(webhook) })
  })
  return {
    to: `/webhooks/${webhook.id}`,
    notice: { kind: 'ok', text: 'The webhook is enabled: it gets the events from now on.' },
  }
}

async function disable(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  await visit.change(async (scope) => {
    if (!(await disableWebhook(scope, webhook.id, visit.now))) visit.ctx.throw(404)
    if (webhook.enabled)
      await visit.audit(scope, { action: 'webhook.disabled', target: targetOf(webhook) })
  })
  return {
    to: `/webhooks/${webhook.id}`,
    notice: { kind: 'ok', text: 'The webhook is disabled: it gets nothing.' },
  }
}

async function remove(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  await visit.change(async (scope) => {
    if (!(await deleteWebhook(scope, webhook.id, visit.now))) visit.ctx.throw(404)
    await visit.audit(scope, {
      action: 'webhook.deleted',
      target: targetOf(webhook),
      details: { url: webhook.url },
    })
  })
  return {
    to: '/webhooks',
    notice: { kind: 'ok', text: `The webhook “${webhookName(webhook)}” is deleted.` },
  }
}
