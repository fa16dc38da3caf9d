/** Statistics of API requests: number, statuses, durations. Up to some ten thousand requests it
 *  reads the log, beyond that the counts per minute. Filters need the log: with too many requests,
 *  they search only the newest. */
import type { Scope } from '../database/scope.ts'
import { select } from '../database/statements.ts'
import {
  eachRequest,
  matchingRequests,
  type RequestEntry,
  type RequestFilter,
} from '../request-log.ts'
import { BINS, binColumns, binEdges, HOUR_MS, MINUTE_MS } from './request-counts.ts'

/** Requests read without a filter. Reading takes about 50 ms. */
const MAX_READ_REQUESTS = 50_000
/** Requests searched with a filter. */
export const MAX_SEARCHED_REQUESTS = 200_000

export interface Bucket {
  /** Epoch milliseconds, like all times of records. */
  startsAt: number
  /** Statuses below 400. */
  ok: number
  clientErrors: number
  serverErrors: number
}

/** Milliseconds, accurate to a few per cent. */
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
  /** Requests by operation and status. */
  operations: OperationCount[]
}

/** The newest part of a filter's range that can be searched; all of it without a filter. */
export async function toSearchable(scope: Scope, filter: RequestFilter): Promise<RequestFilter> {
  return isFiltered(filter) ? { ...filter, from: await findSearchableStart(scope, filter) } : filter
}

/** The start of the searchable part: at least one minute. */
export async function findSearchableStart(scope: Scope, filter: RequestFilter): Promise<number> {
  const { sql, bindings } = minutesInRange(scope, filter)
  const [found] = await select<{
    first: number | null
    newest: number | null
    total: number | null
  }>(
    scope.sql,
    `select min(case when running <= ${MAX_SEARCHED_REQUESTS} then minute end) as first,
       max(minute) as newest, max(running) as total
     from (
       select minute, sum(ok + client_errors + server_errors) over (order by minute desc) as running
       from request_minutes
       where ${sql}
     ) as minutes`,
    bindings,
  )
  if (Number(found?.total ?? 0) <= MAX_SEARCHED_REQUESTS) return filter.from
  return found?.first ?? found?.newest ?? filter.from
}

export function isFiltered({ from, until, ...rest }: RequestFilter): boolean {
  return Object.values(rest).some((value) => value !== undefined)
}

/** `width`: milliseconds per bucket. The last bucket ends at `end` and includes all later
 *  requests. */
export async function findTraffic(
  scope: Scope,
  filter: RequestFilter,
  width: number,
  end: number,
): Promise<Traffic> {
  const range = { ...filter, width, buckets: Math.max(1, Math.ceil((end - filter.from) / width)) }
  if (isFiltered(filter)) return readTraffic(scope, range)
  const counted = await countByMinutes(scope, range)
  const requests = counted.buckets.reduce(
    (sum, { ok, clientErrors, serverErrors }) => sum + ok + clientErrors + serverErrors,
    0,
  )
  if (requests <= MAX_READ_REQUESTS) return readTraffic(scope, range)
  return toTraffic(counted, await countOperations(scope, filter))
}

type Range = RequestFilter & { width: number; buckets: number }

interface Counted {
  buckets: Bucket[]
  bins: Bin[]
}

/** A number of requests with durations from `low` to `high`, in milliseconds. */
export interface Bin {
  requests: number
  low: number
  high: number
}

function toTraffic({ buckets, bins }: Counted, operations: OperationCount[]): Traffic {
  const sum = (name: 'ok' | 'clientErrors' | 'serverErrors'): number =>
    buckets.reduce((total, bucket) => total + bucket[name], 0)
  const [clientErrors, serverErrors] = [sum('clientErrors'), sum('serverErrors')]
  const requests = sum('ok') + clientErrors + serverErrors
  const durations =
    requests === 0
      ? null
      : {
          p50: percentile(bins, 0.5),
          p95: percentile(bins, 0.95),
          p99: percentile(bins, 0.99),
        }
  return { buckets, requests, clientErrors, serverErrors, durations, operations }
}

/** Nearest rank, interpolated in its bin. */
export function percentile(bins: Bin[], share: number): number {
  const rank = Math.ceil(share * bins.reduce((total, { requests }) => total + requests, 0))
  let before = 0
  for (const { requests, low, high } of bins) {
    if (before + requests >= rank)
      return requests === 1 ? low : low + ((high - low) * (rank - before - 1)) / (requests - 1)
    before += requests
  }
  return 0
}

/** The cast is for SQLite, where numbers from JavaScript are not integers. */
export const toBucket = (column: string): string => `cast(floor((${column} - ?) / ?) as integer)`

function emptyBuckets({ from, width, buckets }: Range): Bucket[] {
  return Array.from({ length: buckets }, (_, index) => ({
    startsAt: from + index * width,
    ok: 0,
    clientErrors: 0,
    serverErrors: 0,
  }))
}

function minutesInRange(
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

async function countByMinutes(scope: Scope, range: Range): Promise<Counted> {
  const { sql, bindings } = minutesInRange(scope, range)
  const sums = ['ok', 'client_errors', 'server_errors', ...binColumns]
    .map((column) => `sum(${column}) as ${column}`)
    .join(', ')
  const rows = await select<MinuteRow>(
    scope.sql,
    `select ${toBucket('minute')} as bucket, ${sums} from request_minutes where ${sql} group by 1`,
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
    const [low, high] = binEdges(bin)
    return { requests: rows.reduce((total, row) => total + Number(row[`d${bin}`]), 0), low, high }
  })
  return { buckets, bins }
}

/** Reads whole hours, and the minutes before and after them. */
async function countOperations(
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
  const part = `select operation_id, status, requests from request_counts
     where account_id = ? and span_ms = ? and starts_at >= ? and starts_at < ?`
  const rows = await select<{ operation_id: string; status: number; requests: number }>(
    scope.sql,
    `select operation_id, status, sum(requests) as requests
     from (${parts.map(() => part).join(' union all ')}) as counted
     group by 1, 2`,
    parts.flatMap((part) => [scope.accountId, ...part]),
  )
  return rows.map((row) => ({
    operationId: row.operation_id || null,
    status: row.status,
    requests: Number(row.requests),
  }))
}

/** Bins that are 4 % wide. */
const DURATION_BIN = `cast(floor(
  ln(cast(case when duration_ms < 0.01 then 0.01 else duration_ms end as double precision)) * 25
) as integer)`

/** Columns that a part does not have are null. */
interface ReadRow {
  part: 'buckets' | 'durations' | 'operations'
  bucket: number
  status: number
  operation_id: string | null
  requests: number
  low: number
  high: number
}

/** Reads the log once for all parts. */
async function readTraffic(scope: Scope, range: Range): Promise<Traffic> {
  const { sql, bindings } = matchingRequests(scope, range)
  const none = 'cast(null as double precision)'
  const rows = await select<ReadRow>(
    scope.sql,
    `with found as materialized (
       select ${toBucket('created_at')} as bucket, status, duration_ms, operation_id
       from request_log
       where ${sql}
     ), counted as (
       select bucket, status, operation_id, count(*) as requests
       from found
       group by bucket, status, operation_id
       union all
       select ${toBucket('created_at')}, status, operation_id, repeats
       from request_log
       where repeats > 0 and id in (select id from request_log where ${sql} and status = 429)
     ), binned as (
       select count(*) as requests, min(duration_ms) as low, max(duration_ms) as high
       from found
       group by ${DURATION_BIN}
     )
     select 'buckets' as part, bucket, status, cast(null as text) as operation_id,
       sum(requests) as requests, ${none} as low, ${none} as high
     from counted
     group by bucket, status
     union all
     select 'durations', null, null, null, requests, low, high
     from binned
     union all
     select 'operations', null, status, operation_id, sum(requests), null, null
     from counted
     group by status, operation_id
     order by low`,
    [range.from, range.width, ...bindings, range.from, range.width, ...bindings],
  )
  const rowsIn = (part: ReadRow['part']): ReadRow[] =>
    rows
      .filter((row) => row.part === part)
      .map((row) => ({ ...row, requests: Number(row.requests) }))
  const buckets = emptyBuckets(range)
  for (const row of rowsIn('buckets')) {
    const bucket = buckets[Math.min(row.bucket, buckets.length - 1)]
    if (bucket)
      bucket[row.status < 400 ? 'ok' : row.status < 500 ? 'clientErrors' : 'serverErrors'] +=
        row.requests
  }
  const operations = rowsIn('operations').map((row) => ({
    operationId: row.operation_id,
    status: row.status,
    requests: row.requests,
  }))
  return toTraffic({ buckets, bins: rowsIn('durations') }, operations)
}

const BATCH_ROWS = 1_000

/** All matching requests in batches, newest first. No statement searches more than the searchable
 *  part. */
export async function* eachMatch(
  scope: Scope,
  filter: RequestFilter,
): AsyncGenerator<RequestEntry[]> {
  for (let { until } = filter; ; ) {
    const part = await toSearchable(scope, { ...filter, until })
    yield* eachRequest(scope, part, BATCH_ROWS)
    if (part.from <= filter.from) return
    until = part.from
  }
}

/** Does the log have any request of the account? */
export async function hasRequests(scope: Scope): Promise<boolean> {
  return (await scope.rows('request_minutes').first('minute')) !== undefined
}
