/** The Koa application: the order of everything that happens to a request, written once. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import { consoleRoutes } from '../web/console/app.ts'
import { docsRoutes } from '../web/docs/routes.ts'
import { checkErrors } from './answer.ts'
import type { Config } from './config.ts'
import { crossOrigin } from './cross-origin.ts'
import { answerErrors } from './errors.ts'
import { identify } from './identify.ts'
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

export function createApp(services: AppServices): Koa {
  const { config, log, metrics, requestLog } = services
  // What is further left in the header may have been written by the client itself.
  const app = new Koa({ proxy: config.trustedProxies > 0, maxIpsCount: config.trustedProxies })
  // Errors that reach Koa itself come after the answer has begun, such as a client that went away during a download.
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (!/^(EPIPE|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)$/.test(error.code ?? ''))
      log.error({ err: error }, 'An answer could not be sent')
  })

  const outside = operatorRoutes(services)
  app.use(identify)
  app.use(metrics.middleware)
  app.use(requestLog.middleware)
  // The outer one answers what the check throws.
  app.use(answerErrors(log))
  app.use(checkErrors({ config, log, onViolation: metrics.sawViolation }))
  app.use(answerErrors(log))
  if (config.corsOrigins.length > 0)
    app.use(crossOrigin((origin) => (config.corsOrigins.includes(origin) ? origin : '')))
  if (config.role !== 'worker')
    app.use(
      onlyBelow('/public', serveOperations({ ...services, onViolation: metrics.sawViolation })),
    )
  if (config.role !== 'worker') app.use(docsRoutes(config).routes())
  if (config.role !== 'worker') app.use(consoleRoutes(services))
  app.use(outside.routes())
  app.use(outside.allowedMethods())
  return app
}

function onlyBelow(prefix: string, serve: (ctx: Context) => Promise<void>): Koa.Middleware {
  return (ctx, next) =>
    ctx.path === prefix || ctx.path.startsWith(`${prefix}/`) ? serve(ctx) : next()
}

/** What is not in the contract: for the operator of the service. */
function operatorRoutes({ config, metrics, unready }: AppServices): Router {
  const router = new Router()
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'alive' }
  })
  router.get('/readyz', async (ctx) => {
    const missing = await unready()
    ctx.status = missing.length === 0 ? 200 : 503
    ctx.body =
      missing.length === 0 ? { status: 'ready' } : { status: 'not ready', unreachable: missing }
  })
  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.registry.contentType)
    ctx.body = await metrics.registry.metrics()
  })
  router.get('/violations', (ctx) => {
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { validate_responses: config.validateResponses, violations: metrics.violations() }
  })
  return router
}
