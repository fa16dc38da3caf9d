/** The filters, the period and the page of the request list, as written in its URL. */
import { type OperationId, operations } from '../../../generated/operations.ts'
import {
  REQUEST_LOG_DAYS,
  type RequestCursor,
  type RequestFilter,
} from '../../../records/request-log.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../records/time-units.ts'
import { DATE_TIME_ERROR, parseDateTimeInput } from '../../shared/date-time-input.ts'
import type { Errors } from '../form-fields.ts'
import { parseId, withQuery } from '../query.ts'

export const ranges = {
  '1h': { lengthMs: HOUR_MS, label: '1 h', title: 'The last hour' },
  '6h': { lengthMs: 6 * HOUR_MS, label: '6 h', title: 'The last 6 hours' },
  '24h': { lengthMs: DAY_MS, label: '24 h', title: 'The last 24 hours' },
  '7d': { lengthMs: 7 * DAY_MS, label: '7 d', title: 'The last 7 days' },
  '30d': { lengthMs: REQUEST_LOG_DAYS * DAY_MS, label: '30 d', title: 'The last 30 days' },
} as const
export type RangeName = keyof typeof ranges
const DEFAULT_RANGE: RangeName = '24h'

export interface RequestQuery {
  filter: RequestFilter
  /** The end of the chart, epoch milliseconds. */
  chartEnd: number
  /** The time that each bar of the chart covers. */
  bucketMs: number
  /** Undefined if the user chose `from` or `until`. */
  range?: RangeName
  /** The filters that are set, as typed, and the range unless it is the default. Without the
   *  cursor. */
  input: Record<string, string>
  olderThan?: RequestCursor
  newerThan?: RequestCursor
  errors: Errors
}

const FILTERS = [
  'text',
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

/** All filters except the period. */
export const conditions = FILTERS.filter((name) => name !== 'from' && name !== 'until')

export const MAX_TEXT_CHARACTERS = 200

export function readRequestQuery(query: URLSearchParams, now: Date): RequestQuery {
  const input = Object.fromEntries(
    FILTERS.map((name) => [
      name,
      (query.get(name) ?? '').replaceAll('\0', '').trim().slice(0, MAX_TEXT_CHARACTERS),
    ]).filter(([, value]) => value !== ''),
  ) as Partial<Record<FilterName, string>>
  const errors: Errors = {}
  const read = <T>(
    name: FilterName,
    parse: (text: string) => T | undefined,
    problem: string,
  ): T | undefined => {
    const text = input[name]
    if (text === undefined) return undefined
    const value = parse(text)
    if (value === undefined) errors[name] = [problem]
    return value
  }
  const from = read('from', parseMinute, DATE_TIME_ERROR)
  const until = read('until', parseMinute, DATE_TIME_ERROR)
  if (from !== undefined && until !== undefined && from >= until)
    errors.until = ['Choose a time after “From”.']
  const range =
    from === undefined && until === undefined ? parseRange(query.get('range')) : undefined
  const period = toPeriod(now, range, { from, until })
  return {
    filter: {
      from: period.from,
      until: period.until,
      status: read('status', parseStatuses, 'Enter a status, for example 404 or 4xx.'),
      method: read('method', parseMethod, 'Choose a method from the list.'),
      operationId: read('operation', parseOperation, 'Choose an operation from the list.'),
      pathContains: input.path,
      text: input.text,
      userId: read('user', parseId, 'Choose a user from the list.'),
      apiKeyId: read('key', parseId, 'Choose a key from the list.'),
      ip: input.ip,
      requestId: input.request,
      minDurationMs: read(
        'duration',
        parseMilliseconds,
        'Enter a number of milliseconds, for example 250.',
      ),
    },
    chartEnd: period.from + period.lengthMs,
    bucketMs: chooseBucket(period.lengthMs),
    range,
    input: range && range !== DEFAULT_RANGE ? { ...input, range } : input,
    ...readCursors(query),
    errors,
  }
}

function parseRange(text: string | null): RangeName {
  return text !== null && Object.hasOwn(ranges, text) ? (text as RangeName) : DEFAULT_RANGE
}

/** The start of a range whose last bucket contains `now`. Epoch milliseconds. */
function rangeStart(range: RangeName, now: Date): number {
  const { lengthMs } = ranges[range]
  const bucketMs = chooseBucket(lengthMs)
  return bucketStart(now, bucketMs) + bucketMs - lengthMs
}

function bucketStart(now: Date, bucketMs: number): number {
  return now.getTime() - (now.getTime() % bucketMs)
}

interface Period {
  /** Epoch milliseconds, like `until`. */
  from: number
  /** Null: until now. */
  until: number | null
  lengthMs: number
}

function toPeriod(
  now: Date,
  range: RangeName | undefined,
  { from = rangeStart('30d', now), until }: { from?: number; until?: number },
): Period {
  if (range) return { from: rangeStart(range, now), until: null, lengthMs: ranges[range].lengthMs }
  const end = until ?? bucketStart(now, MINUTE_MS) + MINUTE_MS
  return { from, until: until ?? null, lengthMs: Math.max(MINUTE_MS, end - from) }
}

const BUCKETS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map(
  (minutes) => minutes * MINUTE_MS,
)
const MAX_BUCKETS = 120

/** The shortest bucket for which the chart has at most `MAX_BUCKETS` bars. */
function chooseBucket(lengthMs: number): number {
  const fitting = BUCKETS_MS.find((bucketMs) => lengthMs / bucketMs <= MAX_BUCKETS)
  return fitting ?? Math.ceil(lengthMs / MAX_BUCKETS / DAY_MS) * DAY_MS
}

/** Like `parseDateTimeInput`, rounded down to the minute. Undefined before 1970. */
function parseMinute(text: string): number | undefined {
  const time = parseDateTimeInput(text)
  return time === undefined || time < 0 ? undefined : time - (time % MINUTE_MS)
}

/** The lowest and the highest status: `4xx` means 400 to 499, and `404` only 404. */
function parseStatuses(text: string): [number, number] | undefined {
  const hundreds = /^([1-5])xx$/i.exec(text)?.[1]
  if (hundreds) return [Number(hundreds) * 100, Number(hundreds) * 100 + 99]
  return /^[1-5]\d\d$/.test(text) ? [Number(text), Number(text)] : undefined
}

export const methods = [
  ...new Set(Object.values(operations).map(({ method }) => method.toUpperCase())),
  'HEAD',
]

function parseOperation(text: string): OperationId | undefined {
  return Object.hasOwn(operations, text) ? (text as OperationId) : undefined
}

function parseMethod(text: string): string | undefined {
  return methods.find((method) => method === text.toUpperCase())
}

function parseMilliseconds(text: string): number | undefined {
  return /^\d{1,7}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined
}

function readCursors(query: URLSearchParams): Pick<RequestQuery, 'olderThan' | 'newerThan'> {
  const olderThan = parseCursor(query.get('before'))
  return olderThan ? { olderThan } : { newerThan: parseCursor(query.get('after')) }
}

/** Parses `1763740000000_01934567-…`. Undefined if there is no cursor, or an invalid one. */
function parseCursor(text: string | null): RequestCursor | undefined {
  const [, time, idText] = /^(\d{1,15})_(.+)$/.exec(text ?? '') ?? []
  const id = parseId(idText)
  return id === undefined ? undefined : { createdAt: Number(time), id }
}

export function formatCursor({ createdAt, id }: RequestCursor): string {
  return `${createdAt}_${id}`
}

/** The path below /console with some filters changed. An empty value removes a filter. */
export function requestsPath(
  input: Record<string, string>,
  change: Record<string, string> = {},
  path = '/requests',
): string {
  const all = { ...input, ...change }
  return withQuery(path, all.range === DEFAULT_RANGE ? { ...all, range: '' } : all)
}
