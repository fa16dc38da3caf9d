/** The API Dashboard's record of requests: gathered in memory, written in batches off the request's path. */

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
/** Beyond this, with a database that does not take them, the oldest are given up: answering matters more than the log. */
const MAX_WAITING = 20_000
const MAX_BODY_BYTES = 64 * 1024

export interface RequestLog {
  middleware(ctx: Context, next: Next): Promise<void>
  /** Writes what is waiting. */
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
        // A row that the database will never take must not hold up the others.
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
      const principal: Principal | undefined = ctx.state.principal
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
        requestBody: kept(ctx.state.requestText),
        responseBody: kept(typeof ctx.body === 'string' ? ctx.body : undefined),
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

/** At most 64 KiB of UTF-8, without keys and signing secrets that a client may have put there. */
function kept(text: string | undefined): string | null {
  if (text === undefined) return null
  const short =
    text.length * 3 <= MAX_BODY_BYTES
      ? text
      : Buffer.from(text)
          .subarray(0, MAX_BODY_BYTES)
          .toString()
          .replace(/\uFFFD$/, '')
  // PostgreSQL takes no NUL.
  return redact(short.includes('\0') ? short.replaceAll('\0', '\uFFFD') : short)
}

/** A key or a signing secret, also as JSON (`\/`, `\u005f`) and percent-encoding (`%5F`) write it. */
const KEY = /mst(?:_|%5f|\\u005f)([0-9a-z]{4})(?:[0-9a-z_]|%5f|\\u005f)+/gi
const SECRET = /whsec(?:_|%5f|\\u005f)(?:[0-9a-z+/=_-]|%2b|%2f|%3d|\\\/|\\u00[0-9a-f]{2})+/gi

function redact(text: string): string {
  // Nearly every text has neither, and looking for a fixed string is many times quicker than a pattern.
  if (!text.includes('mst') && !text.includes('whsec')) return text
  return text.replace(KEY, 'mst_$1…').replace(SECRET, 'whsec_…')
}
