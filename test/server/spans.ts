/** A small SDK of OpenTelemetry: keeps the ended spans in memory. */
import { randomBytes } from 'node:crypto'
import {
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  trace,
} from '@opentelemetry/api'

export interface EndedSpan extends SpanContext {
  name: string
  kind: SpanOptions['kind']
  parent: SpanContext | undefined
  attributes: Attributes
  status: SpanStatus | undefined
}

/** Registers the SDK. Disposing removes it. */
export function recordSpans(): Disposable & { ended: EndedSpan[] } {
  const ended: EndedSpan[] = []
  const startSpan = (name: string, { kind }: SpanOptions = {}, outer?: Context): Span => {
    const parent = outer && trace.getSpanContext(outer)
    const ids: SpanContext = {
      traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      traceFlags: parent?.traceFlags ?? 1,
    }
    const recorded: EndedSpan = { ...ids, name, kind, parent, attributes: {}, status: undefined }
    const span: Span = {
      spanContext: () => ids,
      isRecording: () => true,
      setAttribute: (key, value) => span.setAttributes({ [key]: value }),
      setAttributes: (attributes) => {
        Object.assign(recorded.attributes, attributes)
        return span
      },
      setStatus: (status) => {
        recorded.status = status
        return span
      },
      updateName: (updated) => {
        recorded.name = updated
        return span
      },
      end: () => void ended.push(recorded),
      addEvent: () => span,
      addLink: () => span,
      addLinks: () => span,
      recordException: () => undefined,
    }
    return span
  }
  const startActiveSpan = () => {
    throw new Error('Muster starts no active spans')
  }
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan }) })
  return { ended, [Symbol.dispose]: () => trace.disable() }
}
