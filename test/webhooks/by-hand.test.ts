/** Manual operations on one delivery, also concurrent ones. */
import { describe, expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { type Delivery, listUndelivered } from '../../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  DeliveryRefused,
  retryDelivery,
} from '../../records/delivery-commands.ts'
import { deleteWebhook, disableWebhook } from '../../records/webhooks.ts'
import { emit, emitTest, InvalidEvent } from '../../webhooks/emit.ts'
import { sharedApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newSubscriber, newTenant, type Tenant } from './harness.ts'

const SECOND = 1_000
/** No scheduled attempt happens during a test. */
const DELAYS = [600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400]

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: DELAYS.join(',') } })

/** Emits one event, and returns its delivery after the first attempt has failed. */
async function emitFailing(tenant: Tenant): Promise<Delivery> {
  const { id } = await tenant.emitOne()
  return tenant.reached(id, 'retrying')
}

/** Ten concurrent calls. */
const tenTimes = <T>(click: () => Promise<T>): Promise<PromiseSettledResult<T>[]> =>
  Promise.allSettled(Array.from({ length: 10 }, click))
const fulfilled = (results: PromiseSettledResult<unknown>[]): number =>
  results.filter(({ status }) => status === 'fulfilled').length

describe('retry', () => {
  test('ten concurrent retries of a failed delivery: one attempt', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, { afterMs: 500 }] })
    const { tenant, receiver } = subscriber
    const { id } = await emitFailing(tenant)
    await tenant.write((own) => cancelDelivery(own, id, new Date()))
    const results = await tenTimes(() => tenant.write((own) => retryDelivery(own, id, new Date())))
    expect(fulfilled(results)).toBe(10)
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect(receiver.requests).toHaveLength(2)
    expect(
      (await listAttempts(tenant.scope, id)).map(({ number, trigger }) => [number, trigger]),
    ).toEqual([
      [1, 'schedule'],
      [2, 'retry'],
    ])
  })

  test('a scheduled delivery: its next attempt happens now, and its schedule continues', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, 500] })
    const { tenant, receiver } = subscriber
    const { id, nextAttemptAt } = await emitFailing(tenant)
    expect(nextAttemptAt).toBeGreaterThan(Date.now() + 500 * SECOND)
    await tenTimes(() => tenant.write((own) => attemptNow(own, id, new Date())))
    const delivery = await until('the second attempt was made', async () => {
      const found = await tenant.find(id)
      return found.attempts === 2 && found
    })
    const attempts = await listAttempts(tenant.scope, id)
    expect(attempts.map(({ number, trigger }) => [number, trigger])).toEqual([
      [1, 'schedule'],
      [2, 'schedule'],
    ])
    const { startedAt, durationMs } = attempts[1] ?? { startedAt: 0, durationMs: 0 }
    expect(delivery).toMatchObject({ state: 'retrying', nextTrigger: 'schedule' })
    expect(
      Math.abs((delivery.nextAttemptAt ?? 0) - startedAt - durationMs - 700 * SECOND),
    ).toBeLessThan(5 * SECOND)
    expect(receiver.requests).toHaveLength(2)
  })

  test('a delivery with an attempt in flight does not change', async () => {
    await using subscriber = await newSubscriber(app, { answers: [{ afterMs: 1_000 }] })
    const { tenant, receiver } = subscriber
    const { id, nextAttemptAt } = await tenant.emitOne()
    await receiver.received(1)
    const results = await tenTimes(() => tenant.write((own) => attemptNow(own, id, new Date())))
    expect(results).toEqual(
      results.map(() => ({
        status: 'fulfilled',
        value: expect.objectContaining({ state: 'pending', nextAttemptAt }),
      })),
    )
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(receiver.requests).toHaveLength(1)
    await expect(tenant.write((own) => attemptNow(own, id, new Date()))).rejects.toMatchObject({
      code: 'not_scheduled',
    })
  })
})

describe('cancel', () => {
  test('ends a scheduled delivery; nothing more is sent until a retry', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await emitFailing(tenant)
    const results = await tenTimes(() => tenant.write((own) => cancelDelivery(own, id, new Date())))
    expect(fulfilled(results)).toBe(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(DeliveryRefused)
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: 'cancelled',
      nextAttemptAt: null,
      nextTrigger: null,
    })
    expect(receiver.requests).toHaveLength(1)

    await tenant.write((own) => retryDelivery(own, id, new Date()))
    expect(await tenant.settled(id)).toMatchObject({
      state: 'delivered',
      failureReason: null,
      attempts: 2,
    })
    await expect(tenant.write((own) => cancelDelivery(own, id, new Date()))).rejects.toMatchObject({
      code: 'not_scheduled',
    })
  })

  test.each([
    { name: 'succeeds: delivered', answer: 200, want: { state: 'delivered', failureReason: null } },
    {
      name: 'fails: cancelled',
      answer: 500,
      want: { state: 'failed', failureReason: 'cancelled' },
    },
  ])('while an attempt is in flight, which $name', async ({ answer, want }) => {
    let respond = (): void => undefined
    await using subscriber = await newSubscriber(app, {
      answers: [
        {
          raw: (socket) => {
            respond = () => socket.end(`HTTP/1.1 ${answer} Whatever\r\nContent-Length: 0\r\n\r\n`)
          },
        },
      ],
    })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    await tenant.write((own) => cancelDelivery(own, id, new Date()))
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: 'cancelled',
      attempts: 0,
    })
    respond()
    await until('the result is stored', async () => (await tenant.find(id)).attempts === 1)
    expect(await tenant.find(id)).toMatchObject({ ...want, nextAttemptAt: null })
    expect(receiver.requests).toHaveLength(1)
  })

  test('concurrent cancel, attempt now and retry: it ends, with no gap in its attempt numbers', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, { afterMs: 200 }] })
    const { tenant, receiver } = subscriber
    const { id } = await emitFailing(tenant)
    const actions = [
      cancelDelivery,
      attemptNow,
      retryDelivery,
      attemptNow,
      cancelDelivery,
      retryDelivery,
    ]
    await Promise.allSettled(actions.map((act) => tenant.write((own) => act(own, id, new Date()))))
    const { state, attempts } = await tenant.settled(id)
    expect(['delivered', 'failed']).toContain(state)
    const numbers = (await listAttempts(tenant.scope, id)).map(({ number }) => number)
    expect(numbers).toEqual([1, 2].slice(0, Math.max(attempts, numbers.length)))
    // An attempt in flight continues beside the one that replaced it.
    expect(receiver.requests.length).toBeLessThanOrEqual(3)
  })
})

describe('test event', () => {
  test('reaches the webhook, subscribed or not, and stores no event', async () => {
    await using receiver = await startReceiver()
    await using other = await startReceiver()
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url, { eventTypes: ['task.created'] })
    await tenant.subscribe(other.url)
    const id = (await tenant.write((own) => emitTest(own, webhookId, new Date()))) ?? ''
    expect(await tenant.settled(id)).toMatchObject({
      state: 'delivered',
      eventType: 'webhook.test',
      eventId: null,
      attempts: 1,
    })
    expect(JSON.parse(String(receiver.requests[0]?.body))).toEqual({
      id,
      event_type: 'webhook.test',
      resource: { type: 'webhook', id: webhookId },
      data: [],
    })
    expect(await listAttempts(tenant.scope, id)).toMatchObject([
      { number: 1, trigger: 'test', outcome: 'success' },
    ])
    expect(await tenant.scope.rows('events')).toEqual([])
    expect(other.requests).toEqual([])
  })

  test('a failing one has one attempt, and is not listed as undelivered', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500] })
    const { tenant, webhookId } = subscriber
    const id = (await tenant.write((own) => emitTest(own, webhookId, new Date()))) ?? ''
    expect(await tenant.settled(id)).toMatchObject({
      state: 'failed',
      failureReason: 'attempt_failed',
      attempts: 1,
    })
    expect(await listUndelivered(tenant.scope, { limit: 9 })).toEqual([])
  })

  test('is refused for a disabled or deleted webhook', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant, receiver, webhookId } = subscriber
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    await expect(tenant.write((own) => emitTest(own, webhookId, new Date()))).rejects.toMatchObject(
      { code: 'webhook_disabled' },
    )
    await tenant.write((own) => deleteWebhook(own, webhookId, new Date()))
    expect(await tenant.write((own) => emitTest(own, webhookId, new Date()))).toBeUndefined()
    expect(receiver.requests).toEqual([])
  })
})

test('undelivered: pending, retrying and failed of all webhooks, newest first, with last error', async () => {
  await using broken = await newSubscriber(app, { answers: [500] })
  const { tenant } = broken
  await using healthy = await startReceiver()
  await tenant.subscribe(healthy.url)
  await using slow = await startReceiver({ answers: ['hang'] })
  const slowId = await tenant.subscribe(slow.url)
  await tenant.emit()
  await until('two of three have come to something', async () => {
    const states = (await tenant.deliveries()).map(({ state }) => state)
    return states.includes('delivered') && states.includes('retrying')
  })
  const [first] = await listUndelivered(tenant.scope, { webhookId: broken.webhookId, limit: 9 })
  await tenant.write((own) => cancelDelivery(own, first?.id ?? '', new Date()))
  expect(await listUndelivered(tenant.scope, { limit: 9 })).toMatchObject([
    { webhookId: slowId, state: 'pending', attempts: 0, lastError: null },
    {
      webhookId: broken.webhookId,
      state: 'failed',
      failureReason: 'cancelled',
      attempts: 1,
      lastError: 'The endpoint responded with status 500.',
    },
  ])
  const [newest, oldest] = await listUndelivered(tenant.scope, { limit: 9 })
  expect(await listUndelivered(tenant.scope, { beforeId: newest?.id, limit: 9 })).toEqual([oldest])
  await tenant.write((own) => disableWebhook(own, slowId, new Date()))
})

test('an event that breaks asyncapi.yaml: neither the event nor the change is stored', async () => {
  const tenant = await newTenant(app)
  await tenant.subscribe('https://example.com/')
  const made = tenant.write(async (own) => {
    await own.rows('webhooks').update({ description: 'It happened' })
    await emit(own, { eventType: 'participant.created', resourceId: 'no id', data: [] }, new Date())
  })
  await expect(made).rejects.toThrow(InvalidEvent)
  await expect(made).rejects.toThrow(
    'An event participant.created breaks asyncapi.yaml: /resource/id must match format "uuid"',
  )
  const wrongData = { screening_outcome: 'perfect' } as unknown as { screening_outcome: null }
  await expect(
    tenant.write((own) =>
      emit(
        own,
        { eventType: 'job_application.created', resourceId: tenant.accountId, data: wrongData },
        new Date(),
      ),
    ),
  ).rejects.toThrow('/data/screening_outcome')
  expect(await tenant.scope.rows('events')).toEqual([])
  expect(await tenant.deliveries()).toEqual([])
  expect(await tenant.scope.rows('webhooks')).toMatchObject([{ description: '' }])
})
