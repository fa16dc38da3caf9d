/** Spans of OpenTelemetry. Muster has only the API package: without an SDK, a span does nothing. */
import {
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api'

export { type Span, SpanStatusCode } from '@opentelemetry/api'

type Work<T> = (span: Span, traceparent: string | undefined) => Promise<T>

/** Runs `work` in the span of a request to this service. `parent` is the `traceparent` of the
 *  client. `work` gets the `traceparent` of the span; undefined without an SDK. */
export function inServerSpan<T>(
  name: string,
  parent: string | undefined,
  work: Work<T>,
): Promise<T> {
  // An instrumentation of Node.js may have begun a span for the request.
  const outer = trace.getActiveSpan() ? context.active() : toContext(parent)
  return inSpan(name, SpanKind.SERVER, outer, work)
}

/** Runs `work` in the span of a request that this service sends. The active span is not its parent,
 *  because it may be the span of an unrelated request. */
export function inClientSpan<T>(name: string, parent: string, work: Work<T>): Promise<T> {
  return inSpan(name, SpanKind.CLIENT, toContext(parent), work)
}

async function inSpan<T>(name: string, kind: SpanKind, outer: Context, work: Work<T>): Promise<T> {
  const span = trace.getTracer('muster').startSpan(name, { kind }, outer)
  const { traceId, spanId, traceFlags } = span.spanContext()
  // Without an SDK, the span has the context of its parent, or none.
  const hasOwnContext =
    isSpanContextValid(span.spanContext()) && spanId !== trace.getSpanContext(outer)?.spanId
  if (!hasOwnContext) return work(span, undefined)
  const traceparent = `00-${traceId}-${spanId}-0${traceFlags & 1}`
  try {
    return await context.with(trace.setSpan(outer, span), () => work(span, traceparent))
  } finally {
    span.end()
  }
}

function toContext(traceparent: string | undefined): Context {
  if (traceparent === undefined) return ROOT_CONTEXT
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return trace.setSpanContext(ROOT_CONTEXT, remote)
}
