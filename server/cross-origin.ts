import cors from '@koa/cors'
import type { Context, Middleware } from 'koa'

const EXPOSED_HEADERS = [
  'Deprecation',
  'ETag',
  'Link',
  'Location',
  'Retry-After',
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'Idempotent-Replayed',
  'Content-Disposition',
  'Repr-Digest',
  'Sunset',
  'X-Change-Outcome',
].join(', ')

export const ACCEPTED_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, traceparent, X-Request-Id'

/** Lets pages of other origins call the API from a browser. `allowOriginFor` returns
 *  the Access-Control-Allow-Origin: the origin, `*`, or an empty string for no header. */
export function crossOrigin(
  allowOriginFor: (origin: string) => string,
  acceptedHeaders = ACCEPTED_HEADERS,
): Middleware {
  return cors({
    origin: (ctx: Context) => allowOriginFor(ctx.get('Origin')),
    exposeHeaders: EXPOSED_HEADERS,
    allowMethods: 'GET,HEAD,POST,PATCH,DELETE',
    allowHeaders: acceptedHeaders,
    maxAge: 600,
    keepHeadersOnError: true,
  })
}
