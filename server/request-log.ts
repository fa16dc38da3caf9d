/** The log of API requests that the console shows: buffered in memory and written in batches. */

import type { Logger } from 'pino'
import type { Principal } from '../auth/api-key.ts'
import { updateLastUsed } from '../records/api-keys.ts'
import { isUnavailable } from '../records/database/errors.ts'
import type { Db } from '../records/database/open.ts'
import { transaction } from '../records/database/transaction.ts'
import { insertRequests, type LoggedRequest } from '../records/request-log.ts'
import type { Context, Next } from './context.ts'

const FLUSH_MS = 1_000
const FLUSH_ROWS = 500
/** While the database is not available, the oldest entries beyond this are dropped: serving requests is
 *  more important. */
const MAX_WAITING = 20_000
const MAX_BODY_BYTES = 64 * 1024

export interface RequestLog {
  middleware(ctx: Context, next: Next): Promise<void>
  /** Writes the buffered entries. */
  flush(): Promise<void>
  stop(): Promise<void>
}

export function startRequestLog(db: Db, log: Logger): RequestLog {
  let waiting: LoggedRequest[] = []
  let flushing: Promise<void> = Promise.resolve()
  const timer = setInterval(flush, FLUSH_MS)
  timer.unref()

  function flush(): Promise<void> {
    flushing = flushing.then(writeWaiting)
    return flushing
  }

  async function writeWaiting(): Promise<void> {
    if (waiting.length === 0) return
    const batch = waiting
    waiting = []
    await write(batch)
  }

  async function write(batch: LoggedRequest[]): Promise<void> {
    const lastUse = new Map(batch.map(({ apiKeyId, at }) => [apiKeyId, at]))
    try {
      await transaction(db, async ({ sql }) => {
        await insertRequests(sql, batch)
        await updateLastUsed(
          sql,
          [...lastUse].map(([id, at]) => ({ id, at })),
        )
      })
    } catch (error) {
      if (isUnavailable(error)) {
        waiting = [...batch, ...waiting].slice(-MAX_WAITING)
        log.warn(
          { err: error, waiting: waiting.length },
          'The request log could not be written; trying again',
        )
      } else if (batch.length > 1) {
        // One entry that the database refuses must not block the others.
        for (const request of batch) await write([request])
      } else {
        log.error({ err: error, requestId: batch[0]?.requestId }, 'A request could not be logged')
      }
    }
  }

  return {
    async middleware(ctx, next) {
      const start = performance.now()
      const at = Date.now()
      await next()
      const principal: Principal | undefined = ctx.state.principal ?? ctx.state.rejected
      if (principal === undefined) return
      waiting.push({
        accountId: principal.accountId,
        userId: principal.userId,
        apiKeyId: principal.keyId,
        requestId: ctx.state.requestId,
        operationId: ctx.state.operationId ?? null,
        method: ctx.method,
        path: redact(ctx.url.slice(0, MAX_BODY_BYTES)),
        status: ctx.status,
        durationMs: Math.round((performance.now() - start) * 1000) / 1000,
        ip: ctx.ip,
        requestBody: toStoredBody(ctx.state.requestText),
        responseBody: toStoredBody(typeof ctx.body === 'string' ? ctx.body : undefined),
        at,
      })
      if (waiting.length % FLUSH_ROWS === 0) void flush()
    },
    flush,
    async stop() {
      clearInterval(timer)
      await flush()
    },
  }
}

/** Cuts a body to 64 KiB of UTF-8 and removes API keys and signing secrets. */
function toStoredBody(text: string | undefined): string | null {
  if (text === undefined) return null
  const short =
    text.length * 3 <= MAX_BODY_BYTES
      ? text
      : Buffer.from(text)
          .subarray(0, MAX_BODY_BYTES)
          .toString()
          .replace(/\uFFFD$/, '')
  // PostgreSQL stores no NUL.
  return redact(short.includes('\0') ? short.replaceAll('\0', '\uFFFD') : short)
}

/** An API key or a signing secret, also in the escapes of JSON (`\/`, `\u005f`) and URLs (`%5F`). */
const KEY = /mst(?:_|%5f|\\u005f)([0-9a-z]{4})(?:[0-9a-z_]|%5f|\\u005f)+/gi
const SECRET = /whsec(?:_|%5f|\\u005f)(?:[0-9a-z+/=_-]|%2b|%2f|%3d|\\\/|\\u00[0-9a-f]{2})+/gi

function redact(text: string): string {
  // Nearly no text has either, and the search for a fixed string is many times faster than a pattern.
  if (!text.includes('mst') && !text.includes('whsec')) return text
  return text.replace(KEY, 'mst_$1…').replace(SECRET, 'whsec_…')
}
