/** Responds to the errors that other code of the API throws. Only `respondToUnreadable` in http.ts
 *  responds itself, to requests that Node cannot parse. */
import { HttpError } from 'http-errors'
import type { Logger } from 'pino'
import { InvalidInput, StatusError } from '../errors.ts'
import { isUnavailable, OutcomeUnknown } from '../records/database/errors.ts'
import type { Context, Next } from './context.ts'
import { loggablePath } from './mask-secrets.ts'
import { sendJson } from './respond.ts'

const RETRY_AFTER_SECONDS = 5

/** Koa middleware: responds to errors with `{ message, errors? }`, and to unknown paths with 404.
 *  Headers that were set before the error remain, except ETag, Location and Cache-Control. */
export function respondToErrors(log: Logger) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next()
      if (ctx.status === 404 && ctx.body == null) ctx.throw(404, 'There is nothing at this URL.')
      if (ctx.status >= 400 && ctx.body == null)
        ctx.throw(ctx.status, `${ctx.method} is not possible here.`)
    } catch (error) {
      respondTo(error, ctx, log)
    }
  }
}

function respondTo(error: unknown, ctx: Context, log: Logger): void {
  const requestId = ctx.state.requestId
  ctx.remove('ETag')
  ctx.remove('Location')
  ctx.set('Cache-Control', 'no-store')
  if (error instanceof InvalidInput) {
    reply(ctx, 422, { message: error.message, errors: error.errors })
  } else if (error instanceof StatusError || (error instanceof HttpError && error.expose)) {
    ctx.set(error.headers ?? {})
    reply(ctx, error.status, { message: error.message })
  } else if (isUnavailable(error)) {
    log.error(
      { err: error, requestId, path: loggablePath(ctx.path) },
      'The database cannot be reached or is overloaded',
    )
    replyUnavailable(ctx, error instanceof OutcomeUnknown)
  } else {
    log.error(
      {
        err: error,
        requestId,
        operationId: ctx.state.operationId,
        method: ctx.method,
        path: loggablePath(ctx.path),
      },
      'A request failed',
    )
    reply(ctx, 500, {
      message: `An unexpected error occurred. If you report it, include the request ID ${requestId}.`,
    })
  }
}

/** `isUnknown`: the change may have been made. */
function replyUnavailable(ctx: Context, isUnknown: boolean): void {
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD'
  ctx.set('Retry-After', String(RETRY_AFTER_SECONDS))
  if (!isRead) ctx.set('X-Change-Outcome', isUnknown ? 'unknown' : 'none')
  const message =
    isRead || !isUnknown
      ? 'The service is temporarily unavailable. Try again in a few seconds.'
      : `The change may have been made. ${nextStep(ctx)}`
  reply(ctx, 503, { message })
}

function nextStep(ctx: Context): string {
  return ctx.method === 'POST' && ctx.get('Idempotency-Key') !== ''
    ? 'Send it again with the same Idempotency-Key.'
    : 'Read the record before you send it again.'
}

function reply(ctx: Context, status: number, body: object): void {
  sendJson(ctx, status, JSON.stringify(body))
}
