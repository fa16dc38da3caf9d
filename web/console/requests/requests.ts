/** The API Dashboard: what was asked of the API with the account's keys, and how it went. */
import { Readable } from 'node:stream'
import { stringify } from 'csv-stringify/sync'
import {
  type Bucket,
  eachMatch,
  findTraffic,
  SEARCHED_AT_MOST,
  searchable,
} from '../../../records/reports/traffic.ts'
import {
  listRequests,
  type RequestEntry,
  type RequestFilter,
} from '../../../records/request-log.ts'
import type { User } from '../../../records/users.ts'
import { toDateTimeInput } from '../../shared/date-time-input.ts'
import { type Html, html } from '../../shared/html.ts'
import { type Answer, get, isAdmin, type Route, type Visit } from '../page.ts'
import { buttonLink, card, count, counted, empty, note, POLL, pager, tabs, utc } from '../ui.ts'
import { requestsTable, seesAllQueries, shownTo } from './request.ts'
import { chart, strip, tops } from './request-figures.ts'
import { clearedAddress, filterForm } from './request-filters.ts'
import {
  conditions,
  cursorTo,
  type RangeName,
  type RequestQuery,
  ranges,
  readRequestQuery,
  requestsAddress,
} from './request-query.ts'

export const requestsRoutes: Route[] = [
  get('/requests', isAdmin, requestsPage),
  get('/requests.csv', isAdmin, requestsFile),
]

const REQUESTS_PER_PAGE = 50
const REFRESH_SECONDS = 5

async function requestsPage(visit: Visit): Promise<Answer> {
  const query = readRequestQuery(visit.query, visit.now)
  // A form sends its empty fields, too.
  if ([...visit.query.values()].includes('')) return { to: requestsAddress(query.given) }
  const isWrong = Object.keys(query.errors).length > 0
  return {
    title: 'API Dashboard',
    lead: `${timeWords(query)}. Times are in UTC.`,
    actions: rangeTabs(query),
    status: isWrong ? 422 : 200,
    body: html`${isWrong && note('bad', 'A filter cannot be used as it is. See below.')}${await filterForm(visit, query)}${!isWrong && (await found(visit, query))}`,
  }
}

function timeWords({ range, filter }: RequestQuery): string {
  if (range) return ranges[range].words
  return filter.until === null
    ? `Since ${utc(filter.from)}`
    : `From ${utc(filter.from)} to ${utc(filter.until)}`
}

function rangeTabs({ range, given }: RequestQuery): Html {
  return tabs(
    'Time',
    Object.entries(ranges).map(([name, { label }]) => ({
      label,
      to: requestsAddress(given, { range: name, from: '', until: '' }),
      isCurrent: range === (name as RangeName),
    })),
  )
}

/** Figures and list. They bring themselves up to date where what comes in belongs to them. */
async function found(visit: Visit, query: RequestQuery): Promise<Html> {
  const { scope } = visit
  const { given, olderThan, newerThan, width, end } = query
  const filter = await searchable(scope, filterFor(visit, query))
  const traffic = await findTraffic(scope, filter, width, end)
  const listed = await listRequests(
    scope,
    olderThan || newerThan ? filter : withoutOlder(filter, traffic.buckets),
    {
      limit: REQUESTS_PER_PAGE + 1,
      olderThan,
      newerThan,
    },
  )
  const isLive = !olderThan && !newerThan && filter.until === null
  return html`<div id="traffic"${isLive && refresh(given)}>${filter.from > query.filter.from && searchedNote(query, filter.from)}${strip(traffic, width)}${traffic.requests > 0 && [chart(traffic, width), tops(traffic, given)]}${card(
    'Requests',
    listed.length === 0
      ? nothingFound(query)
      : [requestsTable(visit.now, rowsOf(visit, listed, query)), pages(listed, query)],
    {
      actions: html`<span class="muted">${counted(traffic.requests, 'request')}</span>${traffic.requests > 0 && buttonLink(requestsAddress(given, {}, '/requests.csv'), 'Export as CSV')}`,
    },
  )}</div>`
}

/** What somebody looks for, where they may look. */
function filterFor({ user }: Visit, { filter }: RequestQuery): RequestFilter {
  return filter.pathContains === undefined || seesAllQueries(user)
    ? filter
    : { ...filter, isQueryHidden: true }
}

/** What matches seldom is not looked for a second time where there is none of it. */
function withoutOlder(filter: RequestFilter, buckets: Bucket[]): RequestFilter {
  let needed = REQUESTS_PER_PAGE + 1
  const first = buckets.findLast((bucket) => {
    needed -= bucket.ok + bucket.clientErrors + bucket.serverErrors
    return needed <= 0
  })
  const oldest =
    first ??
    buckets.find(({ ok, clientErrors, serverErrors }) => ok + clientErrors + serverErrors > 0) ??
    buckets.at(-1)
  return { ...filter, from: Math.max(filter.from, oldest?.startsAt ?? 0) }
}

function refresh(given: Record<string, string>): Html {
  return html` hx-get="/console${requestsAddress(given)}" hx-trigger="every ${REFRESH_SECONDS}s" hx-target="#traffic" hx-select="#traffic" hx-swap="outerMorph ignoreTitle:true"${POLL}`
}

function searchedNote({ filter, given }: RequestQuery, from: number): Html {
  const earlier = requestsAddress(given, {
    range: '',
    from: toDateTimeInput(filter.from),
    until: toDateTimeInput(from),
  })
  return note(
    'busy',
    html`There were more requests in this time than can be searched at once. What you see is of the newest ${count(SEARCHED_AT_MOST)} of them, since ${utc(from)}. <a href="/console${earlier}">Search those before</a>`,
  )
}

/** One more was asked for than is shown: it tells that there are more, on the side away from the cursor. */
function shownOf(listed: RequestEntry[], { newerThan }: RequestQuery): RequestEntry[] {
  return newerThan ? listed.slice(-REQUESTS_PER_PAGE) : listed.slice(0, REQUESTS_PER_PAGE)
}

const rowsOf = ({ user }: Visit, listed: RequestEntry[], query: RequestQuery) =>
  shownOf(listed, query).map((request) => ({
    request: shownTo(user, request),
    view: 'closed' as const,
  }))

function pages(listed: RequestEntry[], query: RequestQuery): Html {
  const { given, olderThan, newerThan } = query
  const shown = shownOf(listed, query)
  const [first, last] = [shown.at(0), shown.at(-1)]
  const hasMore = listed.length > REQUESTS_PER_PAGE
  return pager({
    previous:
      first && (newerThan ? hasMore : olderThan)
        ? requestsAddress(given, { after: cursorTo(first) })
        : undefined,
    next:
      last && (newerThan || hasMore)
        ? requestsAddress(given, { before: cursorTo(last) })
        : undefined,
    note: 'Newest first',
  })
}

function nothingFound({ given, range }: RequestQuery): Html {
  const isFiltered = conditions.some((name) => given[name])
  const longer =
    range !== '30d' &&
    buttonLink(
      requestsAddress(given, { range: '30d', from: '', until: '' }),
      'Look in the last 30 days',
    )
  if (isFiltered)
    return empty(
      'No request matches',
      'Nothing in this time is what these filters look for.',
      html`<span class="actions centred">${longer}${buttonLink(clearedAddress(given), 'Clear the filters', 'quiet')}</span>`,
    )
  return empty(
    'No requests in this time',
    html`Every request made with a key of your account is listed here for 30 days, with what was sent and what was answered. <a href="/docs/guides/getting-started">Make the first one</a>`,
    longer,
  )
}

async function requestsFile(visit: Visit): Promise<Answer> {
  const query = readRequestQuery(visit.query, visit.now)
  if (Object.keys(query.errors).length > 0) return { to: requestsAddress(query.given) }
  return {
    fileName: `requests-${new Date(visit.now).toISOString().slice(0, 10)}.csv`,
    contentType: 'text/csv; charset=utf-8',
    content: Readable.from(csvOf(visit.user, eachMatch(visit.scope, filterFor(visit, query)))),
  }
}

const COLUMNS = [
  'time',
  'status',
  'method',
  'path',
  'operation',
  'duration_ms',
  'user',
  'api_key',
  'ip',
  'request_id',
]

/** RFC 4180, as exports are, and without formulas: a spreadsheet would run what somebody put into a path. */
async function* csvOf(
  reader: User,
  batches: AsyncIterable<RequestEntry[]>,
): AsyncGenerator<string> {
  const options = {
    record_delimiter: '\r\n',
    quote_record_delimiter: true,
    quoted_match: /^$/,
    escape_formulas: true,
  }
  const lines = (rows: unknown[][]): string => stringify(rows, options)
  yield lines([COLUMNS])
  for await (const batch of batches)
    yield lines(
      batch
        .map((request) => shownTo(reader, request))
        .map(
          ({
            createdAt,
            status,
            method,
            path,
            operationId,
            durationMs,
            user,
            apiKey,
            ip,
            requestId,
          }) => [
            new Date(createdAt).toISOString(),
            status,
            method,
            path,
            operationId,
            durationMs,
            user.fullName,
            apiKey.name,
            ip,
            requestId,
          ],
        ),
    )
}
