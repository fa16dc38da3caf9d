import type { DeliveredType, EventData, EventPayloads, EventType } from '../generated/asyncapi.ts'
import { eventTypes } from '../generated/events.ts'
import { type Validator, events as validators } from '../generated/validators.js'
import type { FieldChange } from '../records/changes.ts'
import type { WriteScope } from '../records/database/scope.ts'
import { insertDeliveries, type NewDelivery, TEST_EVENT } from '../records/deliveries.ts'
import { assertNotPaused, DeliveryRefused } from '../records/delivery-commands.ts'
import { type EventRow, insertEvents, type NewEventRow } from '../records/events.ts'
import { newId } from '../records/ids.ts'
import { listSubscriptions, type Subscription } from '../records/subscriptions.ts'
import { findWebhook, type Webhook } from '../records/webhooks.ts'
import { slackBody } from './slack.ts'

export interface NewEvent<T extends EventType = EventType> {
  eventType: T
  /** The ID of the changed record. */
  resourceId: string
  data: EventData[T]
  /** What an update changed. */
  changes?: FieldChange[]
}

/** A bug: the event breaks asyncapi.yaml. */
export class InvalidEvent extends Error {
  override name = 'InvalidEvent'
}

/** Stores an event, and one delivery for each enabled webhook that is subscribed to it, in the
 *  transaction of the change itself. Throws `InvalidEvent`. */
export async function emit<T extends EventType>(
  scope: WriteScope,
  event: NewEvent<T>,
  now: Date,
): Promise<void> {
  await emitMany(scope, [event], now)
}

/** Like `emit`, for several events in their order. Throws `InvalidEvent`. */
export async function emitMany(scope: WriteScope, events: NewEvent[], now: Date): Promise<void> {
  if (events.length === 0) return
  const webhooks = await findSubscriptions(scope)
  const rows: NewEventRow[] = []
  const deliveries: NewDelivery[] = []
  for (const event of events) {
    const row = newEventRow(scope, event, now)
    const payload = payloadOf(row, event.data)
    assertPayload(payload)
    rows.push(row)
    const subscribed = webhooks.filter(
      ({ eventTypes }) => eventTypes.includes('*') || eventTypes.includes(event.eventType),
    )
    deliveries.push(...subscribed.map((webhook) => newDelivery(webhook, payload)))
  }
  await insertEvents(scope, rows)
  await insertDeliveries(scope, deliveries, now)
}

/** Uses the webhooks that were read when the transaction began, unless they may have changed
 *  since. */
async function findSubscriptions({
  sql,
  accountId,
  trx,
  subscriptions,
}: WriteScope): Promise<Subscription[]> {
  return subscriptions && trx.isOpeningCurrent() ? subscriptions : listSubscriptions(sql, accountId)
}

function newEventRow({ actor, origin }: WriteScope, event: NewEvent, now: Date): NewEventRow {
  const { userId = null, apiKey } = actor ?? {}
  return {
    id: newId(),
    event_type: event.eventType,
    resource_type: eventTypes[event.eventType].resourceType,
    resource_id: event.resourceId,
    data: JSON.stringify(event.data),
    created_at: now.getTime(),
    changes: event.changes ? JSON.stringify(event.changes) : null,
    actor_type: apiKey ? 'api_key' : userId === null ? 'system' : 'user',
    api_key_id: apiKey?.id ?? null,
    user_id: userId,
    ip: origin?.ip ?? null,
    request_id: origin?.requestId ?? null,
  }
}

/** The body of a delivery, still with the ID of the event. */
interface Payload {
  /** The ID of the event. `newDelivery` replaces it by the ID of the delivery. */
  id: string
  event_type: DeliveredType
  resource: { type: string; id: string }
  data: unknown
}

/** `data` is the data of the event, parsed. */
export function payloadOf(event: EventRow, data: unknown): Payload {
  const { id, event_type, resource_type, resource_id } = event
  return { id, event_type, resource: { type: resource_type, id: resource_id }, data }
}

type InvalidEventWatcher = (eventType: DeliveredType, errors: Validator['errors']) => void

/** Module state: `emit` is called from many places, and metrics count the invalid events of the
 *  whole process. */
const watchers = new Set<InvalidEventWatcher>()

/** Calls `watch` for each `InvalidEvent` in this process. Returns a function that ends the
 *  watch. */
export function watchInvalidEvents(watch: InvalidEventWatcher): () => void {
  watchers.add(watch)
  return () => void watchers.delete(watch)
}

export function assertPayload(payload: Payload): void {
  const validator = validators[payload.event_type].payload
  if (validator(payload)) return
  for (const watch of watchers) watch(payload.event_type, validator.errors)
  const problems = validator.errors?.map(
    ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
  )
  throw new InvalidEvent(
    `An event ${payload.event_type} breaks asyncapi.yaml: ${problems?.join(', ')}`,
  )
}

/** The body is serialised here and never again: the same bytes are stored, signed, sent and
 *  shown. */
export function newDelivery(
  { id: webhookId, ordering }: Pick<Webhook, 'id' | 'ordering'>,
  payload: Payload,
): NewDelivery {
  const id = newId()
  return {
    id,
    webhookId,
    eventId: payload.id,
    eventType: payload.event_type,
    body: Buffer.from(JSON.stringify({ ...payload, id })),
    trigger: 'schedule',
    orderingKey: ordering === 'by_resource' ? payload.resource.id : undefined,
  }
}

/** Schedules a test event for one webhook, subscribed or not: one attempt, and no stored event.
 *  Returns the delivery ID, or undefined if the webhook does not exist. Throws `DeliveryRefused`
 *  while deliveries are paused, and when the webhook is disabled or the account is suspended. */
export async function emitTest(
  scope: WriteScope,
  webhookId: string,
  now: Date,
): Promise<string | undefined> {
  const webhook = await findWebhook(scope, webhookId)
  if (!webhook) return undefined
  await assertNotPaused(scope)
  if (!webhook.enabled) throw new DeliveryRefused('webhook_disabled')
  if (webhook.suspendedAt !== null) throw new DeliveryRefused('account_suspended')
  const id = newId()
  const payload: EventPayloads['webhook.test'] = {
    id,
    event_type: TEST_EVENT,
    resource: { type: 'webhook', id: webhookId },
    data: [],
  }
  const body =
    webhook.format === 'slack'
      ? slackBody(['This is a test message of Muster.'])
      : Buffer.from(JSON.stringify(payload))
  await insertDeliveries(
    scope,
    [{ id, webhookId, eventId: null, eventType: TEST_EVENT, body, trigger: 'test' }],
    now,
  )
  return id
}
