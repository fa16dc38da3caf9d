import type { EventType } from '../generated/asyncapi.ts'
import type { components } from '../generated/openapi.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { findRecord, type Listing, toTimestamp } from './list.ts'

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

/** The event without its `delivery_ids`. */
function eventFromRow(row: EventRow): PublicEvent {
  const event = {
    id: row.id,
    event_type: row.event_type,
    resource: { type: row.resource_type, id: row.resource_id },
    data: JSON.parse(row.data),
    created_at: toTimestamp(row.created_at),
  }
  // `emit` (webhooks/emit.ts) writes only events whose resource and data fit their type.
  return event as PublicEvent
}

export const eventListing: Listing<EventRow, PublicEvent> = {
  table: 'events',
  fromRow: eventFromRow,
}

/** The event with its `delivery_ids`, in the order of creation. */
export async function findEvent(scope: Scope, id: string): Promise<PublicEvent | undefined> {
  const event = await findRecord(scope, eventListing, id)
  if (event === undefined) return undefined
  const deliveryIds = await scope.rows('deliveries').where('event_id', id).orderBy('id').pluck('id')
  return { ...event, delivery_ids: deliveryIds }
}

/** The events `ids`, ordered by ID. Deleted events are missing. */
export async function listEventRows(scope: Scope, ids: string[]): Promise<EventRow[]> {
  return scope.rows('events').whereIn('id', ids).orderBy('id')
}

export async function insertEvents(scope: WriteScope, events: EventRow[]): Promise<void> {
  if (events.length > 0) await scope.insert('events', events)
}
