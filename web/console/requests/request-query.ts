/** What somebody looks for among requests, as it stands in the address. */
import { validate as isUuid } from 'uuid'
import { type OperationId, operations } from '../../../generated/operations.ts'
import { MINUTE_MS } from '../../../records/reports/request-counts.ts'
import {
  REQUEST_LOG_DAYS,
  type RequestCursor,
  type RequestFilter,
} from '../../../records/request-log.ts'
import { DATE_TIME_ERROR, parseDateTimeInput } from '../../shared/date-time-input.ts'
import type { Errors } from '../ui.ts'

const MINUTE = MINUTE_MS
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long each is, how the page says it. */
export const ranges = {
  '1h': { length: HOUR, label: '1 h', words: 'The last hour' },
  '6h': { length: 6 * HOUR, label: '6 h', words: 'The last 6 hours' },
  '24h': { length: DAY, label: '24 h', words: 'The last 24 hours' },
  '7d': { length: 7 * DAY, label: '7 d', words: 'The last 7 days' },
  '30d': { length: REQUEST_LOG_DAYS * DAY, label: '30 d', words: 'The last 30 days' },
} as const
export type RangeName = keyof typeof ranges
const DEFAULT_RANGE: RangeName = '24h'

export interface RequestQuery {
  filter: RequestFilter
  /** Where the chart ends. */
  end: number
  /** Of a bucket of the chart, in milliseconds. */
  width: number
  /** Undefined: from and to are given. */
  range?: RangeName
  /** What is set, as it was typed, the range included and the page not. */
  given: Record<string, string>
  olderThan?: RequestCursor
  newerThan?: RequestCursor
  errors: Errors
}

const FILTERS = [
  'status',
  'method',
  'operation',
  'path',
  'user',
  'key',
  'ip',
  'request',
  'duration',
  'from',
  'until',
] as const
type FilterName = (typeof FILTERS)[number]

/** The filters that are not of time. */
export const conditions = FILTERS.filter((name) => name !== 'from' && name !== 'until')

export const MAX_TEXT = 200

export function readRequestQuery(query: URLSearchParams, now: Date): RequestQuery {
  const given = Object.fromEntries(
    FILTERS.map((name) => [
      name,
      (query.get(name) ?? '').replaceAll('\0', '').trim().slice(0, MAX_TEXT),
    ]).filter(([, value]) => value !== ''),
  ) as Partial<Record<FilterName, string>>
  const errors: Errors = {}
  const read = <T>(
    name: FilterName,
    parse: (text: string) => T | undefined,
    problem: string,
  ): T | undefined => {
    const text = given[name]
    if (text === undefined) return undefined
    const value = parse(text)
    if (value === undefined) errors[name] = [problem]
    return value
  }
  const from = read('from', parseMinute, DATE_TIME_ERROR)
  const until = read('until', parseMinute, DATE_TIME_ERROR)
  if (from !== undefined && until !== undefined && from >= until)
    errors.until = ['This is not after “From”.']
  const range = from === undefined && until === undefined ? rangeOf(query.get('range')) : undefined
  return {
    filter: {
      ...timeOf(range, from, until, now),
      status: read('status', statusesOf, 'Give a status such as 404, or 2xx, 3xx, 4xx or 5xx.'),
      method: read('method', methodOf, 'There is no such method.'),
      operationId: read(
        'operation',
        (text) => (Object.hasOwn(operations, text) ? (text as OperationId) : undefined),
        'There is no such operation.',
      ),
      pathContains: given.path,
      userId: read('user', idOf, 'There is no such user.'),
      apiKeyId: read('key', idOf, 'There is no such key.'),
      ip: given.ip,
      requestId: given.request,
      minDurationMs: read(
        'duration',
        millisecondsOf,
        'Give a number of milliseconds, such as 250.',
      ),
    },
    ...chartOf(range, from, until, now),
    range,
    given: range && range !== DEFAULT_RANGE ? { ...given, range } : given,
    ...cursorsOf(query),
    errors,
  }
}

function rangeOf(text: string | null): RangeName {
  return text !== null && Object.hasOwn(ranges, text) ? (text as RangeName) : DEFAULT_RANGE
}

/** The first moment of the chart of a range that ends now: its last bucket is the one that is running. */
function beginOf(range: RangeName, now: Date): number {
  const { length } = ranges[range]
  const width = widthOf(length)
  return lastBucket(now, width) + width - length
}

const lastBucket = (now: Date, width: number): number => now.getTime() - (now.getTime() % width)

function timeOf(
  range: RangeName | undefined,
  from: number | undefined,
  until: number | undefined,
  now: Date,
): Pick<RequestFilter, 'from' | 'until'> {
  return range
    ? { from: beginOf(range, now), until: null }
    : { from: from ?? beginOf('30d', now), until: until ?? null }
}

function chartOf(
  range: RangeName | undefined,
  from: number | undefined,
  until: number | undefined,
  now: Date,
): Pick<RequestQuery, 'end' | 'width'> {
  const begin = timeOf(range, from, until, now).from
  const length = range
    ? ranges[range].length
    : Math.max(MINUTE, (until ?? lastBucket(now, MINUTE) + MINUTE) - begin)
  return { end: begin + length, width: widthOf(length) }
}

const WIDTHS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map(
  (minutes) => minutes * MINUTE,
)
const MOST_BUCKETS = 120

/** By the minute, or wider where that would be too many bars. */
function widthOf(length: number): number {
  const fitting = WIDTHS.find((width) => length / width <= MOST_BUCKETS)
  return fitting ?? Math.ceil(length / MOST_BUCKETS / DAY) * DAY
}

function parseMinute(text: string): number | undefined {
  const time = parseDateTimeInput(text)
  return time === undefined || time < 0 ? undefined : time - (time % MINUTE)
}

function statusesOf(text: string): [number, number] | undefined {
  const classOf = /^([1-5])xx$/i.exec(text)?.[1]
  if (classOf) return [Number(classOf) * 100, Number(classOf) * 100 + 99]
  return /^[1-5]\d\d$/.test(text) ? [Number(text), Number(text)] : undefined
}

export const methods = [
  ...new Set(Object.values(operations).map(({ method }) => method.toUpperCase())),
  'HEAD',
]

function methodOf(text: string): string | undefined {
  return methods.find((method) => method === text.toUpperCase())
}

function idOf(text: string): string | undefined {
  return isUuid(text) ? text.toLowerCase() : undefined
}

function millisecondsOf(text: string): number | undefined {
  return /^\d{1,7}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined
}

function cursorsOf(query: URLSearchParams): Pick<RequestQuery, 'olderThan' | 'newerThan'> {
  const olderThan = cursorOf(query.get('before'))
  return olderThan ? { olderThan } : { newerThan: cursorOf(query.get('after')) }
}

/** `1763740000000_01934567-…`. Undefined: it is none, and so it is the first page. */
function cursorOf(text: string | null): RequestCursor | undefined {
  const [, time, id] = /^(\d{1,15})_(.+)$/.exec(text ?? '') ?? []
  return id !== undefined && isUuid(id) ? { createdAt: Number(time), id } : undefined
}

export function cursorTo({ createdAt, id }: RequestCursor): string {
  return `${createdAt}_${id}`
}

/** The address below /console with something changed: empty text takes it away. What is left is what is set. */
export function requestsAddress(
  given: Record<string, string>,
  change: Record<string, string> = {},
  path = '/requests',
): string {
  const all = { ...given, ...change }
  if (all.range === DEFAULT_RANGE) all.range = ''
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value !== ''))
  return `${path}${query.size > 0 ? `?${query}` : ''}`
}
