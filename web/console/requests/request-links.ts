/** Links from a request to the record that it was about, and to the events that it caused. */
import type { OperationRow } from '../../../generated/operations.ts'
import { resources } from '../../../generated/resources.ts'
import { eventsOfRequest, searchEvents } from '../../../records/event-search.ts'
import type { RequestDetail } from '../../../records/request-log.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { isJson } from '../json-block.ts'
import type { Visit } from '../page.ts'
import { parseId } from '../query.ts'
import { recordFact } from '../records/record-link.ts'
import { type Fact, shortId } from '../ui.ts'
import { lookUpOperation } from './request-row.ts'

const MAX_EVENTS = 5

export async function requestLinks(visit: Visit, request: RequestDetail): Promise<Fact[]> {
  const operation = lookUpOperation(request.operationId)
  if (!operation) return []
  const target = findCreated(request, operation) ?? findInPath(request, operation)
  return [
    target !== undefined && (await targetFact(visit, target)),
    operation.emits.length > 0 && request.status < 400 && (await eventsFact(visit, request)),
  ]
}

/** What a path parameter names, for example `{ parameter: 'participant', id: … }`. */
interface Target {
  parameter: string
  id: string
}

function findInPath({ path }: RequestDetail, operation: OperationRow): Target | undefined {
  const segments = path.replace(/\?.*/s, '').split('/')
  const names = operation.path.split('/')
  const index = names.findIndex((name) => name.startsWith('{'))
  const id = parseId(segments[index])
  return id === undefined ? undefined : { parameter: names[index]?.slice(1, -1) ?? '', id }
}

function findCreated(
  { status, operationId, responseBody }: RequestDetail,
  { success }: OperationRow,
): Target | undefined {
  if (status !== success || status !== 201 || !isJson(responseBody ?? '')) return undefined
  const id = parseId(JSON.parse(responseBody ?? '')?.id)
  const resource = resources.find(({ operations }) => operations.create === operationId)
  return resource && id !== undefined ? { parameter: resource.idParameter, id } : undefined
}

/** Pages of what is no record, by path parameter. */
const PAGES: Record<string, { name: string; path(id: string): string }> = {
  webhook: { name: 'Webhook', path: (id) => `/webhooks/${id}` },
  event: { name: 'Event', path: (id) => `/events/${id}` },
  delivery: { name: 'Delivery', path: (id) => `/events?id=${id}` },
}

async function targetFact(visit: Visit, { parameter, id }: Target): Promise<Fact> {
  const resource = resources.find(({ idParameter }) => idParameter === parameter)
  if (resource) return ['Record', await recordFact(visit, { type: resource.type, id })]
  const page = PAGES[parameter]
  return page !== undefined && [page.name, idLink(page.path(id), id)]
}

const idLink = (path: string, id: string): Html =>
  html`<a class="mono" href="/console${path}" title="${id}">${shortId(id)}</a>`

async function eventsFact({ scope }: Visit, request: RequestDetail): Promise<Fact> {
  const search = { ...eventsOfRequest(request), limit: MAX_EVENTS + 1 }
  const events = await searchEvents(scope, search)
  if (events.length === 0) return false
  const links: Content[] = events
    .slice(0, MAX_EVENTS)
    .map(({ id, event_type }, index) => [
      index > 0 && ', ',
      html`<a class="mono" href="/console/events/${id}">${event_type}</a>`,
    ])
  const allPath = `/console/events?request=${request.id}`
  return ['Events', [links, events.length > MAX_EVENTS && html`, <a href="${allPath}">see all</a>`]]
}
