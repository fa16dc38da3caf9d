/** The page of a webhook: its health and its delivery log. */
import { hasSentMissedSince, listUnfinishedBulkJobs } from '../../../records/bulk-jobs.ts'
import { deliveryStates } from '../../../records/deliveries.ts'
import { type FoundDeliveries, searchDeliveries } from '../../../records/delivery-search.ts'
import type { WebhookHealth } from '../../../records/reports/webhook-health.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { shownInInput, toLinkTime } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { filterForm } from '../filter-form.ts'
import { formStatus, hasErrors, selectField, textField } from '../form-fields.ts'
import { percentileDuration, timeLabel } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import { TROUBLED_WEBHOOKS_ID } from '../navigation.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  getFromStandby,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from '../page.ts'
import { withQuery } from '../query.ts'
import { readOnlyNote } from '../read-only-note.ts'
import { isReload, sharedPage } from '../shared-reads.ts'
import { buttonLink, card, empty, pager, stats, tabs, timeElement } from '../ui.ts'
import { jobProgress } from './bulk-jobs.ts'
import { attemptResult, DELIVERY_STATES, deliveriesTable, withAttempts } from './delivery-rows.ts'
import {
  attemptBars,
  HEALTH_ELEMENT_IDS,
  limitedCount,
  loadHealth,
  succeededShare,
} from './health.ts'
import { type LogQuery, logPath, readLogQuery, typeChoices } from './log-query.ts'
import { loadWebhook } from './webhook.ts'
import { webhookPage } from './webhook-page.ts'

export const webhookLogRoutes: Route[] = [
  getFromStandby('/webhooks/:webhook', isOwnerOrAdmin, (visit) =>
    sharedPage(visit, () => logPage(visit)),
  ),
]

const REFRESH_SECONDS = 3
const RELOADED_WITH_LOG = ['notices', TROUBLED_WEBHOOKS_ID, ...HEALTH_ELEMENT_IDS]
  .map((id) => `#${id}:outerMorph`)
  .join()
const NO_DELIVERIES: FoundDeliveries = { deliveries: [], nextFrom: null, isCutShort: false }

async function logPage(visit: Visit): Promise<ConsolePage> {
  const { scope, user, now } = visit
  const webhook = await loadWebhook(visit)
  const canManage = canManageWebhooks(user)
  const query = readLogQuery(visit.query)
  const [health, found] = await Promise.all([
    loadHealth(visit, webhook),
    hasErrors(query.errors)
      ? NO_DELIVERIES
      : searchDeliveries(scope, { ...query.search, webhookId: webhook.id }),
  ])
  const page = await webhookPage(visit, { webhook, health }, 'deliveries', [
    !canManage && (await readOnlyNote(visit, 'webhooks')),
    html`<div id="notices">
      ${await notices(visit, webhook)}
      ${healthStrip(webhook, health, now)}
    </div>`,
    card(
      'Deliveries',
      [!isReload(visit) && filters(visit, webhook, query), await log(visit, webhook, query, found)],
      [
        stateTabs(webhook, query),
        canManage && webhook.enabled && retryLinks(webhook, query, health),
      ],
    ),
  ])
  return { ...page, status: formStatus(query.errors) }
}

/** Opens the retry forms with the event type of the log, and the one for failed deliveries also with
 *  its period. */
function retryLinks({ id }: Webhook, { input }: LogQuery, { undelivered }: WebhookHealth): Content {
  const { since, until, type } = input
  const { retrying, countedUpTo } = undelivered
  const waiting = limitedCount(retrying, countedUpTo)
  return [
    retrying > 0 &&
      buttonLink(withQuery(`/webhooks/${id}/retry-waiting`, { type }), `Retry ${waiting} waiting`),
    buttonLink(
      withQuery(`/webhooks/${id}/retry-failed`, { since, until, type }),
      'Retry failed deliveries',
    ),
  ]
}

/** The notices on the page of an enabled webhook: events that it may have missed while it was
 *  disabled, and its unfinished bulk jobs. */
async function notices({ scope, user, now }: Visit, webhook: Webhook): Promise<Content> {
  const { id, enabled, disabledAt } = webhook
  if (!enabled) return false
  const canManage = canManageWebhooks(user)
  const jobs = await listUnfinishedBulkJobs(scope, id)
  const mayHaveMissed =
    disabledAt !== null && canManage && !(await hasSentMissedSince(scope, id, disabledAt))
  return [
    mayHaveMissed &&
      html`<div class="note busy note-with-action">
        <span>
          Enabled again. It was disabled ${timeElement(disabledAt, now)} and may have missed events.
        </span>
        ${buttonLink(`/webhooks/${id}/send-missed`, 'Send missed events')}
      </div>`,
    jobs.map((job) => card('', jobProgress(job, { now, canManage, isLink: true }))),
  ]
}

function healthStrip({ id }: Webhook, health: WebhookHealth, now: Date): Html {
  const { lastDay, lastHour, lastAttempt, p95Ms, undelivered } = health
  const { retrying, pending, countedUpTo, oldestWaitingSince } = undelivered
  const oldest = html`oldest ${timeElement(oldestWaitingSince, now)}`
  return stats([
    {
      label: 'Attempts succeeded, 24 hours',
      value: succeededShare(lastDay),
      note: html`last hour ${succeededShare(lastHour)}`,
      chart: lastDay.succeeded + lastDay.failed > 0 && attemptBars(health),
    },
    {
      label: 'Last attempt',
      value: lastAttempt ? attemptResult(lastAttempt) : '–',
      note: lastAttempt && [
        timeElement(lastAttempt.at, now),
        p95Ms !== null && `, p95 duration ${percentileDuration(p95Ms)}`,
      ],
    },
    {
      label: 'Waiting',
      value: limitedCount(retrying + pending, countedUpTo),
      note: oldestWaitingSince === null ? 'pending or retrying' : oldest,
    },
    {
      label: 'Deliveries failed, 24 hours',
      value: limitedCount(undelivered.failed, countedUpTo),
      note:
        undelivered.failed > 0
          ? html`<a href="/console${logPath(id, { state: 'failed' })}">Show</a>`
          : 'none',
    },
  ])
}

function stateTabs({ id }: Webhook, { input }: LogQuery): Html {
  const tab = (state: string, label: string) => ({
    label,
    to: logPath(id, { ...input, state }),
    isCurrent: (input.state ?? '') === state,
  })
  return tabs('State', [
    tab('', 'All'),
    ...deliveryStates.map((state) => tab(state, DELIVERY_STATES[state].label)),
  ])
}

function filters({ now }: Visit, { id }: Webhook, { input, errors }: LogQuery): Html {
  const hidden: Record<string, string> = input.state ? { state: input.state } : {}
  const field = (name: string, label: string) => ({ name, label, value: input[name] ?? '', errors })
  const time = (name: string, label: string) => {
    const value = shownInInput(input[name] ?? '')
    return textField({ ...field(name, label), value, type: 'datetime-local' })
  }
  return filterForm({
    to: `/webhooks/${id}`,
    hidden,
    fields: [
      selectField({
        ...field('type', 'Event'),
        none: 'All',
        choices: typeChoices,
      }),
      time('since', timeLabel('From')),
      time('until', timeLabel('Until')),
      textField({ ...field('id', 'Delivery or event ID'), maxLength: 100 }),
      input.job && textField({ ...field('job', 'Bulk job ID'), maxLength: 100 }),
    ],
    usedCount: Object.keys(input).filter((name) => name !== 'state').length,
    clear: logPath(id, hidden),
    errors,
    presets: { now, to: (from) => logPath(id, input, { since: toLinkTime(from), until: '' }) },
  })
}

/** Only the first page reloads, because new deliveries appear on it. */
async function log(
  visit: Visit,
  webhook: Webhook,
  query: LogQuery,
  found: FoundDeliveries,
): Promise<Html> {
  const { input, isFirstPage } = query
  const rows = await withAttempts(visit, found.deliveries)
  const isLive = isFirstPage && !hasErrors(query.errors)
  const path = `/console${logPath(webhook.id, input)}`
  const reload = isLive && reloadEvery(REFRESH_SECONDS, path, 'log', RELOADED_WITH_LOG)
  const table = deliveriesTable(
    visit,
    webhook,
    rows.map((row) => ({ ...row, view: 'closed', isInLiveLog: isLive })),
  )
  return html`<div id="log"${reload}>
    ${rows.length > 0 ? table : noDeliveries(query, found)}
    ${logPager(webhook, query, found)}
  </div>`
}

function noDeliveries(
  { input, errors, isFirstPage }: LogQuery,
  { isCutShort }: FoundDeliveries,
): Html {
  if (hasErrors(errors))
    return empty('Not searched', 'Fix the fields marked above, then filter again.')
  if (isCutShort)
    return empty('No matches so far', 'No match among the newest deliveries. Older ones may match.')
  if (Object.keys(input).length > 0 || !isFirstPage)
    return empty('No deliveries', 'No deliveries match these filters.')
  return empty(
    'No deliveries yet',
    'Deliveries and your endpoint’s responses appear here. Send a test event to try it.',
  )
}

function logPager(
  { id }: Webhook,
  { search, input, isFirstPage }: LogQuery,
  { deliveries, nextFrom, isCutShort }: FoundDeliveries,
): Html {
  // `nextFrom` is the start of the next page in the direction of this search. The other direction
  // starts from the delivery at that end of this page or, on an empty page, from where this search
  // started.
  const isTowardsNewer = search.newerThan !== undefined
  const older = isTowardsNewer ? (deliveries.at(-1)?.id ?? search.newerThan) : nextFrom
  const newer = isTowardsNewer ? nextFrom : (deliveries[0]?.id ?? search.olderThan)
  const newestLink = html`<a href="/console${logPath(id, input)}">Newest</a>`
  const positionNote = isFirstPage ? deliveries.length > 0 && 'Newest first' : newestLink
  return pager({
    previous: isFirstPage || !newer ? undefined : logPath(id, input, { after: newer }),
    next: older ? logPath(id, input, { before: older }) : undefined,
    note: isCutShort ? 'There may be more matches.' : positionNote,
  })
}
