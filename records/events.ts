import type { EventType } from '../generated/asyncapi.ts'
import type { components } from '../generated/openapi.ts'
import type { Scope, WriteScope } from './database/scope.ts'
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

/** The columns of an `EventRow`. The other columns can be large, and only the page of one event
 *  needs them. */
export const EVENT_COLUMNS = [
  'id',
  'event_type',
  'resource_type',
  'resource_id',
  'data',
  'created_at',
]

export interface NewEventRow extends EventRow {
  /** A JSON array of `FieldChange`. Null: the event is no update. */
  changes: string | null
  actor_type: 'api_key' | 'user' | 'system'
  api_key_id: string | null
  user_id: string | null
  /** Null: no request has caused the event. */
  ip: string | null
  request_id: string | null
}

/** All columns. */
export type StoredEventRow = Omit<NewEventRow, 'actor_type'> & {
  /** Null: an earlier version stored the event. */
  actor_type: NewEventRow['actor_type'] | null
}

/** The event as lists show it. */
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
  columns: EVENT_COLUMNS,
  fromRow: eventFromRow,
}

export function findEventRow(scope: Scope, id: string): Promise<StoredEventRow | undefined> {
  return findRow<StoredEventRow>(scope, 'events', id)
}

/** The event with what lists leave out, but for its deliveries. */
export function eventFromStored(row: StoredEventRow): PublicEvent {
  return {
    ...eventFromRow(row),
    changes: row.changes === null ? null : JSON.parse(row.changes),
    ...(row.actor_type && {
      actor: { type: row.actor_type, id: row.api_key_id ?? row.user_id, user_id: row.user_id },
    }),
  }
}

/** The event with everything that lists leave out. The IDs of the deliveries are in the order of
 *  creation. */
export async function findEvent(scope: Scope, id: string): Promise<PublicEvent | undefined> {
  const row = await findEventRow(scope, id)
  if (row === undefined) return undefined
  const ofEvent = scope.rows('deliveries').where('event_id', row.id)
  return { ...eventFromStored(row), delivery_ids: await ofEvent.orderBy('id').pluck('id') }
}

/** The events `ids`, ordered by ID. Deleted events are missing. */
export async function listEventRows(scope: Scope, ids: string[]): Promise<EventRow[]> {
  return scope.rows('events').whereIn('id', ids).orderBy('id').select(EVENT_COLUMNS)
}

export async function insertEvents(scope: WriteScope, events: NewEventRow[]): Promise<void> {
  if (events.length > 0) await scope.insert('events', events)
}
