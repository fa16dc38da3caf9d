/** Retention deletes old events, deliveries and attempts, and nothing else. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { expect, test } from 'vitest'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { newDatabase, startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newTenant, type Tenant } from './harness.ts'

const DAY = 86_400_000
const LATER = Date.now() + DAY

interface OldDelivery {
  daysOld: number
  eventId?: string
  state?: string
  nextAttemptAt?: number | null
  /** The age of each attempt in days. */
  attempts?: number[]
}

const at = (daysOld: number): number => Date.now() - daysOld * DAY

async function insertEvent({ write }: Tenant, daysOld: number): Promise<string> {
  const id = uuidv7({ msecs: at(daysOld) })
  const row = {
    id,
    event_type: 'task.created',
    resource_type: 'task',
    resource_id: randomUUID(),
    data: '[]',
    created_at: at(daysOld),
  }
  await write((own) => own.insert('events', row))
  return id
}

/** Inserts a delivery and its attempts as the engine stores them. */
async function insertDelivery(
  { accountId, write }: Tenant,
  webhookId: string,
  delivery: OldDelivery,
): Promise<string> {
  const {
    daysOld,
    eventId = null,
    state = 'delivered',
    nextAttemptAt = null,
    attempts = [],
  } = delivery
  const id = uuidv7({ msecs: at(daysOld) })
  await write(async (own) => {
    await own.insert('deliveries', {
      id,
      webhook_id: webhookId,
      event_id: eventId,
      event_type: eventId === null ? 'webhook.test' : 'task.created',
      body: Buffer.from('{}'),
      state,
      attempts: attempts.length,
      next_attempt_at: nextAttemptAt,
      next_trigger: nextAttemptAt === null ? null : 'retry',
      created_at: at(daysOld),
      updated_at: at(daysOld),
    })
    for (const [index, age] of attempts.entries())
      await own.sql('attempts').insert({
        account_id: accountId,
        delivery_id: id,
        number: index + 1,
        trigger: 'schedule',
        started_at: at(age),
        duration_ms: 1,
        outcome: 'http_error',
      })
  })
  return id
}

test('retention: deletes ended deliveries with events after 90 days, attempts after 30 days', async () => {
  await using database = await newDatabase()
  await using quiet = await startApp({ database, role: 'api' })
  const tenant = await newTenant(quiet)
  // Attempts begin at once, and do not end during the test.
  await using receiver = await startReceiver({ answers: ['hang'] })
  const webhookId = await tenant.subscribe(receiver.url)
  const [old, busy, resent, young] = [91, 91, 91, 89]
  const [oldEvent, busyEvent, resentEvent, youngEvent] = [
    await insertEvent(tenant, old),
    await insertEvent(tenant, busy),
    await insertEvent(tenant, resent),
    await insertEvent(tenant, young),
  ]
  const newest = await insertEvent(tenant, 0)

  const gone = [
    await insertDelivery(tenant, webhookId, {
      daysOld: old,
      eventId: oldEvent,
      attempts: [91, 40],
    }),
    await insertDelivery(tenant, webhookId, {
      daysOld: old,
      eventId: oldEvent,
      state: 'failed',
      attempts: [91],
    }),
    await insertDelivery(tenant, webhookId, { daysOld: old, state: 'failed', attempts: [91] }),
  ]
  const kept = {
    // Deleted with its event, after the last scheduled delivery of the event has ended.
    finished: await insertDelivery(tenant, webhookId, {
      daysOld: busy,
      eventId: busyEvent,
      attempts: [91],
    }),
    toRetry: await insertDelivery(tenant, webhookId, {
      daysOld: busy,
      eventId: busyEvent,
      state: 'failed',
      nextAttemptAt: LATER,
      attempts: [91],
    }),
    scheduled: await insertDelivery(tenant, webhookId, {
      daysOld: busy,
      eventId: busyEvent,
      state: 'retrying',
      nextAttemptAt: LATER,
      attempts: [91],
    }),
    waiting: await insertDelivery(tenant, webhookId, {
      daysOld: busy,
      eventId: busyEvent,
      state: 'pending',
    }),
    sentLate: await insertDelivery(tenant, webhookId, {
      daysOld: 1,
      eventId: resentEvent,
      attempts: [1],
    }),
    young: await insertDelivery(tenant, webhookId, {
      daysOld: young,
      eventId: youngEvent,
      attempts: [89, 31, 29],
    }),
    newest: await insertDelivery(tenant, webhookId, { daysOld: 0, eventId: newest, attempts: [0] }),
  }
  // Enough for several batches.
  await transaction(quiet.db, async (trx) => {
    const events = Array.from({ length: 1_200 }, (_, index) => ({
      id: uuidv7({ msecs: at(120) + index }),
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: randomUUID(),
      data: '[]',
      created_at: at(120) + index,
    }))
    const own = writeScope(trx, tenant.accountId)
    await own.insert('events', events)
    const deliveries = events.map((event) => ({
      id: uuidv7({ msecs: event.created_at }),
      webhook_id: webhookId,
      event_id: event.id,
      event_type: 'task.created',
      body: Buffer.from('{}'),
      state: 'delivered',
      attempts: 1,
      created_at: event.created_at,
      updated_at: event.created_at,
    }))
    await own.insert('deliveries', deliveries)
    const attempts = deliveries.map(({ id, created_at }) => ({
      delivery_id: id,
      number: 1,
      trigger: 'schedule',
      started_at: created_at,
      duration_ms: 1,
      outcome: 'success',
    }))
    await own.insert('attempts', attempts)
  })

  const environment = { WEBHOOK_TIMEOUT_MS: '60000' }
  await using _app = await startApp({ database, role: 'all', environment })
  const ids = async (table: string): Promise<string[]> =>
    (await tenant.scope.rows(table).orderBy('id').pluck('id')) as string[]
  const expected = [
    kept.finished,
    kept.toRetry,
    kept.scheduled,
    kept.waiting,
    kept.young,
    kept.sentLate,
    kept.newest,
  ].sort()
  await until(
    'retention has deleted the old records',
    async () =>
      (await ids('deliveries')).length === expected.length &&
      !(await ids('events')).includes(resentEvent),
    30_000,
  )
  expect(await ids('deliveries')).toEqual(expected)
  expect(gone.some((id) => expected.includes(id))).toBe(false)
  expect(await ids('events')).toEqual([busyEvent, youngEvent, newest].sort())
  expect((await tenant.find(kept.sentLate)).eventId).toBeNull()

  const attempts: { delivery_id: string; number: number }[] = await tenant.scope
    .rows('attempts')
    .select('delivery_id', 'number')
  const attemptNumbers = (id: string): number[] =>
    attempts.filter(({ delivery_id }) => delivery_id === id).map(({ number }) => number)
  expect(attemptNumbers(kept.young)).toEqual([3])
  expect(attemptNumbers(kept.finished)).toEqual([])
  expect(
    [kept.toRetry, kept.scheduled, kept.sentLate, kept.newest].map(
      (id) => attemptNumbers(id).length,
    ),
  ).toEqual([1, 1, 1, 1])
  expect(attempts).toHaveLength(5)
})
