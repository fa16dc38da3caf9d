import type { Scope } from './database/scope.ts'
import { EVENT_COLUMNS, type EventRow } from './events.ts'
import { lowestIdAt } from './ids.ts'

export interface EventSearch {
  eventType?: string
  /** The ID of the record that the events are about. */
  resourceId?: string
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
  { eventType, resourceId, since, until, olderThan, newerThan, limit }: EventSearch,
): Promise<EventRow[]> {
  const query = scope
    .rows('events')
    .select(EVENT_COLUMNS)
    .orderBy('id', newerThan === undefined ? 'desc' : 'asc')
    .limit(limit)
  if (resourceId !== undefined) query.where('resource_id', resourceId)
  // A record has few events, and a type may have millions: only without a record, the index of types
  // may serve the query.
  if (eventType !== undefined && resourceId === undefined) query.where('event_type', eventType)
  else if (eventType !== undefined) query.whereRaw("event_type || '' = ?", [eventType])
  if (since !== undefined) query.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) query.where('id', '<', lowestIdAt(until))
  if (olderThan !== undefined) query.where('id', '<', olderThan)
  if (newerThan !== undefined) query.where('id', '>', newerThan)
  const rows: EventRow[] = await query
  return newerThan === undefined ? rows : rows.reverse()
}
