/** The Koa application: the order of everything that happens to a request, written once. */
import { randomUUID } from 'node:crypto'
import cors from '@koa/cors'
import Router from '@koa/router'
import Koa, { type Context, type Next } from 'koa'
import type { Logger } from 'pino'
import type { Db } from '../records/db.ts'
import type { Config } from './config.ts'
import { consoleRoutes } from './console.ts'
import { docsRoutes } from './docs.ts'
import { answerErrors } from './errors.ts'
import type { Metrics } from './metrics.ts'
import { serveOperations } from './operations.ts'
import type { RequestLog } from './request-log.ts'

export interface AppServices {
  db: Db
  config: Config
  log: Logger
  now: () => Date
  metrics: Metrics
  requestLog: RequestLog
  /** Are the database and the schedule reachable? Names what is not. */
  unready: () => Promise<string[]>
}

const EXPOSED_HEADERS =
  'Deprecation, ETag, Location, Retry-After, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Idempotent-Replayed, Content-Disposition, Repr-Digest, Sunset'

export function createApp(services: AppServices): Koa {
  const { config, log, metrics, requestLog } = services
  // What is further left in the header may have been written by the client itself.
  const app = new Koa({ proxy: config.trustedProxies > 0, maxIpsCount: config.trustedProxies })
  // Errors that reach Koa itself come after the answer has begun, such as a client that went away during a download.
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (!/^(EPIPE|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)$/.test(error.code ?? '')) log.error({ err: error }, 'An answer could not be sent')
  })

  const outside = operatorRoutes(services)
  app.use(identify)
  app.use(metrics.middleware)
  app.use(requestLog.middleware)
  app.use(answerErrors(log))
  if (config.corsOrigins.length > 0) app.use(crossOrigin(config.corsOrigins))
  if (config.role !== 'worker')
    app.use(
      onlyBelow('/public', serveOperations({ ...services, onViolation: (operation) => metrics.contractViolations.inc({ operation }) })),
    )
  if (config.role !== 'worker') app.use(docsRoutes(config).routes())
  if (config.role !== 'worker') app.use(consoleRoutes(services))
  app.use(outside.routes())
  app.use(outside.allowedMethods())
  return app
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Every response carries the request's id, the client's own if it is one, and may not be sniffed. */
async function identify(ctx: Context, next: Next): Promise<void> {
  const given = ctx.get('X-Request-Id')
  ctx.state.requestId = REQUEST_ID.test(given) ? given : randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('Vary', 'Authorization')
  await next()
}

function crossOrigin(origins: string[]): Koa.Middleware {
  return cors({
    origin: (ctx) => (origins.includes(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    exposeHeaders: EXPOSED_HEADERS,
    allowMethods: 'GET,HEAD,POST,PATCH,DELETE',
    allowHeaders: 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id',
    maxAge: 600,
    keepHeadersOnError: true,
  })
}

function onlyBelow(prefix: string, serve: (ctx: Context) => Promise<void>): Koa.Middleware {
  return (ctx, next) => (ctx.path === prefix || ctx.path.startsWith(`${prefix}/`) ? serve(ctx) : next())
}

/** What is not in the contract: for the operator of the service. */
function operatorRoutes({ metrics, unready }: AppServices): Router {
  const router = new Router()
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'alive' }
  })
  router.get('/readyz', async (ctx) => {
    const missing = await unready()
    ctx.status = missing.length === 0 ? 200 : 503
    ctx.body = missing.length === 0 ? { status: 'ready' } : { status: 'not ready', unreachable: missing }
  })
  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.registry.contentType)
    ctx.body = await metrics.registry.metrics()
  })
  return router
}
