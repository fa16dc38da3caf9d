import type { EventType } from '../generated/asyncapi.ts'
import type { components } from '../generated/openapi.ts'
import type { Scope } from './database/scope.ts'
import { type Listing, toTimestamp } from './list.ts'
import { findRow } from './references.ts'

/** An event as the public API shows it. */
export type PublicEvent = components['schemas']['Event']

export interface EventRow {
  id: string
  event_type: EventType
  resource_type: string
  resource_id: string
  /** JSON, byte for byte as it was emitted. */
  data: string
  /** Epoch milliseconds. */
  created_at: number
}

export function eventFromRow(row: EventRow): PublicEvent {
  return {
    id: row.id,
    event_type: row.event_type,
    resource: { type: row.resource_type, id: row.resource_id },
    data: JSON.parse(row.data),
    created_at: toTimestamp(row.created_at),
  }
}

export const eventListing: Listing<EventRow, PublicEvent> = {
  table: 'events',
  fromRow: eventFromRow,
}

export async function findEvent(scope: Scope, id: string): Promise<PublicEvent | undefined> {
  const row = await findRow<EventRow>(scope, 'events', id)
  return row && eventFromRow(row)
}

/** Ordered by ID. Deleted events are missing. */
export async function listEventRows(scope: Scope, ids: string[]): Promise<EventRow[]> {
  return scope.rows('events').whereIn('id', ids).orderBy('id')
}

export async function insertEvents(scope: Scope, events: EventRow[]): Promise<void> {
  if (events.length > 0)
    await scope.insert(
      'events',
      events.map((event) => ({ ...event })),
    )
}
