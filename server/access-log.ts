/** One log line for each request. */
import type { Logger } from 'pino'
import { traceIdOf } from '../webhooks/transport/traceparent.ts'
import type { Context, Next } from './context.ts'
import { loggablePath } from './mask-secrets.ts'

/** Probes and scrapes request most of these paths every few seconds. */
const OPERATOR_PATHS = ['/healthz', '/readyz', '/metrics', '/violations']

export function isOperatorPath(path: string): boolean {
  return OPERATOR_PATHS.includes(path)
}

/** Koa middleware: logs requests for operator paths at `debug`, and others at `info`. Queries are
 *  left out, because they contain personal data. */
export function logRequests(log: Logger) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const start = performance.now()
    await next()
    const { requestId, traceparent, operationId, principal } = ctx.state
    const level = isOperatorPath(ctx.path) ? 'debug' : 'info'
    log[level](
      {
        requestId,
        trace_id: traceparent && traceIdOf(traceparent),
        method: ctx.method,
        path: loggablePath(ctx.path),
        operationId,
        accountId: principal?.accountId,
        status: ctx.status,
        duration_ms: Math.round(performance.now() - start),
      },
      'Request completed',
    )
  }
}
