/** The Koa applications: all middleware in order, and the routes for the operator. */
import { METHODS } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import type { Logger } from 'pino'
import { AccountQuotas } from '../operations/account-quota.ts'
import type { KeysInUse } from '../operations/idempotency.ts'
import { newResponseChecker } from '../operations/response-check.ts'
import type { Db } from '../records/database/open.ts'
import { consoleRoutes } from '../web/console/app.ts'
import { docsRoutes } from '../web/docs/routes.ts'
import { logRequests } from './access-log.ts'
import type { Config } from './config.ts'
import type { Context, RequestState } from './context.ts'
import { crossOrigin } from './cross-origin.ts'
import { respondToErrors } from './errors.ts'
import { assertHeaders } from './http.ts'
import { identify, setStrictTransportSecurity } from './identify.ts'
import type { Metrics } from './metrics.ts'
import { serveOperations } from './operations.ts'
import type { Readiness } from './readiness.ts'
import type { RequestLog } from './request-log.ts'
import { checkErrorResponses } from './respond.ts'
import { traceRequests } from './tracing.ts'

interface AppServices {
  db: Db
  config: Config
  log: Logger
  now: () => Date
  metrics: Metrics
  requestLog: RequestLog
  readiness: Readiness
  keysInUse: KeysInUse
}

export function createApp(services: AppServices): Koa<RequestState> {
  const { config, log, metrics, requestLog } = services
  // Each trusted proxy adds one IP address to the end of X-Forwarded-For. A client may have written
  // all IP addresses before these.
  const app = new Koa<RequestState>({
    proxy: config.trustedProxies > 0,
    maxIpsCount: config.trustedProxies,
  })
  // `respondToErrors` handles all errors before the response has begun. Later errors arrive here,
  // for example when a client disconnects during a download.
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (!/^(EPIPE|ECONNRESET|ETIMEDOUT|ERR_STREAM_PREMATURE_CLOSE)$/.test(error.code ?? ''))
      log.error({ err: error }, 'A response could not be sent')
  })

  const { recordViolation: onViolation } = metrics
  const checkResponse = newResponseChecker({ mode: config.validateResponses, log, onViolation })
  app.use(identify)
  if (config.baseUrl.startsWith('https:')) app.use(setStrictTransportSecurity)
  app.use(traceRequests)
  app.use(logRequests(log))
  app.use(metrics.middleware)
  app.use(requestLog.middleware)
  // The inner `respondToErrors` responds to errors. If such a response breaks the contract,
  // `checkErrorResponses` may throw, and the outer `respondToErrors` responds to that error.
  app.use(respondToErrors(log))
  app.use(checkErrorResponses(checkResponse))
  app.use(respondToErrors(log))
  app.use(assertHeaders)
  if (config.corsOrigins.length > 0)
    app.use(crossOrigin((origin) => (config.corsOrigins.includes(origin) ? origin : '')))
  if (config.role !== 'worker') {
    const quotas = new AccountQuotas({ ...services, quotas: config.quotas })
    const operationServices = { ...services, checkResponse, quotas }
    app.use(onlyBelow('/public', serveOperations(operationServices)))
    const limits = {
      requestsPerMinute: config.quotas.requests_per_minute,
      requestsInFlight: config.requestsInFlightPerUser,
    }
    app.use(docsRoutes({ baseUrl: config.baseUrl, limits }).routes())
    app.use(consoleRoutes(operationServices))
    app.use(homeRoute().routes())
  }
  const operator = operatorRoutes(services)
  app.use(operator.routes())
  app.use(operator.allowedMethods())
  return app
}

function onlyBelow(
  prefix: string,
  serve: (ctx: Context) => Promise<void>,
): Koa.Middleware<RequestState> {
  return (ctx, next) =>
    ctx.path === prefix || ctx.path.startsWith(`${prefix}/`) ? serve(ctx) : next()
}

/** Redirects browsers to the console and other clients to the documentation. */
function homeRoute(): Router {
  const router = new Router()
  router.get('/', (ctx) => {
    ctx.vary('Accept')
    ctx.redirect(ctx.get('Accept').includes('text/html') ? '/console' : '/docs')
  })
  return router
}

/** Routes for the operator of the service. The contract does not include them. */
function operatorRoutes({ config, metrics, readiness }: AppServices): Router {
  const router = new Router({ methods: METHODS })
  router.get('/healthz', reportAlive)
  router.get('/readyz', async (ctx) => {
    const reasons = await readiness.findReasons()
    const isReady = reasons.length === 0
    ctx.status = isReady ? 200 : 503
    ctx.body = isReady ? { status: 'ready' } : { status: 'not ready', reasons }
  })
  if (config.metricsPort === undefined && !config.isProduction)
    addMetrics(router, { config, metrics })
  return router
}

/** The application on METRICS_PORT. */
export function createMetricsApp(services: MetricsServices): Koa {
  const app = new Koa()
  app.use(assertHeaders)
  const router = new Router()
  router.get('/healthz', reportAlive)
  addMetrics(router, services)
  app.use(router.routes())
  return app
}

type MetricsServices = Pick<AppServices, 'config' | 'metrics'>

function addMetrics(router: Router, { config, metrics }: MetricsServices): void {
  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.registry.contentType)
    ctx.body = await metrics.registry.metrics()
  })
  router.get('/violations', (ctx) => {
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { validate_responses: config.validateResponses, violations: metrics.violations() }
  })
}

function reportAlive(ctx: Koa.Context): void {
  ctx.body = { status: 'alive' }
}
