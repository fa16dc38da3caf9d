/** The list of events. The Owner and Admins see it. */
import {
  countDeliveriesByEvent,
  type DeliveryState,
  deliveryStates,
  findDelivery,
} from '../../../records/deliveries.ts'
import { eventsOfRequest, searchEvents } from '../../../records/event-search.ts'
import { type EventRow, findEventRow } from '../../../records/events.ts'
import { findRequest, type RequestEntry } from '../../../records/request-log.ts'
import { shownInInput, toLinkTime } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { filterForm } from '../filter-form.ts'
import { formStatus, hasErrors, selectField, textField } from '../form-fields.ts'
import { count, timeLabel } from '../format.ts'
import {
  type ConsolePage,
  getFromStandby,
  isOwnerOrAdmin,
  type PageResult,
  type Redirect,
  type Route,
  type Visit,
} from '../page.ts'
import { parseId, toListPage } from '../query.ts'
import { kindOf, loadRecordLinks, type RecordLinks } from '../records/record-link.ts'
import {
  buttonLink,
  card,
  empty,
  pager,
  pill,
  shortId,
  table,
  timeElement,
  twoLines,
} from '../ui.ts'
import { DELIVERY_STATES, deliveryPath } from '../webhooks/delivery-rows.ts'
import { type EventQuery, eventsPath, readEventQuery, typeChoices } from './event-query.ts'

export const eventsRoutes: Route[] = [getFromStandby('/events', isOwnerOrAdmin, eventsPage)]

const EVENTS_PER_PAGE = 25

async function eventsPage(visit: Visit): Promise<PageResult> {
  const query = readEventQuery(visit.query)
  const { search, input, errors } = query
  const found = search.resourceId && (await findById(visit, search.resourceId))
  if (found) return found
  const request = input.request === undefined ? undefined : await loadRequest(visit, input.request)
  const ofRequest = request && eventsOfRequest(request)
  const rows = hasErrors(errors)
    ? []
    : await searchEvents(visit.scope, { ...search, ...ofRequest, limit: EVENTS_PER_PAGE + 1 })
  return {
    title: 'Events',
    lead: 'What happened to your records. Each subscribed webhook gets a delivery of each event.',
    status: formStatus(errors),
    body: [
      request ? requestNote(request) : filters(visit, query),
      card('', await eventList(visit, query, rows)),
    ],
  } satisfies ConsolePage
}

/** Throws 404 if the log does not have the request. */
async function loadRequest({ scope, ctx }: Visit, id: string): Promise<RequestEntry> {
  const requestId = parseId(id) ?? ctx.throw(404)
  return (await findRequest(scope, requestId)) ?? ctx.throw(404)
}

function requestNote({ id, method, path }: RequestEntry): Html {
  return html`<p class="note quiet note-with-action">
    <span>
      Only events that
      <a class="mono" href="/console/requests/${id}">${method} ${path.replace(/\?.*/s, '')}</a>
      caused.
    </span>
    ${buttonLink('/events', 'Show all events', 'quiet')}
  </p>`
}

/** Opens the event or the delivery with this ID. Undefined if there is none: then it is the ID of a
 *  record. */
async function findById({ scope }: Visit, id: string): Promise<Redirect | undefined> {
  const [event, delivery] = await Promise.all([findEventRow(scope, id), findDelivery(scope, id)])
  if (event) return { to: `/events/${id}` }
  return delivery && { to: deliveryPath(delivery) }
}

function filters({ now }: Visit, { input, errors }: EventQuery): Html {
  const field = (name: string, label: string) => ({ name, label, value: input[name] ?? '', errors })
  const time = (name: string, label: string) => {
    const value = shownInInput(input[name] ?? '')
    return textField({ ...field(name, label), value, type: 'datetime-local' })
  }
  return filterForm({
    to: '/events',
    fields: [
      textField({ ...field('id', 'Record, event or delivery ID'), maxLength: 100 }),
      selectField({ ...field('type', 'Event'), none: 'All', choices: typeChoices }),
      time('since', timeLabel('From')),
      time('until', timeLabel('Until')),
    ],
    usedCount: Object.keys(input).length,
    clear: '/events',
    errors,
    presets: { now, to: (from) => eventsPath(input, { since: toLinkTime(from), until: '' }) },
  })
}

async function eventList(
  visit: Visit,
  { search, input, errors }: EventQuery,
  found: EventRow[],
): Promise<Content> {
  if (hasErrors(errors))
    return empty('Not searched', 'Fix the fields marked above, then filter again.')
  const { items, hasNewer, hasOlder } = toListPage(found, EVENTS_PER_PAGE, search)
  const pages = pager({
    previous: hasNewer ? eventsPath(input, { after: items[0]?.id ?? search.olderThan }) : undefined,
    next: hasOlder
      ? eventsPath(input, { before: items.at(-1)?.id ?? search.newerThan })
      : undefined,
    note: items.length > 0 && 'Newest first',
  })
  if (items.length > 0) return [await eventsTable(visit, items), pages]
  const isFiltered = Object.keys(input).length > 0 || hasNewer || hasOlder
  return isFiltered
    ? [empty('No events', 'No events match these filters.'), pages]
    : empty('No events yet', 'Each creation, update and deletion of a record appears here.')
}

async function eventsTable(visit: Visit, events: EventRow[]): Promise<Html> {
  const references = events.map(({ resource_type: type, resource_id: id }) => ({ type, id }))
  const [links, counts] = await Promise.all([
    loadRecordLinks(visit, references),
    countDeliveriesByEvent(
      visit.scope,
      events.map(({ id }) => id),
    ),
  ])
  const byEvent = Map.groupBy(counts, ({ eventId }) => eventId)
  const rows = events.map((event) => ({
    cells: [
      html`<a class="mono" href="/console/events/${event.id}">${event.event_type}</a>`,
      recordCell(event, links),
      deliveriesCell(byEvent.get(event.id) ?? []),
      html`<span class="nowrap">${timeElement(event.created_at, visit.now)}</span>`,
    ],
  }))
  return table('Events', ['Event', 'Record', 'Deliveries', 'Created'], rows, 'entries')
}

/** The record's title, or its ID if it was deleted or is hidden from the user. */
function recordCell({ resource_type: type, resource_id: id }: EventRow, links: RecordLinks): Html {
  const name = links.get(id) ?? html`<code title="${id}">${shortId(id)}</code>`
  return twoLines(name, kindOf(type), 'of-kind')
}

function deliveriesCell(counts: { state: DeliveryState; count: number }[]): Content {
  if (counts.length === 0) return html`<span class="muted">None</span>`
  return counts
    .toSorted((one, other) => order(one.state) - order(other.state))
    .map(({ state, count: deliveries }) => {
      const { tone, label } = DELIVERY_STATES[state]
      return [pill(tone, `${count(deliveries)} ${label.toLowerCase()}`), ' ']
    })
}

const order = (state: DeliveryState): number => deliveryStates.indexOf(state)
