/** A list of deliveries with its filters: of a webhook, or of all. */
import { type FoundDeliveries, searchDeliveries } from '../../../records/delivery-search.ts'
import { webhookName } from '../../../records/webhooks.ts'
import { shownInInput, toLinkTime } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { filterForm } from '../filter-form.ts'
import { hasErrors, selectField, textField } from '../form-fields.ts'
import { timeLabel } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import type { Visit } from '../page.ts'
import { withQuery } from '../query.ts'
import { isReload } from '../shared-reads.ts'
import { card, empty, pager, tabs } from '../ui.ts'
import { DELIVERY_STATES, deliveriesTable, withAttempts } from './delivery-rows.ts'
import { type Log, type LogQuery, typeChoices } from './log-query.ts'

const REFRESH_SECONDS = 3
const NO_DELIVERIES: FoundDeliveries = { deliveries: [], nextFrom: null, isCutShort: false }

export async function findDeliveries(
  { scope }: Visit,
  { search, errors }: LogQuery,
): Promise<FoundDeliveries> {
  return hasErrors(errors) ? NO_DELIVERIES : searchDeliveries(scope, search)
}

interface ListParts {
  found: FoundDeliveries
  /** Other elements that reload with the list. */
  alsoReloaded: string
  actions?: Content
}

export async function deliveryList(
  visit: Visit,
  log: Log,
  query: LogQuery,
  { found, alsoReloaded, actions }: ListParts,
): Promise<Html> {
  return card(
    'Deliveries',
    [
      !isReload(visit) && filters(visit, log, query),
      await rows(visit, log, query, { found, alsoReloaded }),
    ],
    [stateTabs(log, query), actions],
  )
}

const tabLabel = (tab: LogQuery['tab']): string =>
  tab === 'all' ? 'All' : DELIVERY_STATES[tab].label

function stateTabs({ path, tabs: all }: Log, { input, tab: current }: LogQuery): Html {
  return tabs(
    'State',
    all.map((tab) => ({
      label: tabLabel(tab),
      to: withQuery(path, { ...input, state: tab === all[0] ? '' : tab }),
      isCurrent: tab === current,
    })),
  )
}

function filters({ now }: Visit, { path, webhooks }: Log, { input, errors }: LogQuery): Html {
  const hidden: Record<string, string> = input.state ? { state: input.state } : {}
  const field = (name: string, label: string) => ({ name, label, value: input[name] ?? '', errors })
  const time = (name: string, label: string) => {
    const value = shownInInput(input[name] ?? '')
    return textField({ ...field(name, label), value, type: 'datetime-local' })
  }
  const choices = webhooks.map((webhook) => ({ value: webhook.id, label: webhookName(webhook) }))
  return filterForm({
    to: path,
    hidden,
    fields: [
      webhooks.length > 1 && selectField({ ...field('webhook', 'Webhook'), none: 'All', choices }),
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
    clear: withQuery(path, hidden),
    errors,
    presets: {
      now,
      to: (from) => withQuery(path, { ...input, since: toLinkTime(from), until: '' }),
    },
  })
}

/** Only the first page reloads, because new deliveries appear on it. */
async function rows(
  visit: Visit,
  log: Log,
  query: LogQuery,
  { found, alsoReloaded }: ListParts,
): Promise<Html> {
  const { input, isFirstPage } = query
  const webhooks = new Map(log.webhooks.map((webhook) => [webhook.id, webhook]))
  const isLive = isFirstPage && !hasErrors(query.errors)
  const listed = (await withAttempts(visit, found.deliveries)).flatMap((row) => {
    const webhook = webhooks.get(row.delivery.webhookId)
    return webhook ? [{ ...row, webhook, view: 'closed' as const, isInLiveLog: isLive }] : []
  })
  const path = `/console${withQuery(log.path, input)}`
  const reload = isLive && reloadEvery(REFRESH_SECONDS, path, 'log', alsoReloaded)
  const className = log.namesWebhooks ? '' : 'without-names'
  return html`<div id="log" class="${className}"${reload}>
    ${listed.length > 0 ? deliveriesTable(visit, listed) : noDeliveries(query, found)}
    ${logPager(log, query, found)}
  </div>`
}

function noDeliveries(
  { input, tab, errors, isFirstPage }: LogQuery,
  { isCutShort }: FoundDeliveries,
): Html {
  if (hasErrors(errors))
    return empty('Not searched', 'Fix the fields marked above, then filter again.')
  if (isCutShort)
    return empty('No matches so far', 'No match among the newest deliveries. Older ones may match.')
  const isFiltered = Object.keys(input).some((name) => name !== 'state') || !isFirstPage
  if (isFiltered) return empty('No deliveries', 'No deliveries match these filters.')
  if (tab !== 'all')
    return empty(`No ${tabLabel(tab).toLowerCase()} deliveries`, 'No delivery is in this state.')
  return empty(
    'No deliveries yet',
    'Deliveries and your endpoint’s responses appear here. Send a test event to try it.',
  )
}

function logPager(
  { path }: Log,
  { search, input, isFirstPage }: LogQuery,
  { deliveries, nextFrom, isCutShort }: FoundDeliveries,
): Html {
  // `nextFrom` is the start of the next page in the direction of this search. The other direction
  // starts from the delivery at that end of this page or, on an empty page, from where this search
  // started.
  const isTowardsNewer = search.newerThan !== undefined
  const older = isTowardsNewer ? (deliveries.at(-1)?.id ?? search.newerThan) : nextFrom
  const newer = isTowardsNewer ? nextFrom : (deliveries[0]?.id ?? search.olderThan)
  const newestLink = html`<a href="/console${withQuery(path, input)}">Newest</a>`
  const positionNote = isFirstPage ? deliveries.length > 0 && 'Newest first' : newestLink
  return pager({
    previous: isFirstPage || !newer ? undefined : withQuery(path, { ...input, after: newer }),
    next: older ? withQuery(path, { ...input, before: older }) : undefined,
    note: isCutShort ? 'There may be more matches.' : positionNote,
  })
}
