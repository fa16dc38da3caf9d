/** The list of API requests with filters and figures. */
import { Readable } from 'node:stream'
import { findRequestBefore } from '../../../records/event-search.ts'
import {
  type Bucket,
  eachMatch,
  findTraffic,
  type Traffic,
  toSearchable,
} from '../../../records/reports/traffic.ts'
import {
  listRequests,
  MAX_SEARCHED_BODY_BYTES,
  type RequestEntry,
  type RequestFilter,
} from '../../../records/request-log.ts'
import { toLinkTime } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { formStatus, hasErrors } from '../form-fields.ts'
import { absoluteTime, bytes, counted, zoneTitle } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import {
  type ConsolePage,
  getFromStandby,
  isOwnerOrAdmin,
  type PageResult,
  type Route,
  type Visit,
} from '../page.ts'
import { type ListPage, toListPage } from '../query.ts'
import { isReload, sharedPage, sharedRead } from '../shared-reads.ts'
import { buttonLink, card, empty, note, pager } from '../ui.ts'
import { errorCauses } from './error-causes.ts'
import { canViewAllQueries, redactQuery, visibleOperations } from './request-access.ts'
import { topOperations, trafficChart, trafficStats } from './request-figures.ts'
import { FILTER_FORM, requestFilters } from './request-filters.ts'
import {
  conditions,
  formatCursor,
  type RequestQuery,
  ranges,
  readRequestQuery,
  requestsPath,
} from './request-query.ts'
import { type RequestRow, requestsTable } from './request-row.ts'
import { requestsCsv } from './requests-csv.ts'

export const requestsRoutes: Route[] = [
  getFromStandby('/requests', isOwnerOrAdmin, requestsPage),
  getFromStandby('/requests.csv', isOwnerOrAdmin, requestsFile),
]

const REQUESTS_PER_PAGE = 50
/** The list reads one more request than it shows, to find out whether there is another page. */
const LIMIT = REQUESTS_PER_PAGE + 1
const REFRESH_SECONDS = 5
const FIGURES_ID = 'figures'

async function requestsPage(visit: Visit): Promise<PageResult> {
  const query = readRequestQuery(visit.query, visit.now)
  const range = visit.query.get('period')
  if (range !== null) return { to: requestsPath(query.input, { range, from: '', until: '' }) }
  // The form submits empty fields too. Redirect to a URL without them.
  if ([...visit.query.values()].includes('')) return { to: requestsPath(query.input) }
  const request = await findByChange(visit, query.filter)
  if (request) return { to: `/requests/${request.id}` }
  return sharedPage(visit, () => listPage(visit, query))
}

async function listPage(visit: Visit, query: RequestQuery): Promise<ConsolePage> {
  const isValid = !hasErrors(query.errors)
  return {
    title: 'API requests',
    lead: `${periodTitle(query)}. Times are in ${zoneTitle()}.`,
    listId: isValid ? 'list' : undefined,
    status: formStatus(query.errors),
    body: [
      !isValid && note('bad', 'Please fix the filters marked below.'),
      !isReload(visit) && (await requestFilters(visit, query)),
      rangeButtons(query),
      isValid && (await results(visit, query)),
    ],
  }
}

/** `at` in the URL is the time of a change that the request made, from the audit log. */
async function findByChange(
  { scope, query }: Visit,
  { requestId }: RequestFilter,
): Promise<RequestEntry | undefined> {
  const at = Number(query.get('at'))
  const isTime = Number.isSafeInteger(at) && at > 0
  return isTime && requestId !== undefined ? findRequestBefore(scope, requestId, at) : undefined
}

function periodTitle({ range, filter }: RequestQuery): string {
  if (range) return ranges[range].title
  return filter.until === null
    ? `Since ${absoluteTime(filter.from)}`
    : `From ${absoluteTime(filter.from)} to ${absoluteTime(filter.until)}`
}

/** Buttons of the filter form, so that they also send the filters that the user has just chosen. */
function rangeButtons({ range }: RequestQuery): Html {
  const buttons = Object.entries(ranges).map(([name, { label }]) => {
    const current = range === name && html` aria-current="true"`
    return html`<button form="${FILTER_FORM}" name="period" value="${name}"${current}>${label}</button>`
  })
  return html`<div class="tabs" role="group" aria-label="Period">${buttons}</div>`
}

/** The figures and the list. Both reload on the first page, if the period has no end. */
async function results(visit: Visit, query: RequestQuery): Promise<Html> {
  const { scope } = visit
  const { input, olderThan, newerThan, bucketMs, chartEnd } = query
  const allowed = allowedFilter(visit, query)
  const { filter, traffic, figures } = await sharedRead(
    visit,
    [allowed, bucketMs, input],
    async () => {
      const filter = await toSearchable(scope, allowed)
      const traffic = await findTraffic(scope, filter, bucketMs, chartEnd)
      return {
        filter,
        traffic,
        figures: traffic.requests > 0 && [
          trafficChart(traffic, bucketMs, input),
          topOperations(traffic, input),
        ],
      }
    },
  )
  const isFirstPage = !olderThan && !newerThan
  const requests = isFirstPage
    ? await listNewest(visit, filter, traffic)
    : await listRequests(scope, filter, { limit: LIMIT, olderThan, newerThan })
  // A search in bodies is too expensive to repeat every few seconds.
  const isLive = isFirstPage && filter.until === null && filter.text === undefined
  const path = `/console${requestsPath(input)}`
  const reload =
    isLive && reloadEvery(REFRESH_SECONDS, path, 'traffic', `#${FIGURES_ID}:outerMorph`)
  const csvPath = requestsPath(input, {}, '/requests.csv')
  const hasFailures = traffic.clientErrors + traffic.serverErrors > 0
  return html`<div id="${FIGURES_ID}">
    ${filter.from > query.filter.from && limitNote(query, filter.from)}
    ${filter.text !== undefined && LONG_BODIES_NOTE}
    ${requests.some(({ omittedBytes }) => omittedBytes > 0) && OMITTED_NOTE}
    ${trafficStats(traffic, bucketMs)}
  </div>
  ${hasFailures && !isReload(visit) && (await errorCauses(visit, filter, input))}
  <div id="traffic"${reload}>
    ${card('Requests', html`<div id="list">${requestList(visit, requests, query)}</div>`, [
      html`<span class="muted">${counted(traffic.requests, 'request')}</span>`,
      figures && buttonLink(csvPath, 'Export as CSV'),
    ])}
    ${figures}
  </div>`
}

/** Lists the first page. A search of the whole period is slow when few requests match, so this
 *  searches only the newest buckets of the chart that count enough requests for the page. If too
 *  few of these requests are stored, it searches the whole period. */
async function listNewest(
  { scope }: Visit,
  filter: RequestFilter,
  { buckets, requests }: Traffic,
): Promise<RequestEntry[]> {
  if (requests === 0) return []
  const from = Math.max(filter.from, findCompletingBucket(buckets)?.startsAt ?? 0)
  const newest = await listRequests(scope, { ...filter, from }, { limit: LIMIT })
  // The buckets also count requests that are not stored, so the page can be incomplete.
  const isComplete = newest.length >= Math.min(LIMIT, requests)
  return isComplete ? newest : listRequests(scope, filter, { limit: LIMIT })
}

/** The newest bucket that, together with all later ones, counts `LIMIT` requests. Without such a
 *  bucket, the oldest one with requests. */
function findCompletingBucket(buckets: Bucket[]): Bucket | undefined {
  const total = ({ ok, clientErrors, serverErrors }: Bucket) => ok + clientErrors + serverErrors
  let needed = LIMIT
  const completing = buckets.findLast((bucket) => {
    needed -= total(bucket)
    return needed <= 0
  })
  return completing ?? buckets.find((bucket) => total(bucket) > 0)
}

function requestList(visit: Visit, requests: RequestEntry[], query: RequestQuery): Content {
  if (requests.length === 0) return noRequests(visit, query)
  const page = toListPage(requests, REQUESTS_PER_PAGE, query)
  const rows = page.items.map(
    (request): RequestRow => ({ request: redactQuery(visit.user, request), view: 'closed' }),
  )
  return [requestsTable(visit.now, rows), requestsPager(page, query)]
}

/** A user who may not see all query strings and bodies must not search in these either. */
function allowedFilter({ user }: Visit, { filter }: RequestQuery): RequestFilter {
  const isSearch = filter.pathContains !== undefined || filter.text !== undefined
  if (!isSearch || canViewAllQueries(user)) return filter
  const operationIds = filter.text === undefined ? undefined : visibleOperations(user)
  return { ...filter, isQueryHidden: true, operationIds }
}

const LONG_BODIES_NOTE = note(
  'busy',
  `Bodies longer than ${bytes(MAX_SEARCHED_BODY_BYTES)} are not searched.`,
)

const OMITTED_NOTE = note(
  'busy',
  'The bodies of some requests are not stored: your account has reached the limit of the request ' +
    'log for the day (UTC).',
)

function limitNote({ filter, input }: RequestQuery, from: number): Html {
  const earlierPath = requestsPath(input, {
    range: '',
    from: toLinkTime(filter.from),
    until: toLinkTime(from),
  })
  return note(
    'busy',
    html`This period has too many requests to search at once. Showing those since ${absoluteTime(from)}.
      <a href="/console${earlierPath}">Search earlier requests</a>`,
  )
}

function requestsPager(
  { items, hasNewer, hasOlder }: ListPage<RequestEntry>,
  { input }: RequestQuery,
): Html {
  const [first, last] = [items.at(0), items.at(-1)]
  return pager({
    previous: first && hasNewer ? requestsPath(input, { after: formatCursor(first) }) : undefined,
    next: last && hasOlder ? requestsPath(input, { before: formatCursor(last) }) : undefined,
    note: 'Newest first',
  })
}

function noRequests({ config }: Visit, { input, range }: RequestQuery): Html {
  const longerPath = requestsPath(input, { range: '30d', from: '', until: '' })
  const longerLink = range !== '30d' && buttonLink(longerPath, 'Search the last 30 days')
  if (conditions.some((name) => input[name]))
    return empty('No requests match', 'No requests in this period match these filters.', longerLink)
  return empty(
    'No requests in this period',
    html`Requests made with your account’s API keys appear here for
      ${counted(config.retentionDays.requestLog, 'day')}, with their bodies.
      <a href="/docs/guides/getting-started">Make your first request</a>`,
    longerLink,
  )
}

async function requestsFile(visit: Visit): Promise<PageResult> {
  const query = readRequestQuery(visit.query, visit.now)
  if (hasErrors(query.errors)) return { to: requestsPath(query.input) }
  const matches = eachMatch(visit.scope, allowedFilter(visit, query))
  return {
    fileName: `requests-${visit.now.toISOString().slice(0, 10)}.csv`,
    contentType: 'text/csv; charset=utf-8',
    content: Readable.from(requestsCsv(visit.user, matches)),
  }
}
