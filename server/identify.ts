import { newId } from '../records/ids.ts'
import { parseTraceparent } from '../webhooks/transport/traceparent.ts'
import type { Context, Next } from './context.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Koa middleware: sets the request ID, the `traceparent` of the client, and the headers that every
 *  response has. A client may choose the request ID. Another one contains the time, by which the
 *  log finds the request. */
export async function identify(ctx: Context, next: Next): Promise<void> {
  const requested = ctx.get('X-Request-Id')
  ctx.state.requestId = REQUEST_ID.test(requested) ? requested : newId()
  ctx.state.traceparent = parseTraceparent(ctx.get('traceparent'))
  ctx.set('X-Request-Id', ctx.state.requestId)
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('Vary', 'Authorization')
  await next()
}

/** Koa middleware for a service with an https URL: tells browsers to use https only, for a year
 *  (RFC 6797). */
export async function setStrictTransportSecurity(ctx: Context, next: Next): Promise<void> {
  ctx.set('Strict-Transport-Security', 'max-age=31536000')
  await next()
}
