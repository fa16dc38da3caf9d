/** The log of API requests that the console shows. Entries stay in memory until the next batch is
 *  written. */

import type { Logger } from 'pino'
import { type Principal, updateLastUsed } from '../records/api-keys.ts'
import { isUnavailable } from '../records/database/errors.ts'
import type { Db } from '../records/database/open.ts'
import { relaxedTransaction } from '../records/database/transaction.ts'
import { newId } from '../records/ids.ts'
import {
  CUT,
  insertRequests,
  type LoggedRequest,
  MAX_PATH_CHARACTERS,
  type StoredHeader,
} from '../records/request-log.ts'
import { repeat } from '../runtime/run-loop.ts'
import type { Context, Next } from './context.ts'
import { maskSecrets } from './mask-secrets.ts'
import { DailyBytes, RepeatFinder } from './request-log-limits.ts'

const FLUSH_MS = 1_000
const FLUSH_ENTRIES = 500
/** The most entries in memory. While the database is slow or not available, the oldest entries are
 *  dropped: serving requests is more important. */
const MAX_ENTRIES = 20_000
const MAX_BODY_BYTES = 64 * 1024
/** The most characters that the names and values of one message may have together. */
const MAX_HEADER_CHARACTERS = 8 * 1024
const SECRET_HEADER =
  /auth|cookie|token|secret|passw|credential|session|signature|jwt|cert|api-?key|access-?key|private-?key/i

export interface RequestLog {
  middleware(ctx: Context, next: Next): Promise<void>
  /** Entries that are not written yet, and entries dropped since the start. */
  stats(): { waiting: number; dropped: number }
  /** Writes the remaining entries. */
  stop(): Promise<void>
}

interface RequestLogOptions {
  db: Db
  log: Logger
  now: () => Date
  /** The most bytes of bodies, headers and paths of one account in a day (UTC) on this node. Above
   *  this limit, bodies and headers are left out. */
  maxBytesPerDay: number
}

export function startRequestLog({ db, log, now, maxBytesPerDay }: RequestLogOptions): RequestLog {
  const repeats = new RepeatFinder()
  const dailyBytes = new DailyBytes(maxBytesPerDay)
  /** Oldest first. */
  let entries: LoggedRequest[] = []
  let dropped = 0
  const flushes = repeat(FLUSH_MS, flush, (error) =>
    log.error({ err: error }, 'The request log could not be written'),
  )

  function add(entry: LoggedRequest): void {
    entries.push(entry)
    if (entries.length > MAX_ENTRIES) {
      entries.shift()
      dropped++
    }
    // Not `>=`: while the database is unavailable, every further request would cause a flush.
    if (entries.length === FLUSH_ENTRIES) flushes.wake()
  }

  async function flush(): Promise<void> {
    if (entries.length === 0) return
    const batch = entries
    entries = []
    try {
      await write(db, batch)
    } catch (error) {
      if (isUnavailable(error)) putBack(batch, error)
      else await writeEach(batch)
    }
  }

  /** One entry that the database refuses must not block the others. */
  async function writeEach(batch: LoggedRequest[]): Promise<void> {
    for (const [index, entry] of batch.entries()) {
      try {
        await write(db, [entry])
      } catch (error) {
        if (isUnavailable(error)) return putBack(batch.slice(index), error)
        dropped++
        log.error({ err: error, requestId: entry.requestId }, 'A request could not be logged')
      }
    }
  }

  function putBack(batch: LoggedRequest[], error: unknown): void {
    const all = [...batch, ...entries]
    entries = all.slice(-MAX_ENTRIES)
    dropped += all.length - entries.length
    log.warn(
      { err: error, entries: entries.length },
      'The request log could not be written; trying again',
    )
  }

  return {
    async middleware(ctx, next) {
      const start = performance.now()
      const at = now().getTime()
      await next()
      const principal: Principal | undefined = ctx.state.principal ?? ctx.state.rejectedPrincipal
      if (principal === undefined) return
      const durationMs = Math.round((performance.now() - start) * 1000) / 1000
      const entry = toEntry(ctx, principal, at, durationMs)
      const repeatOf = repeats.find(entry)
      add(repeatOf === undefined ? withinLimit(entry, dailyBytes, now()) : { ...entry, repeatOf })
    },
    stats: () => ({ waiting: entries.length, dropped }),
    async stop() {
      await flushes.stop()
      await flush()
    },
  }
}

function toEntry(
  ctx: Context,
  principal: Principal,
  at: number,
  durationMs: number,
): LoggedRequest {
  return {
    id: newId(),
    accountId: principal.accountId,
    userId: principal.userId,
    apiKeyId: principal.keyId,
    requestId: ctx.state.requestId,
    operationId: ctx.state.operationId ?? null,
    method: ctx.method,
    path: toStoredPath(ctx.url),
    status: ctx.status,
    durationMs,
    ip: ctx.ip,
    requestBody: toStoredBody(withoutHeaderValues(ctx.state)),
    responseBody: toStoredBody(typeof ctx.body === 'string' ? ctx.body : undefined),
    requestHeaders: toStoredHeaders(pairsOf(ctx.req.rawHeaders)),
    responseHeaders: toStoredHeaders(Object.entries(ctx.response.headers)),
    omittedBytes: 0,
    at,
  }
}

/** The entry, without its bodies and headers if they would exceed the daily limit. */
function withinLimit(entry: LoggedRequest, dailyBytes: DailyBytes, now: Date): LoggedRequest {
  const { accountId, path, requestBody, responseBody, requestHeaders, responseHeaders } = entry
  const bodyBytes = sizeOf(requestBody, responseBody)
  const allBytes = bodyBytes + sizeOf(path, requestHeaders, responseHeaders)
  if (dailyBytes.use(accountId, allBytes, now)) return entry
  const none = {
    requestBody: null,
    responseBody: null,
    requestHeaders: null,
    responseHeaders: null,
  }
  return { ...entry, ...none, omittedBytes: bodyBytes }
}

function sizeOf(...texts: (string | null)[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0)
}

async function write(db: Db, batch: LoggedRequest[]): Promise<void> {
  const uses = batch.map(({ apiKeyId, at }) => ({ id: apiKeyId, at }))
  // First, because it may be repeated when the transaction fails.
  await updateLastUsed(db, uses)
  await relaxedTransaction(db, (trx) => insertRequests(trx, batch))
}

/** Webhooks have headers, whose values nobody may read. Text that is not JSON is left out: it may
 *  have values anywhere. */
function withoutHeaderValues({
  operationId,
  requestText,
}: Pick<Context['state'], 'operationId' | 'requestText'>): string | undefined {
  const hasHeaders = operationId === 'createWebhook' || operationId === 'updateWebhook'
  if (!hasHeaders || requestText === undefined) return requestText
  try {
    return JSON.stringify(JSON.parse(requestText), (name, value) =>
      name === 'headers' ? hideValues(value) : value,
    )
  } catch {
    return undefined
  }
}

/** The names of headers that have their form, without any values. */
function hideValues(headers: unknown): unknown {
  const list: { name?: unknown }[] = Array.isArray(headers) ? headers : []
  return list.map((header) => ({ name: header?.name, value: '…' }))
}

function toStoredPath(url: string): string {
  const path = maskSecrets(url)
  return path.length <= MAX_PATH_CHARACTERS ? path : `${path.slice(0, MAX_PATH_CHARACTERS)}${CUT}`
}

/** Masks API keys and signing secrets, and cuts the text to 64 KiB of UTF-8. */
function toStoredBody(text: string | undefined): string | null {
  if (text === undefined) return null
  // Each UTF-16 unit takes at least one byte of UTF-8, so no more units can fit. PostgreSQL stores
  // no NUL.
  const start = text.slice(0, MAX_BODY_BYTES).replaceAll('\0', '\uFFFD')
  const storable = maskSecrets(start)
  // A unit takes at most three bytes.
  if (storable.length * 3 <= MAX_BODY_BYTES) return storable
  const cut = Buffer.from(storable).subarray(0, MAX_BODY_BYTES).toString()
  // A character that was cut in two has become U+FFFD.
  return cut.replace(/\uFFFD$/, '')
}

/** `rawHeaders` of Node.js: names and values in turn. */
function pairsOf(rawHeaders: string[]): StoredHeader[] {
  return rawHeaders.flatMap((name, index): StoredHeader[] =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : [],
  )
}

/** The first headers as JSON, up to `MAX_HEADER_CHARACTERS`. Masks secrets. */
function toStoredHeaders(headers: [name: string, value: unknown][]): string {
  const stored: StoredHeader[] = []
  let characters = 0
  for (const [name, value] of headers) {
    const text = SECRET_HEADER.test(name) ? '…' : maskSecrets(String(value))
    characters += name.length + text.length
    if (characters > MAX_HEADER_CHARACTERS) break
    stored.push([name, text])
  }
  return JSON.stringify(stored)
}
