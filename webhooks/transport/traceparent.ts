/** The header `traceparent` of W3C Trace Context Level 1,
 *  https://www.w3.org/TR/trace-context-1/. */
import { randomUUID } from 'node:crypto'
import type { DeliveryIds } from './sign.ts'

/** §3.2.2: version, trace ID, parent ID and flags. A later version may have more fields. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const SAMPLED = 1

/** The header as version 00, with no flag but `sampled`. Undefined: it is invalid, and must be
 *  ignored. */
export function parseTraceparent(header: string): string | undefined {
  const [, version, traceId, parentId, flags = '', more] = header.match(TRACEPARENT) ?? []
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  const sampled = Number.parseInt(flags, 16) & SAMPLED
  return `00-${traceId}-${parentId}-0${sampled}`
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35)
}

/** The parent of the attempts of a delivery: the request that caused the event. If that has no
 *  `traceparent`, the deliveries of an event share a trace, whose ID is that of the event. Such a
 *  trace is sampled, because receivers record no trace that is not sampled. */
export function traceparentOfDelivery(
  { id, eventId }: DeliveryIds,
  requestTraceparent: string | null,
): string {
  const uuid = (eventId ?? id).replaceAll('-', '')
  return requestTraceparent ?? `00-${uuid}-${uuid.slice(16)}-01`
}

/** The trace of `parent` with a new parent ID. */
export function newChildTraceparent(parent: string): string {
  return `00-${traceIdOf(parent)}-${randomParentId()}-${parent.slice(-2)}`
}

/** The second half of a UUID, which is never zero. Node keeps random bytes in stock for UUIDs:
 *  `randomBytes` takes several times as long. */
function randomParentId(): string {
  return randomUUID().slice(19).replace('-', '')
}
