/** One log line for each request. */
import type { Logger } from 'pino'
import { maskInvitation } from '../web/console/errors.ts'
import { traceIdOf } from '../webhooks/transport/traceparent.ts'
import type { Context, Next } from './context.ts'
import { maskSecrets } from './request-log.ts'

/** Probes and scrapes, which arrive every few seconds. */
const OPERATOR_PATHS = ['/healthz', '/readyz', '/metrics', '/violations']
const MAX_PATH_LENGTH = 500

/** Koa middleware: logs requests at `info`, and those of the operator at `debug`. Queries are left out,
 *  because they contain personal data. */
export function logRequests(log: Logger) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const start = performance.now()
    await next()
    const { requestId, traceparent, operationId, principal } = ctx.state
    const level = OPERATOR_PATHS.includes(ctx.path) ? 'debug' : 'info'
    log[level](
      {
        requestId,
        trace_id: traceparent && traceIdOf(traceparent),
        method: ctx.method,
        path: maskSecrets(maskInvitation(ctx.path)).slice(0, MAX_PATH_LENGTH),
        operationId,
        accountId: principal?.accountId,
        status: ctx.status,
        duration_ms: Math.round(performance.now() - start),
      },
      'Request completed',
    )
  }
}
