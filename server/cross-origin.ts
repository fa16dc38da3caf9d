import cors from '@koa/cors'
import type { Context, Middleware } from 'koa'

const EXPOSED_HEADERS =
  'Deprecation, ETag, Location, Retry-After, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Idempotent-Replayed, Content-Disposition, Repr-Digest, Sunset'

export const ACCEPTED_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id'

/** Lets browsers of other origins call the API. `allowed` says what to answer to an origin: itself, `*`, or empty text. */
export function crossOrigin(
  allowed: (origin: string) => string,
  acceptedHeaders = ACCEPTED_HEADERS,
): Middleware {
  return cors({
    origin: (ctx: Context) => allowed(ctx.get('Origin')),
    exposeHeaders: EXPOSED_HEADERS,
    allowMethods: 'GET,HEAD,POST,PATCH,DELETE',
    allowHeaders: acceptedHeaders,
    maxAge: 600,
    keepHeadersOnError: true,
  })
}
