/** Retention deletes old events, deliveries and attempts, and nothing else. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { expect, inject, test } from 'vitest'
import { newDatabase, startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newTenant, type Tenant } from './harness.ts'

const DAY_MS = 86_400_000
const LATER = Date.now() + DAY_MS
const at = (daysOld: number): number => Date.now() - daysOld * DAY_MS

/** The age of each event in days. Events are kept for 90 days. */
const EVENTS = { old: 91, withScheduled: 91, resent: 91, young: 89, newest: 0 }
type EventName = keyof typeof EVENTS
const KEPT_EVENTS: EventName[] = ['withScheduled', 'young', 'newest']

interface OldDelivery {
  daysOld: number
  /** Undefined for a test event. */
  event?: EventName | 'deleted'
  state?: string
  nextAttemptAt?: number
  /** The age of each attempt in days. Attempts are kept for 30 days, unless their delivery is
   *  unfinished. */
  attempts?: number[]
  /** The numbers of the attempts that are kept. Undefined: the delivery is deleted. */
  keeps?: number[]
}

const DELIVERIES: Record<string, OldDelivery> = {
  delivered: { event: 'old', daysOld: 91, attempts: [91, 40] },
  failed: { event: 'old', daysOld: 91, state: 'failed', attempts: [91] },
  'failed test event': { daysOld: 91, state: 'failed', attempts: [91] },
  'of an event that was deleted when the delivery was created': { event: 'deleted', daysOld: 91 },
  // Deleted with its event, after the last scheduled delivery of the event has ended.
  'delivered, of an event with scheduled deliveries': {
    event: 'withScheduled',
    daysOld: 91,
    attempts: [91],
    keeps: [],
  },
  'failed, with a manual retry': {
    event: 'withScheduled',
    daysOld: 91,
    state: 'failed',
    nextAttemptAt: LATER,
    attempts: [91],
    keeps: [1],
  },
  retrying: {
    event: 'withScheduled',
    daysOld: 91,
    state: 'retrying',
    nextAttemptAt: LATER,
    attempts: [91],
    keeps: [1],
  },
  'pending, without a scheduled attempt': {
    event: 'withScheduled',
    daysOld: 91,
    state: 'pending',
    keeps: [],
  },
  'a day old, of an old event': { event: 'resent', daysOld: 1, attempts: [1], keeps: [1] },
  young: { event: 'young', daysOld: 89, attempts: [89, 31, 29], keeps: [3] },
  newest: { event: 'newest', daysOld: 0, attempts: [0], keeps: [1] },
}

const eventRow = (createdAt: number) => ({
  id: uuidv7({ msecs: createdAt }),
  event_type: 'task.created',
  resource_type: 'task',
  resource_id: randomUUID(),
  data: '[]',
  created_at: createdAt,
})

const attemptRow = (deliveryId: string, number: number, startedAt: number) => ({
  delivery_id: deliveryId,
  number,
  trigger: 'schedule',
  started_at: startedAt,
  duration_ms: 1,
  outcome: 'http_error',
})

/** A delivery as the engine stores it. */
function deliveryRow(
  webhookId: string,
  eventId: string | null,
  createdAt: number,
  { state = 'delivered', nextAttemptAt, attempts = [] }: Partial<OldDelivery> = {},
) {
  return {
    id: uuidv7({ msecs: createdAt }),
    webhook_id: webhookId,
    event_id: eventId,
    event_type: eventId === null ? 'webhook.test' : 'task.created',
    body: Buffer.from('{}'),
    state,
    attempts: attempts.length,
    next_attempt_at: nextAttemptAt ?? null,
    next_trigger: nextAttemptAt === undefined ? null : 'retry',
    created_at: createdAt,
    updated_at: createdAt,
  }
}

/** Inserts EVENTS and DELIVERIES. Returns their IDs by name. */
async function insertRecords({ write }: Tenant, webhookId: string) {
  // SQLite refuses such a delivery.
  const eventIds: Record<string, string> =
    inject('database') === 'postgres' ? { deleted: randomUUID() } : {}
  const deliveryIds: Record<string, string> = {}
  await write(async (scope) => {
    for (const [name, daysOld] of Object.entries(EVENTS)) {
      const event = eventRow(at(daysOld))
      await scope.insert('events', event)
      eventIds[name] = event.id
    }
    for (const [name, delivery] of Object.entries(DELIVERIES)) {
      const { event, daysOld, attempts = [] } = delivery
      const eventId = event === undefined ? null : (eventIds[event] ?? null)
      const row = deliveryRow(webhookId, eventId, at(daysOld), delivery)
      await scope.insert('deliveries', row)
      deliveryIds[name] = row.id
      for (const [index, age] of attempts.entries())
        await scope.insert('attempts', attemptRow(row.id, index + 1, at(age)))
    }
  })
  return { eventIds, deliveryIds }
}

/** Inserts old events, each with a delivery and an attempt: enough for several batches. */
async function insertManyOld({ write }: Tenant, webhookId: string): Promise<void> {
  const events = Array.from({ length: 1_200 }, (_, index) => eventRow(at(120) + index))
  const deliveries = events.map(({ id, created_at }) =>
    deliveryRow(webhookId, id, created_at, { attempts: [120] }),
  )
  await write(async (scope) => {
    await scope.insert('events', events)
    await scope.insert('deliveries', deliveries)
    await scope.insert(
      'attempts',
      deliveries.map(({ id, created_at }) => attemptRow(id, 1, created_at)),
    )
  })
}

/** The numbers of the stored attempts of each stored delivery, by its ID. */
async function listStored({ scope }: Tenant): Promise<Record<string, number[]>> {
  const ids: string[] = await scope.rows('deliveries').pluck('id')
  const attempts: { delivery_id: string; number: number }[] = await scope
    .rows('attempts')
    .orderBy('number')
    .select('delivery_id', 'number')
  const stored: Record<string, number[]> = Object.fromEntries(ids.map((id) => [id, []]))
  for (const { delivery_id, number } of attempts) {
    stored[delivery_id] ??= []
    stored[delivery_id].push(number)
  }
  return stored
}

const listEventIds = async ({ scope }: Tenant): Promise<string[]> =>
  (await scope.rows('events').pluck('id')).sort()

test('retention: deletes ended deliveries with events after 90 days, attempts after 30 days', async () => {
  await using database = await newDatabase()
  await using withoutRetention = await startApp({ database, role: 'api' })
  const tenant = await newTenant(withoutRetention)
  await using receiver = await startReceiver()
  const webhookId = await tenant.subscribe(receiver.url)
  const { eventIds, deliveryIds } = await insertRecords(tenant, webhookId)
  await insertManyOld(tenant, webhookId)
  const wanted: Record<string, number[]> = {}
  for (const [name, { keeps }] of Object.entries(DELIVERIES))
    if (keeps !== undefined) wanted[deliveryIds[name] ?? ''] = keeps
  const wantedEvents = KEPT_EVENTS.map((name) => eventIds[name]).sort()

  await using _app = await startApp({ database, role: 'all' })
  await until(
    'retention has deleted the old records',
    async () => {
      const stored = await listStored(tenant)
      return (
        Object.keys(stored).length === Object.keys(wanted).length &&
        Object.values(stored).flat().length === Object.values(wanted).flat().length &&
        (await listEventIds(tenant)).length === wantedEvents.length
      )
    },
    30_000,
  )
  expect(await listStored(tenant)).toEqual(wanted)
  expect(await listEventIds(tenant)).toEqual(wantedEvents)
  const ofOldEvent = await tenant.find(deliveryIds['a day old, of an old event'] ?? '')
  expect(ofOldEvent.eventId).toBeNull()
  expect(receiver.requests).toHaveLength(0)
})
