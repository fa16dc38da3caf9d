import { v7 as uuidv7 } from 'uuid'
import type { EventData, EventType } from '../generated/asyncapi.ts'
import { eventTypes } from '../generated/events.ts'
import type { WriteScope } from '../records/db.ts'
import { insertDeliveries, type NewDelivery } from '../records/deliveries.ts'
import { type EventRow, insertEvents } from '../records/events.ts'
import { listSubscribedWebhooks } from '../records/webhooks.ts'

export interface NewEvent<T extends EventType = EventType> {
  eventType: T
  /** The record that it happened to. */
  resourceId: string
  data: EventData[T]
}

/** Says that something happened, in the transaction that makes it true: stores the event and one delivery for each enabled webhook that is
 *  subscribed to it. A rollback takes all of it back. */
export async function emit<T extends EventType>(
  scope: WriteScope,
  eventType: T,
  resourceId: string,
  data: EventData[T],
  now: Date,
): Promise<void> {
  await emitMany(scope, [{ eventType, resourceId, data }], now)
}

/** The same for several things at once, in their order. */
export async function emitMany(scope: WriteScope, events: NewEvent[], now: Date): Promise<void> {
  if (events.length === 0) return
  const webhooks = await listSubscribedWebhooks(scope)
  const rows: EventRow[] = []
  const deliveries: NewDelivery[] = []
  for (const event of events) {
    const id = uuidv7()
    rows.push(eventRow(id, event, now))
    for (const webhook of webhooks) {
      if (!webhook.eventTypes.includes('*') && !webhook.eventTypes.includes(event.eventType)) continue
      deliveries.push(newDelivery(webhook.id, id, event))
    }
  }
  await insertEvents(scope, rows)
  await insertDeliveries(scope, deliveries, now)
}

function eventRow(id: string, event: NewEvent, now: Date): EventRow {
  return {
    id,
    event_type: event.eventType,
    resource_type: eventTypes[event.eventType].resourceType,
    resource_id: event.resourceId,
    data: JSON.stringify(event.data),
    created_at: now.getTime(),
  }
}

/** The body is serialised here and never again: these bytes are stored, signed, sent and shown. */
function newDelivery(webhookId: string, eventId: string, event: NewEvent): NewDelivery {
  const id = uuidv7()
  const { eventType, resourceId, data } = event
  const payload = { id, event_type: eventType, resource: { type: eventTypes[eventType].resourceType, id: resourceId }, data }
  return { id, webhookId, eventId, eventType, body: Buffer.from(JSON.stringify(payload)), trigger: 'schedule' }
}
