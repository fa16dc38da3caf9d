import { validate as isUuid } from 'uuid'
import { isOfAccount, orderOfIds } from './database/order-of-ids.ts'
import type { Scope } from './database/scope.ts'
import { EVENT_COLUMNS, type EventRow, type StoredEventRow } from './events.ts'
import { lowestIdAt } from './ids.ts'
import { findByRequestId, listRequests, type RequestEntry } from './request-log.ts'
import { MINUTE_MS } from './time-units.ts'

/** The request that caused an event. */
export interface RequestCause {
  requestId: string
  apiKeyId: string
}

export interface EventSearch {
  eventType?: string
  /** The ID of the record that the events are about. */
  resourceId?: string
  /** The request that caused the events. Without a period, the search reads all events. */
  request?: RequestCause
  /** Created at or after this time, in epoch milliseconds. */
  since?: number
  /** Created before this time. */
  until?: number
  /** Only events with an ID below `olderThan`, or above `newerThan`. At most one is set. */
  olderThan?: string
  newerThan?: string
  limit: number
}

/** A page of the account's events, newest first, also with `newerThan`, which selects those nearest
 *  to the cursor. Reads only the page from an index. */
export async function searchEvents(
  scope: Scope,
  { eventType, resourceId, request, since, until, olderThan, newerThan, limit }: EventSearch,
): Promise<EventRow[]> {
  const direction = newerThan === undefined ? 'desc' : 'asc'
  const isOwn = isOfAccount(scope, 'events')
  const query =
    eventType === undefined && resourceId === undefined
      ? scope.sql('events').whereRaw(isOwn.sql, isOwn.bindings)
      : scope.rows('events')
  query.select(EVENT_COLUMNS).orderByRaw(orderOfIds('events', direction)).limit(limit)
  if (resourceId !== undefined) query.where('resource_id', resourceId)
  // A record has few events, and a type may have millions: only without a record, the index of types
  // may serve the query.
  if (eventType !== undefined && resourceId === undefined) query.where('event_type', eventType)
  else if (eventType !== undefined) query.whereRaw("event_type || '' = ?", [eventType])
  if (request !== undefined)
    query.where({ request_id: request.requestId, api_key_id: request.apiKeyId })
  if (since !== undefined) query.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) query.where('id', '<', lowestIdAt(until))
  if (olderThan !== undefined) query.where('id', '<', olderThan)
  if (newerThan !== undefined) query.where('id', '>', newerThan)
  const rows: EventRow[] = await query
  return newerThan === undefined ? rows : rows.reverse()
}

/** A clock can be set while a request runs. A client can send the same request ID again, so this must be
 *  short. */
const CLOCK_TOLERANCE_MS = 1_000
/** More than any request takes. */
const MAX_DURATION_MS = 10 * MINUTE_MS

/** A search for the events that a request caused. Neither side has an index for request IDs, so the time
 *  of the one limits the search for the other. */
export function eventsOfRequest({
  requestId,
  apiKey,
  createdAt,
  durationMs,
}: RequestEntry): Pick<EventSearch, 'request' | 'since' | 'until'> {
  return {
    request: { requestId, apiKeyId: apiKey.id },
    since: createdAt,
    until: createdAt + durationMs + CLOCK_TOLERANCE_MS,
  }
}

export interface EventCause {
  /** Null: no request caused the event, or an earlier version stored it. */
  requestId: string | null
  ip: string | null
  /** Undefined: a request of the console, or one that the log no longer has. */
  request?: RequestEntry
}

export async function findCause(
  scope: Scope,
  { request_id: requestId, ip, api_key_id: apiKeyId, created_at: at }: StoredEventRow,
): Promise<EventCause> {
  if (requestId === null || apiKeyId === null) return { requestId, ip }
  return { requestId, ip, request: await findRequestBefore(scope, requestId, at) }
}

/** The request that made a change at this time, in epoch milliseconds. The request of an import began
 *  long before the changes of its rows. */
export async function findRequestBefore(
  scope: Scope,
  requestId: string,
  at: number,
): Promise<RequestEntry | undefined> {
  const period = { from: at - MAX_DURATION_MS, until: at + 1 }
  const [found] = await listRequests(scope, { ...period, requestId }, { limit: 1 })
  return found ?? (isUuid(requestId) ? findByRequestId(scope, requestId) : undefined)
}
