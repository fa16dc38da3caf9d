/** The request log, which the API Dashboard shows. */
import { insertText } from './database/inserts.ts'
import { UNPREPARED } from './database/knex-internals.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, inBatches, type Sql, select } from './database/statements.ts'
import type { Source } from './database/transaction.ts'
import { lowestIdAt, timeOfId } from './ids.ts'
import { daysBefore, type RemovalRun, removeRows } from './removal-run.ts'
import { countRequests } from './reports/request-counts.ts'
import { batchesBelow, dropWeeks } from './week-removal.ts'

/** The API Dashboard shows at least this many days. */
export const REQUEST_LOG_DAYS = 30
const BATCH_ROWS = 500
/** A longer path is cut, and `CUT` follows, which no URL contains. */
export const MAX_PATH_CHARACTERS = 2 * 1024
export const CUT = '…'
/** Fewer than in other tables, because each row may have 128 KiB of bodies. */
const REMOVAL_BATCH_ROWS = 100
/** The time of a request can differ by this from the time in its ID: see `newId`. */
const CLOCK_TOLERANCE_MS = 60_000
/** A search skips longer bodies. */
export const MAX_SEARCHED_BODY_BYTES = 16 * 1024

/** Secrets are masked. */
export type StoredHeader = [name: string, value: string]

/** A request with an API key of the account. */
export interface LoggedRequest {
  id: string
  accountId: string
  userId: string
  apiKeyId: string
  requestId: string
  operationId: string | null
  method: string
  /** Includes the query string. At most `MAX_PATH_CHARACTERS`, then `CUT`. */
  path: string
  status: number
  durationMs: number
  ip: string
  requestBody: string | null
  responseBody: string | null
  /** JSON: `StoredHeader[]`. Null: left out, like the bodies. */
  requestHeaders: string | null
  responseHeaders: string | null
  /** The size of bodies that are left out: with them, the account would exceed its daily limit of
   *  logged bytes. */
  omittedBytes: number
  /** The ID of the earlier request whose `repeats` counts this one. This one gets no row. */
  repeatOf?: string
  /** The time of its arrival, in epoch milliseconds. */
  at: number
}

/** Logs and counts requests. Call it in a transaction, so that the log and the counts agree. */
export async function insertRequests(source: Source, requests: LoggedRequest[]): Promise<void> {
  const { sql } = source
  const stored = requests.filter(({ repeatOf }) => repeatOf === undefined)
  const rows = stored.map((request) => ({
    id: request.id,
    account_id: request.accountId,
    user_id: request.userId,
    api_key_id: request.apiKeyId,
    request_id: request.requestId,
    operation_id: request.operationId,
    method: request.method,
    path: request.path,
    status: request.status,
    duration_ms: request.durationMs,
    ip: request.ip,
    request_body: request.requestBody,
    response_body: request.responseBody,
    request_headers: request.requestHeaders,
    response_headers: request.responseHeaders,
    omitted_bytes: request.omittedBytes,
    created_at: request.at,
  }))
  for (const batch of inBatches(rows, BATCH_ROWS)) await insertRows(sql, batch)
  await countRepeats(sql, requests)
  await countRequests(source, requests)
}

async function countRepeats(sql: Sql, requests: LoggedRequest[]): Promise<void> {
  const repeats = requests.filter(({ repeatOf }) => repeatOf !== undefined)
  // Each node updates only rows that it has inserted, so two nodes cannot deadlock.
  for (const [id, [first, ...others]] of Map.groupBy(repeats, ({ repeatOf }) => repeatOf))
    await sql('request_log')
      .where({ account_id: first?.accountId, id })
      .increment('repeats', 1 + others.length)
}

async function insertRows(sql: Sql, rows: Record<string, string | number | null>[]): Promise<void> {
  const text = insertText('request_log', Object.keys(rows[0] ?? {}), rows.length)
  await sql.raw(text, rows.flatMap(Object.values)).options(UNPREPARED)
}

export async function removeOldRequests(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog)
  await dropWeeks(run, { tables: ['request_log'], below: lowestIdAt(until - CLOCK_TOLERANCE_MS) })
  const createdBefore = timeOfId(await batchesBelow(run, 'request_log', lowestIdAt(until)))
  await removeRows(run, {
    table: 'request_log',
    key: ['id'],
    condition: (rows) => rows.where('created_at', '<', createdBefore),
    batchRows: REMOVAL_BATCH_ROWS,
  })
}

/** A request matches when it meets each condition that is set. */
export interface RequestFilter {
  /** Epoch milliseconds, a whole minute, inclusive. */
  from: number
  /** Exclusive. Null: no end. */
  until: number | null
  /** Inclusive. */
  status?: readonly [lowest: number, highest: number]
  method?: string
  operationId?: string
  /** Case-insensitive. */
  pathContains?: string
  /** Do not search the query string: a user who cannot see it must not discover its content. */
  isQueryHidden?: true
  userId?: string
  apiKeyId?: string
  ip?: string
  requestId?: string
  minDurationMs?: number
  /** In the path, or a body of at most `MAX_SEARCHED_BODY_BYTES`. Case-insensitive. */
  text?: string
  /** One of these operations: a user who cannot see a body must not discover its content. */
  operationIds?: string[]
}

/** A request without its bodies. */
export interface RequestEntry {
  id: string
  requestId: string
  operationId: string | null
  method: string
  /** Includes the query string. */
  path: string
  status: number
  durationMs: number
  ip: string
  user: { id: string; fullName: string }
  apiKey: { id: string; name: string; tokenPrefix: string }
  /** How many later requests with the same key got 429 within a minute, as this one did. They are
   *  not stored. */
  repeats: number
  /** The size of bodies that were left out: see `LoggedRequest`. */
  omittedBytes: number
  /** The time of its arrival, in epoch milliseconds. */
  createdAt: number
}

export interface RequestDetail extends RequestEntry {
  /** At most 64 KiB. Null: there was no body, or it was left out. */
  requestBody: string | null
  responseBody: string | null
  /** Null: left out, or an earlier version of the service stored the request. */
  requestHeaders: StoredHeader[] | null
  responseHeaders: StoredHeader[] | null
}

interface RequestRow {
  id: string
  request_id: string
  operation_id: string | null
  method: string
  path: string
  status: number
  duration_ms: number
  ip: string
  user_id: string
  user_name: string | null
  api_key_id: string
  key_name: string | null
  key_prefix: string | null
  repeats: number
  omitted_bytes: number
  request_body: string | null
  response_body: string | null
  request_headers: string | null
  response_headers: string | null
  created_at: number
}

function fromRow(row: RequestRow): RequestEntry {
  return {
    id: row.id,
    requestId: row.request_id,
    operationId: row.operation_id,
    method: row.method,
    path: row.path,
    status: row.status,
    durationMs: row.duration_ms,
    ip: row.ip,
    user: { id: row.user_id, fullName: row.user_name ?? 'A former user' },
    apiKey: {
      id: row.api_key_id,
      name: row.key_name ?? 'A former key',
      tokenPrefix: row.key_prefix ?? '',
    },
    repeats: row.repeats,
    omittedBytes: row.omitted_bytes,
    createdAt: row.created_at,
  }
}

const COLUMNS = [
  'id',
  'request_id',
  'operation_id',
  'method',
  'path',
  'status',
  'duration_ms',
  'ip',
  'user_id',
  'api_key_id',
  'repeats',
  'omitted_bytes',
  'created_at',
]
  .map((column) => `logged.${column}`)
  .join(', ')
const NAME_COLUMNS =
  'users.full_name as user_name, api_keys.name as key_name, api_keys.token_prefix as key_prefix'
const JOIN_NAMES =
  'left join users on users.account_id = logged.account_id and users.id = logged.user_id ' +
  'left join api_keys on api_keys.account_id = logged.account_id and api_keys.id = logged.api_key_id'

/** SQL: the path without its query string. 63 is the question mark: a literal one would be a
 *  placeholder. */
const PATH_WITHOUT_QUERY = {
  postgres: 'split_part(path, chr(63), 1)',
  sqlite: 'substr(path, 1, instr(path || char(63), char(63)) - 1)',
}

/** The condition of a filter on `request_log`. */
export function matchingRequests({ accountId, dialect }: Scope, filter: RequestFilter): Condition {
  const { from, until, status, pathContains, text, operationIds } = filter
  const conditions: [sql: string, ...bindings: (string | number)[]][] = [
    ['account_id = ?', accountId],
    ['created_at >= ?', from],
  ]
  if (until !== null) conditions.push(['created_at < ?', until])
  if (status) conditions.push(['status between ? and ?', ...status])
  if (filter.minDurationMs !== undefined)
    conditions.push(['duration_ms >= ?', filter.minDurationMs])
  const position = dialect === 'postgres' ? 'strpos' : 'instr'
  const contains = (searched: string): string => `${position}(lower(${searched}), ?) > 0`
  if (pathContains !== undefined) {
    const searched = filter.isQueryHidden ? PATH_WITHOUT_QUERY[dialect] : 'path'
    conditions.push([contains(searched), toLowerAscii(pathContains)])
  }
  if (text !== undefined) {
    const inBody = (body: string): string =>
      `(octet_length(${body}) <= ${MAX_SEARCHED_BODY_BYTES} and ${contains(body)})`
    const places = [contains('path'), inBody('request_body'), inBody('response_body')]
    const folded = toLowerAscii(text)
    conditions.push([`(${places.join(' or ')})`, ...places.map(() => folded)])
  }
  if (operationIds) {
    const marks = operationIds.map(() => '?').join(', ')
    conditions.push([`operation_id in (${marks || 'null'})`, ...operationIds])
  }
  const equal = {
    method: filter.method,
    operation_id: filter.operationId,
    user_id: filter.userId,
    api_key_id: filter.apiKeyId,
    ip: filter.ip,
    request_id: filter.requestId,
  }
  for (const [column, value] of Object.entries(equal))
    if (value !== undefined) conditions.push([`${column} = ?`, value])
  return {
    sql: conditions.map(([sql]) => sql).join(' and '),
    bindings: conditions.flatMap(([, ...bindings]) => bindings),
  }
}

/** As `lower` in SQLite. */
function toLowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** A page has only requests that are older, or only ones that are newer, than this request. */
export interface RequestCursor {
  createdAt: number
  id: string
}

interface RequestPage {
  limit: number
  olderThan?: RequestCursor
  newerThan?: RequestCursor
}

/** Newest first, also with `newerThan`, which selects the requests nearest to the cursor. */
export async function listRequests(
  scope: Scope,
  filter: RequestFilter,
  { limit, olderThan, newerThan }: RequestPage,
): Promise<RequestEntry[]> {
  const where = matchingRequests(scope, filter)
  const cursor = newerThan ?? olderThan
  const direction = newerThan ? 'asc' : 'desc'
  const beyond = cursor ? ` and (created_at, id) ${newerThan ? '>' : '<'} (?, ?)` : ''
  // The inner query selects only IDs: for most filters, it reads nothing but an index.
  const rows = await select<RequestRow>(
    scope.sql,
    `select ${COLUMNS}, ${NAME_COLUMNS} from (
       select account_id as found_account, id as found_id from request_log
       where ${where.sql}${beyond}
       order by created_at ${direction}, id ${direction}
       limit ?
     ) as found
     join request_log as logged on logged.account_id = found.found_account and logged.id = found.found_id
     ${JOIN_NAMES}
     order by logged.created_at desc, logged.id desc`,
    [...where.bindings, ...(cursor ? [cursor.createdAt, cursor.id] : []), limit],
  )
  return rows.map(fromRow)
}

/** All matching requests in batches, newest first. Memory does not grow with their number. */
export async function* eachRequest(
  scope: Scope,
  filter: RequestFilter,
  limit: number,
): AsyncGenerator<RequestEntry[]> {
  for (let olderThan: RequestCursor | undefined; ; ) {
    const entries = await listRequests(scope, filter, { limit, olderThan })
    if (entries.length > 0) yield entries
    if (entries.length < limit) return
    olderThan = entries.at(-1)
  }
}

export async function findRequest(scope: Scope, id: string): Promise<RequestDetail | undefined> {
  const [row] = await select<RequestRow>(
    scope.sql,
    `select ${COLUMNS}, logged.request_body, logged.response_body, logged.request_headers,
       logged.response_headers, ${NAME_COLUMNS}
     from request_log as logged
     ${JOIN_NAMES}
     where logged.account_id = ? and logged.id = ?`,
    [scope.accountId, id],
  )
  return (
    row && {
      ...fromRow(row),
      requestBody: row.request_body,
      responseBody: row.response_body,
      requestHeaders: parseHeaders(row.request_headers),
      responseHeaders: parseHeaders(row.response_headers),
    }
  )
}

function parseHeaders(text: string | null): StoredHeader[] | null {
  return text === null ? null : JSON.parse(text)
}

export interface LoggedError
  extends Pick<RequestEntry, 'id' | 'operationId' | 'status' | 'repeats' | 'createdAt'> {
  responseBody: string | null
}

/** The newest requests with an error, newest first. */
export async function listErrors(
  scope: Scope,
  filter: RequestFilter,
  limit: number,
): Promise<LoggedError[]> {
  const where = matchingRequests(scope, filter)
  const rows = await select<RequestRow>(
    scope.sql,
    `select logged.id, logged.operation_id, logged.status, logged.repeats, logged.created_at,
       logged.response_body
     from (
       select account_id as found_account, id as found_id from request_log
       where ${where.sql} and status >= 400
       order by created_at desc, id desc
       limit ?
     ) as found
     join request_log as logged on logged.account_id = found.found_account and logged.id = found.found_id
     order by logged.created_at desc, logged.id desc`,
    [...where.bindings, limit],
  )
  return rows.map((row) => ({ ...fromRow(row), responseBody: row.response_body }))
}

/** The newest request with the value of `X-Request-Id`, which the service has chosen: it contains the
 *  time of the request, so the search reads only the requests of these minutes. */
export async function findByRequestId(
  scope: Scope,
  requestId: string,
): Promise<RequestEntry | undefined> {
  const at = timeOfId(requestId)
  const period = { from: at - CLOCK_TOLERANCE_MS, until: at + CLOCK_TOLERANCE_MS }
  const [found] = await listRequests(scope, { ...period, requestId }, { limit: 1 })
  return found
}
