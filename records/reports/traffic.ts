/** Statistics of the API requests in a time range: number, statuses, durations. Without a filter
 *  besides the range, they come from the request log, or from the counts per minute and hour if the
 *  range has more than `MAX_READ_REQUESTS`. With a filter, they come from the log. Call
 *  `toSearchable` first: it cuts the range to the newest `maxSearched` requests. */
import type { Scope } from '../database/scope.ts'
import { type Condition, select } from '../database/statements.ts'
import { type Bin, binColumns, percentile, toBins } from '../duration-bins.ts'
import {
  eachRequest,
  matchingRequests,
  type RequestEntry,
  type RequestFilter,
} from '../request-log.ts'
import { HOUR_MS, MINUTE_MS } from '../time-units.ts'
import { type StatusColumn, statusColumn } from './request-counts.ts'

/** The most requests that are read from the log without a filter. Reading them takes about
 *  50 ms. */
const MAX_READ_REQUESTS = 50_000
/** The most requests that a filter searches, unless one minute has more. */
const MAX_SEARCHED_REQUESTS = 200_000
/** The most requests that a filter searches if it reads the rows: the index has not all of its columns. */
const MAX_SEARCHED_ROWS = 50_000
/** The most requests whose bodies are searched. */
const MAX_SEARCHED_BODIES = 3_000
const REQUESTS_SQL = 'ok + client_errors + server_errors'

export interface Bucket {
  /** Epoch milliseconds, like all times of records. */
  startsAt: number
  /** Statuses below 400. */
  ok: number
  clientErrors: number
  serverErrors: number
}

/** Milliseconds, accurate to a few per cent. */
interface Durations {
  p50: number
  p95: number
  p99: number
}

interface OperationCount {
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

/** The filter with its range cut to start at `findSearchableStart`. A filter without other
 *  conditions than its range stays as it is. */
export async function toSearchable(scope: Scope, filter: RequestFilter): Promise<RequestFilter> {
  return isFiltered(filter) ? { ...filter, from: await findSearchableStart(scope, filter) } : filter
}

function maxSearched({ text, pathContains, method, ip, requestId }: RequestFilter): number {
  const readsRows = [text, pathContains, method, ip, requestId].some((value) => value !== undefined)
  return readsRows ? MAX_SEARCHED_ROWS : MAX_SEARCHED_REQUESTS
}

/** The sum of the requests whose bodies a filter searches. */
function bodiesSql({ text, status: [least] = [0, 0] }: RequestFilter): string {
  if (text === undefined) return '0'
  return least < 400 ? REQUESTS_SQL : 'client_errors + server_errors'
}

/** The start of the newest part of the range that a search can read. The part has at least one minute, even if that
 *  minute has too many requests. */
export async function findSearchableStart(scope: Scope, filter: RequestFilter): Promise<number> {
  const { sql, bindings } = minutesInRange(scope, filter)
  const most = maxSearched(filter)
  const [found] = await select<{
    first: number | null
    newest: number | null
    requests: number | null
    bodies: number | null
  }>(
    scope.sql,
    `select min(case when requests <= ${most} and bodies <= ${MAX_SEARCHED_BODIES} then minute end) as first,
       max(minute) as newest, max(requests) as requests, max(bodies) as bodies
     from (
       select minute, sum(${REQUESTS_SQL}) over (order by minute desc) as requests,
         sum(${bodiesSql(filter)}) over (order by minute desc) as bodies
       from request_minutes
       where ${sql}
     ) as minutes`,
    bindings,
  )
  const { requests, bodies } = found ?? {}
  if (Number(requests ?? 0) <= most && Number(bodies ?? 0) <= MAX_SEARCHED_BODIES)
    return filter.from
  return found?.first ?? found?.newest ?? filter.from
}

function isFiltered({ from, until, ...conditions }: RequestFilter): boolean {
  return Object.values(conditions).some((value) => value !== undefined)
}

/** The buckets reach from the start of the filter to `end`. The last one also counts later
 *  requests. */
export async function findTraffic(
  scope: Scope,
  filter: RequestFilter,
  bucketMs: number,
  end: number,
): Promise<Traffic> {
  const bucketCount = Math.max(1, Math.ceil((end - filter.from) / bucketMs))
  const range = { ...filter, bucketMs, bucketCount }
  if (isFiltered(filter)) return readTraffic(scope, range)
  const { buckets, bins } = await countByMinutes(scope, range)
  if (sumBuckets(buckets).requests <= MAX_READ_REQUESTS) return readTraffic(scope, range)
  return toTraffic(buckets, bins, await countOperations(scope, filter))
}

type Range = RequestFilter & { bucketMs: number; bucketCount: number }

function toTraffic(buckets: Bucket[], bins: Bin[], operations: OperationCount[]): Traffic {
  const total = sumBuckets(buckets)
  const durations =
    total.requests === 0
      ? null
      : {
          p50: percentile(bins, 0.5),
          p95: percentile(bins, 0.95),
          p99: percentile(bins, 0.99),
        }
  return { buckets, ...total, durations, operations }
}

function sumBuckets(
  buckets: Bucket[],
): Pick<Traffic, 'requests' | 'clientErrors' | 'serverErrors'> {
  const total = { requests: 0, clientErrors: 0, serverErrors: 0 }
  for (const { ok, clientErrors, serverErrors } of buckets) {
    total.requests += ok + clientErrors + serverErrors
    total.clientErrors += clientErrors
    total.serverErrors += serverErrors
  }
  return total
}

/** SQL for the index of a bucket. Its parameters are the start of the first bucket, and the length
 *  of each. The cast is for SQLite, where numbers from JavaScript are not integers. */
export const bucketSql = (column: string): string => `cast(floor((${column} - ?) / ?) as integer)`

const BUCKET_FIELDS = {
  ok: 'ok',
  client_errors: 'clientErrors',
  server_errors: 'serverErrors',
} as const satisfies Record<StatusColumn, keyof Bucket>

/** `counts`: numbers of requests, each with the index of its bucket. */
function toBuckets(
  { from, bucketMs, bucketCount }: Range,
  counts: { bucket: number; column: StatusColumn; requests: number }[],
): Bucket[] {
  const buckets = Array.from({ length: bucketCount }, (_, index) => ({
    startsAt: from + index * bucketMs,
    ok: 0,
    clientErrors: 0,
    serverErrors: 0,
  }))
  for (const { bucket: index, column, requests } of counts) {
    const bucket = buckets[Math.min(index, bucketCount - 1)]
    if (bucket) bucket[BUCKET_FIELDS[column]] += requests
  }
  return buckets
}

function minutesInRange({ accountId }: Scope, { from, until }: RequestFilter): Condition {
  return until === null
    ? { sql: 'account_id = ? and minute >= ?', bindings: [accountId, from] }
    : { sql: 'account_id = ? and minute >= ? and minute < ?', bindings: [accountId, from, until] }
}

type MinuteRow = { bucket: number } & Record<StatusColumn, number> & Record<string, number>

async function countByMinutes(
  scope: Scope,
  range: Range,
): Promise<{ buckets: Bucket[]; bins: Bin[] }> {
  const { sql, bindings } = minutesInRange(scope, range)
  const statusColumns = Object.keys(BUCKET_FIELDS) as StatusColumn[]
  const sums = [...statusColumns, ...binColumns]
    .map((column) => `sum(${column}) as ${column}`)
    .join(', ')
  const rows = await select<MinuteRow>(
    scope.sql,
    `select ${bucketSql('minute')} as bucket, ${sums} from request_minutes where ${sql} group by 1`,
    [range.from, range.bucketMs, ...bindings],
  )
  const counts = rows.flatMap((row) =>
    statusColumns.map((column) => ({
      bucket: row.bucket,
      column,
      requests: Number(row[column]),
    })),
  )
  const bins = toBins((column) => rows.reduce((total, row) => total + Number(row[column]), 0))
  return { buckets: toBuckets(range, counts), bins }
}

/** Reads the counts of whole hours, and of the minutes before and after these hours. */
async function countOperations(
  scope: Scope,
  { from, until }: RequestFilter,
): Promise<OperationCount[]> {
  const end = until ?? Number.MAX_SAFE_INTEGER
  const hoursStart = Math.ceil(from / HOUR_MS) * HOUR_MS
  const hoursEnd = until === null ? end : Math.floor(until / HOUR_MS) * HOUR_MS
  const parts =
    hoursStart < hoursEnd
      ? [
          [MINUTE_MS, from, hoursStart],
          [HOUR_MS, hoursStart, hoursEnd],
          [MINUTE_MS, hoursEnd, end],
        ]
      : [[MINUTE_MS, from, end]]
  const countsInPart = `select operation_id, status, requests from request_counts
     where account_id = ? and span_ms = ? and starts_at >= ? and starts_at < ?`
  const rows = await select<{ operation_id: string; status: number; requests: number }>(
    scope.sql,
    `select operation_id, status, sum(requests) as requests
     from (${parts.map(() => countsInPart).join(' union all ')}) as counted
     group by 1, 2`,
    parts.flatMap((part) => [scope.accountId, ...part]),
  )
  return rows.map((row) => ({
    operationId: row.operation_id || null,
    status: row.status,
    requests: Number(row.requests),
  }))
}

/** SQL for the index of the bin of a duration. A bin ends 4 % above its start. */
const DURATION_BIN = `cast(floor(
  ln(cast(case when duration_ms < 0.01 then 0.01 else duration_ms end as double precision)) * 25
) as integer)`

/** A row of one of the three parts that `readTraffic` selects. Columns that a part does not have
 *  are null. */
interface ReadRow {
  part: 'buckets' | 'durations' | 'operations'
  bucket: number
  status: number
  operation_id: string | null
  requests: number
  low: number
  high: number
}

/** Reads all parts in one statement, from the same requests. Only of requests with 429 it reads the rows, too:
 *  their `repeats` count later requests, which the log does not store. */
async function readTraffic(scope: Scope, range: Range): Promise<Traffic> {
  const { sql, bindings } = matchingRequests(scope, range)
  const none = 'cast(null as double precision)'
  const rows = await select<ReadRow>(
    scope.sql,
    `with found as materialized (
       select ${bucketSql('created_at')} as bucket, status, duration_ms, operation_id,
         case when status = 429 then id end as refused_id
       from request_log
       where ${sql}
     ), counted as (
       select bucket, status, operation_id, count(*) as requests
       from found
       group by bucket, status, operation_id
       union all
       select bucket, found.status, found.operation_id, repeats
       from found join request_log on account_id = ? and id = refused_id
       where found.status = 429 and repeats > 0
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
    [range.from, range.bucketMs, ...bindings, scope.accountId],
  )
  const rowsIn = (part: ReadRow['part']): ReadRow[] =>
    rows
      .filter((row) => row.part === part)
      .map((row) => ({ ...row, requests: Number(row.requests) }))
  const counts = rowsIn('buckets').map(({ bucket, status, requests }) => ({
    bucket,
    column: statusColumn(status),
    requests,
  }))
  const bins = rowsIn('durations').map(({ requests, low, high }) => ({
    count: requests,
    low,
    high,
  }))
  const operations = rowsIn('operations').map((row) => ({
    operationId: row.operation_id,
    status: row.status,
    requests: row.requests,
  }))
  return toTraffic(toBuckets(range, counts), bins, operations)
}

const BATCH_ROWS = 1_000

/** All matching requests in batches, newest first. Searches the range part by part, so that no
 *  statement searches too many requests. */
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

export async function hasRequests(scope: Scope): Promise<boolean> {
  return (await scope.rows('request_minutes').first('minute')) !== undefined
}
