/** The OpenTelemetry span of each request. */
import { inServerSpan, SpanStatusCode } from '../runtime/tracing.ts'
import { isOperatorPath } from './access-log.ts'
import type { Context, Next } from './context.ts'
import { loggablePath } from './mask-secrets.ts'

/** Koa middleware. The span is named after the operation. Probes and scrapes have none. */
export async function traceRequests(ctx: Context, next: Next): Promise<void> {
  if (isOperatorPath(ctx.path)) {
    await next()
    return
  }
  await inServerSpan(ctx.method, ctx.state.traceparent, async (span, traceparent) => {
    ctx.state.traceparent = traceparent ?? ctx.state.traceparent
    await next()
    if (!span.isRecording()) return
    const { requestId, operationId, principal } = ctx.state
    if (operationId !== undefined) span.updateName(operationId)
    span.setAttributes({
      'http.request.method': ctx.method,
      'http.response.status_code': ctx.status,
      'url.path': loggablePath(ctx.path),
      'muster.request.id': requestId,
      'muster.account.id': principal?.accountId,
    })
    if (ctx.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
  })
}
