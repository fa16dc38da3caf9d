import { randomUUID } from 'node:crypto'
import type { Context, Next } from './context.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Koa middleware: every response carries the request's id, the client's own if it is one, and may not be sniffed. */
export async function identify(ctx: Context, next: Next): Promise<void> {
  const given = ctx.get('X-Request-Id')
  ctx.state.requestId = REQUEST_ID.test(given) ? given : randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('Vary', 'Authorization')
  await next()
}
