/** Figures of requests: how many, how they ended, how long they took. Some ten thousand are read from the log; of more, the counts are read that
 *  were made as they were logged. A filter needs the log, so where there is too much of it, only the newest are searched. */
import type { Scope } from '../database/scope.ts'
import { select } from '../database/statements.ts'
import {
  eachRequest,
  matchingRequests,
  type RequestEntry,
  type RequestFilter,
} from '../request-log.ts'
import { BINS, binColumns, edgesOf, HOUR_MS, MINUTE_MS } from './request-counts.ts'

/** Up to so many are read to count them: some 50 ms. */
const READ_AT_MOST = 50_000
/** Up to so many are searched for what a filter wants. */
export const SEARCHED_AT_MOST = 200_000

export interface Bucket {
  /** Epoch milliseconds, as all times of records. */
  startsAt: number
  /** Below 400. */
  ok: number
  clientErrors: number
  serverErrors: number
}

/** To within a few per cent, in milliseconds. */
export interface Durations {
  p50: number
  p95: number
  p99: number
}

export interface OperationCount {
  operationId: string | null
  status: number
  requests: number
}

export interface Traffic {
  buckets: Bucket[]
  requests: number
  clientErrors: number
  serverErrors: number
  /** Null: there were no requests. */
  durations: Durations | null
  /** Of each operation, how often it answered with which status. */
  operations: OperationCount[]
}

/** The part of a range that can be searched for what its filter wants: all of it, unless that is too much. Without a filter nothing is searched. */
export async function searchable(scope: Scope, filter: RequestFilter): Promise<RequestFilter> {
  return isFiltered(filter) ? { ...filter, from: await searchableFrom(scope, filter) } : filter
}

/** From when on there are no more than can be searched. At least a minute's. */
async function searchableFrom(scope: Scope, filter: RequestFilter): Promise<number> {
  const { sql, bindings } = minutesOf(scope, filter)
  const [found] = await select<{
    first: number | null
    newest: number | null
    total: number | null
  }>(
    scope.sql,
    `select min(case when running <= ${SEARCHED_AT_MOST} then minute end) as first, max(minute) as newest, max(running) as total
     from (select minute, sum(ok + client_errors + server_errors) over (order by minute desc) as running
           from request_minutes where ${sql}) as minutes`,
    bindings,
  )
  if (Number(found?.total ?? 0) <= SEARCHED_AT_MOST) return filter.from
  return found?.first ?? found?.newest ?? filter.from
}

export function isFiltered({ from, until, ...rest }: RequestFilter): boolean {
  return Object.values(rest).some((value) => value !== undefined)
}

/** `width` is of a bucket, in milliseconds. The last bucket is the one before `end`, and has all that came in later, too. */
export async function findTraffic(
  scope: Scope,
  filter: RequestFilter,
  width: number,
  end: number,
): Promise<Traffic> {
  const range = { ...filter, width, buckets: Math.max(1, Math.ceil((end - filter.from) / width)) }
  if (isFiltered(filter)) return readTraffic(scope, range)
  const counted = await countedMinutes(scope, range)
  const requests = counted.buckets.reduce(
    (sum, { ok, clientErrors, serverErrors }) => sum + ok + clientErrors + serverErrors,
    0,
  )
  if (requests <= READ_AT_MOST) return readTraffic(scope, range)
  return trafficOf(counted, await countedOperations(scope, filter))
}

type Range = RequestFilter & { width: number; buckets: number }

interface Counted {
  buckets: Bucket[]
  bins: Bin[]
}

/** Some durations: how many, and between which two they are. */
interface Bin {
  requests: number
  low: number
  high: number
}

function trafficOf({ buckets, bins }: Counted, operations: OperationCount[]): Traffic {
  const sum = (name: 'ok' | 'clientErrors' | 'serverErrors'): number =>
    buckets.reduce((total, bucket) => total + bucket[name], 0)
  const [clientErrors, serverErrors] = [sum('clientErrors'), sum('serverErrors')]
  const requests = sum('ok') + clientErrors + serverErrors
  const durations =
    requests === 0
      ? null
      : {
          p50: percentileOf(bins, 0.5),
          p95: percentileOf(bins, 0.95),
          p99: percentileOf(bins, 0.99),
        }
  return { buckets, requests, clientErrors, serverErrors, durations, operations }
}

/** Nearest rank, between the ends of the bin in which it is. */
function percentileOf(bins: Bin[], share: number): number {
  const rank = Math.ceil(share * bins.reduce((total, { requests }) => total + requests, 0))
  let before = 0
  for (const { requests, low, high } of bins) {
    if (before + requests >= rank)
      return requests === 1 ? low : low + ((high - low) * (rank - before - 1)) / (requests - 1)
    before += requests
  }
  return 0
}

/** In SQLite, a number of JavaScript is no integer: what is divided by it is cast. */
const bucketOf = (column: string): string => `cast(floor((${column} - ?) / ?) as integer)`

function emptyBuckets({ from, width, buckets }: Range): Bucket[] {
  return Array.from({ length: buckets }, (_, index) => ({
    startsAt: from + index * width,
    ok: 0,
    clientErrors: 0,
    serverErrors: 0,
  }))
}

/** The minutes of a range, from what was counted. */
function minutesOf(
  { accountId }: Scope,
  { from, until }: RequestFilter,
): { sql: string; bindings: (string | number)[] } {
  return until === null
    ? { sql: 'account_id = ? and minute >= ?', bindings: [accountId, from] }
    : { sql: 'account_id = ? and minute >= ? and minute < ?', bindings: [accountId, from, until] }
}

type MinuteRow = {
  bucket: number
  ok: number
  client_errors: number
  server_errors: number
} & Record<string, number>

async function countedMinutes(scope: Scope, range: Range): Promise<Counted> {
  const { sql, bindings } = minutesOf(scope, range)
  const sums = ['ok', 'client_errors', 'server_errors', ...binColumns]
    .map((column) => `sum(${column}) as ${column}`)
    .join(', ')
  const rows = await select<MinuteRow>(
    scope.sql,
    `select ${bucketOf('minute')} as bucket, ${sums} from request_minutes where ${sql} group by 1`,
    [range.from, range.width, ...bindings],
  )
  const buckets = emptyBuckets(range)
  for (const row of rows) {
    const bucket = buckets[Math.min(row.bucket, buckets.length - 1)]
    if (!bucket) continue
    bucket.ok += Number(row.ok)
    bucket.clientErrors += Number(row.client_errors)
    bucket.serverErrors += Number(row.server_errors)
  }
  const bins = Array.from({ length: BINS }, (_, bin): Bin => {
    const [low, high] = edgesOf(bin)
    return { requests: rows.reduce((total, row) => total + Number(row[`d${bin}`]), 0), low, high }
  })
  return { buckets, bins }
}

/** Whole hours where there are any, and the minutes before and after them. */
async function countedOperations(
  scope: Scope,
  { from, until }: RequestFilter,
): Promise<OperationCount[]> {
  const end = until ?? Number.MAX_SAFE_INTEGER
  const firstHour = Math.ceil(from / HOUR_MS) * HOUR_MS
  const lastHour = until === null ? end : Math.floor(until / HOUR_MS) * HOUR_MS
  const parts =
    firstHour < lastHour
      ? [
          [MINUTE_MS, from, firstHour],
          [HOUR_MS, firstHour, lastHour],
          [MINUTE_MS, lastHour, end],
        ]
      : [[MINUTE_MS, from, end]]
  const rows = await select<{ operation_id: string; status: number; requests: number }>(
    scope.sql,
    `select operation_id, status, sum(requests) as requests from (${parts
      .map(
        () =>
          'select operation_id, status, requests from request_counts where account_id = ? and span_ms = ? and starts_at >= ? and starts_at < ?',
      )
      .join(' union all ')}) as counted group by 1, 2`,
    parts.flatMap((part) => [scope.accountId, ...part]),
  )
  return rows.map((row) => ({
    operationId: row.operation_id || null,
    status: row.status,
    requests: Number(row.requests),
  }))
}

/** 4 % wide, and each with the shortest and the longest that is in it: what is alone in its bin is exact. */
const READ_BIN =
  'cast(floor(ln(cast(case when duration_ms < 0.01 then 0.01 else duration_ms end as double precision)) * 25) as integer)'

/** What each part has not is null. */
interface ReadRow {
  part: 'buckets' | 'durations' | 'operations'
  bucket: number
  status: number
  operation_id: string | null
  requests: number
  low: number
  high: number
}

/** The rows are read once. */
async function readTraffic(scope: Scope, range: Range): Promise<Traffic> {
  const { sql, bindings } = matchingRequests(scope, range)
  const none = 'cast(null as double precision)'
  const rows = await select<ReadRow>(
    scope.sql,
    `with found as materialized (
       select ${bucketOf('created_at')} as bucket, status, duration_ms, operation_id from request_log where ${sql}
     ), binned as (
       select count(*) as requests, min(duration_ms) as low, max(duration_ms) as high from found group by ${READ_BIN}
     )
     select 'buckets' as part, bucket, status, cast(null as text) as operation_id, count(*) as requests, ${none} as low, ${none} as high
     from found group by bucket, status
     union all select 'durations', null, null, null, requests, low, high from binned
     union all select 'operations', null, status, operation_id, count(*), null, null from found group by status, operation_id
     order by low`,
    [range.from, range.width, ...bindings],
  )
  const of = (part: ReadRow['part']): ReadRow[] => rows.filter((row) => row.part === part)
  const buckets = emptyBuckets(range)
  for (const row of of('buckets')) {
    const bucket = buckets[Math.min(row.bucket, buckets.length - 1)]
    if (bucket)
      bucket[row.status < 400 ? 'ok' : row.status < 500 ? 'clientErrors' : 'serverErrors'] +=
        row.requests
  }
  const operations = of('operations').map((row) => ({
    operationId: row.operation_id,
    status: row.status,
    requests: row.requests,
  }))
  return trafficOf({ buckets, bins: of('durations') }, operations)
}

export interface RateLimitUse {
  user: { id: string; fullName: string }
  /** Of the busiest minute of the last hour. */
  requests: number
  /** In the whole hour: answered with 429. */
  refused: number
}

/** The users who came nearest to their limit in the last hour. Of a very busy hour, in its newest part. */
export async function listRateLimitUse(
  scope: Scope,
  now: Date,
  limit: number,
): Promise<RateLimitUse[]> {
  const hour = { from: now.getTime() - (now.getTime() % MINUTE_MS) - 59 * MINUTE_MS, until: null }
  const from = await searchableFrom(scope, hour)
  const rows = await select<{
    user_id: string
    full_name: string | null
    busiest: number
    refused: number
  }>(
    scope.sql,
    `select busy.user_id, users.full_name, busy.busiest, busy.refused from (
       select user_id, max(requests) as busiest, sum(refused) as refused from (
         select user_id, ${bucketOf('created_at')} as minute, count(*) as requests, count(case when status = 429 then 1 end) as refused
         from request_log where account_id = ? and created_at >= ? group by 1, 2
       ) as minutes group by user_id order by 2 desc, 1 limit ?
     ) as busy left join users on users.id = busy.user_id order by busy.busiest desc, busy.user_id`,
    [from, MINUTE_MS, scope.accountId, from, limit],
  )
  return rows.map((row) => ({
    user: { id: row.user_id, fullName: row.full_name ?? 'A former user' },
    requests: Number(row.busiest),
    refused: Number(row.refused),
  }))
}

const BATCH_ROWS = 1_000

/** All that match, the newest first, a batch at a time: memory does not grow with their number, and no statement searches more than a page does. */
export async function* eachMatch(
  scope: Scope,
  filter: RequestFilter,
): AsyncGenerator<RequestEntry[]> {
  for (let { until } = filter; ; ) {
    const part = await searchable(scope, { ...filter, until })
    yield* eachRequest(scope, part, BATCH_ROWS)
    if (part.from <= filter.from) return
    until = part.from
  }
}

/** Has the API ever been asked anything, as far as the log knows? */
export async function hasRequests(scope: Scope): Promise<boolean> {
  return (await scope.rows('request_minutes').first('minute')) !== undefined
}
