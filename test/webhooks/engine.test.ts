import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { type Delivery, listDeliveries } from '../../records/deliveries.ts'
import { DeliveryRefused, resendDelivery, retryDelivery } from '../../records/delivery-commands.ts'
import { FIXED_DEFAULTS } from '../../records/quotas.ts'
import { activateSecret, NoNextSecret, prepareSecret } from '../../records/webhook-secrets.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  TooManyWebhooks,
} from '../../records/webhooks.ts'
import { emit, emitMany } from '../../webhooks/emit.ts'
import type { Engine } from '../../webhooks/engine/engine.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { type Bench, NEVER, newBench, newSubscriber, newTenant } from './harness.ts'

describe('one engine', () => {
  let bench: Bench
  let engine: Engine
  beforeAll(async () => {
    bench = await newBench()
    engine = await bench.start()
  })
  afterAll(() => bench[Symbol.asyncDispose]())

  test('manual retry: one attempt outside the schedule; its success makes it delivered', async () => {
    await using subscriber = await newSubscriber(bench, {
      answers: (_, index) => (index < 11 ? 500 : 204),
    })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    expect(await tenant.write((own) => retryDelivery(own, id, new Date()))).toMatchObject({
      state: 'failed',
      nextTrigger: 'retry',
    })
    expect(await tenant.settled(id)).toMatchObject({
      state: 'failed',
      failureReason: 'attempt_failed',
      attempts: 11,
    })
    await tenant.write((own) => retryDelivery(own, id, new Date()))
    expect(await tenant.settled(id)).toMatchObject({
      state: 'delivered',
      failureReason: null,
      attempts: 12,
    })
    expect((await listAttempts(tenant.scope, id)).map(({ trigger }) => trigger).slice(9)).toEqual([
      'schedule',
      'retry',
      'retry',
    ])
    expect(receiver.requests).toHaveLength(12)
    await expect(tenant.write((own) => retryDelivery(own, id, new Date()))).rejects.toThrow(
      DeliveryRefused,
    )
  })

  test('manual resend: one attempt; the delivery stays delivered', async () => {
    await using subscriber = await newSubscriber(bench, { answers: [204, 500, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    expect(await tenant.write((own) => resendDelivery(own, id, new Date()))).toMatchObject({
      state: 'delivered',
      nextTrigger: 'resend',
    })
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect((await listAttempts(tenant.scope, id))[1]).toMatchObject({
      trigger: 'resend',
      outcome: 'http_error',
    })
    expect(receiver.requests).toHaveLength(2)
    await expect(tenant.write((own) => retryDelivery(own, id, new Date()))).rejects.toThrow(
      'Only a failed delivery',
    )
  })

  test('a double click makes one attempt', async () => {
    await using subscriber = await newSubscriber(bench, { answers: [204, { afterMs: 100 }] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    const resend = (): Promise<Delivery | undefined> =>
      tenant.write((own) => resendDelivery(own, id, new Date()))
    await Promise.all([resend(), resend(), resend()])
    expect(await tenant.settled(id)).toMatchObject({ attempts: 2 })
    expect(receiver.requests).toHaveLength(2)
  })

  test('one delivery for each enabled and subscribed webhook', async () => {
    await using subscriber = await newSubscriber(bench)
    const { tenant, receiver, webhookId } = subscriber
    await tenant.subscribe(receiver.url, { eventTypes: ['task.created'] })
    const disabledId = await tenant.subscribe(receiver.url)
    await tenant.write((own) => disableWebhook(own, disabledId, new Date()))
    await tenant.write((own) =>
      emitMany(
        own,
        [
          { eventType: 'participant.created', resourceId: randomUUID(), data: [] },
          {
            eventType: 'job_application.created',
            resourceId: randomUUID(),
            data: { screening_outcome: 'meets_all' },
          },
        ],
        new Date(),
      ),
    )
    const deliveries = await listDeliveries(tenant.scope, { limit: 9 })
    expect(deliveries.map(({ webhookId, eventType }) => [webhookId, eventType])).toEqual([
      [webhookId, 'job_application.created'],
      [webhookId, 'participant.created'],
    ])
    await receiver.received(2)
  })

  test('a rollback removes the event and its deliveries', async () => {
    await using subscriber = await newSubscriber(bench)
    const { tenant } = subscriber
    const broken = tenant.write(async (own) => {
      await emit(
        own,
        { eventType: 'participant.created', resourceId: randomUUID(), data: [] },
        new Date(),
      )
      throw new Error('undone')
    })
    await expect(broken).rejects.toThrow('undone')
    expect(await listDeliveries(tenant.scope, { limit: 1 })).toEqual([])
  })

  test('secret rotation: the new secret signs after its activation', async () => {
    await using subscriber = await newSubscriber(bench)
    const { tenant, receiver, webhookId } = subscriber
    const secret = await tenant.secretOf(webhookId)
    const next = newSecret()
    await expect(tenant.write((own) => activateSecret(own, webhookId, new Date()))).rejects.toThrow(
      NoNextSecret,
    )
    await tenant.write((own) =>
      prepareSecret(
        own,
        webhookId,
        sealSecret(bench.config.secretKeys.newest(), webhookId, next),
        new Date(),
      ),
    )
    await tenant.settled((await tenant.emitOne()).id)
    await tenant.write((own) => activateSecret(own, webhookId, new Date()))
    await tenant.settled((await tenant.emitOne()).id)
    const signedWith = (key: string, index: number): boolean => {
      const request = receiver.requests[index]
      return (
        createHmac('sha256', key)
          .update(request?.body ?? '')
          .digest('hex') === request?.headers['x-service-signature']
      )
    }
    expect([signedWith(secret, 0), signedWith(next, 1)]).toEqual([true, true])
  })

  test('an account has at most 50 webhooks; deleting one allows another', async () => {
    const tenant = await newTenant(bench)
    const firstId = await tenant.subscribe('https://example.com/')
    for (let count = 1; count < FIXED_DEFAULTS.webhooks; count++)
      await tenant.subscribe('https://example.com/')
    await expect(tenant.subscribe('https://example.com/')).rejects.toThrow(TooManyWebhooks)
    await tenant.write((own) => deleteWebhook(own, firstId, new Date()))
    await tenant.subscribe('https://example.com/')
  })

  test('a lost job is added again', async () => {
    await using subscriber = await newSubscriber(bench, { answers: [500, 204] })
    const { tenant, receiver } = subscriber
    // The attempt is marked as queued, but has no job: as after a loss of the tables of the queue.
    await tenant.write(async (own) => {
      await emit(
        own,
        { eventType: 'participant.created', resourceId: randomUUID(), data: [] },
        new Date(Date.now() - 60_000),
      )
      await own.rows('deliveries').update({ queued_at: Date.now() - 30_000 })
    })
    await receiver.received(2, 15_000)
  })

  test('ready, stats and age', async () => {
    expect(await engine.ready()).toBe(true)
    expect(engine.stats().outcomes.success).toBeGreaterThanOrEqual(0)
    expect(await engine.oldestDueAgeMs()).toBeGreaterThanOrEqual(0)
  })
})

describe('a webhook that is disabled or deleted', () => {
  test.each([
    { name: 'disabled', end: disableWebhook, reason: 'webhook_disabled' },
    { name: 'deleted', end: deleteWebhook, reason: 'webhook_deleted' },
  ])('$name: scheduled attempts are cancelled, and a retry is refused', async ({ end, reason }) => {
    await using bench = await newBench()
    await bench.start({ delays: NEVER })
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(bench)
    const webhookId = await tenant.subscribe(receiver.url)
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    await tenant.write((own) => end(own, webhookId, new Date()))
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: reason,
      nextAttemptAt: null,
      attempts: 1,
    })
    await expect(tenant.write((own) => retryDelivery(own, id, new Date()))).rejects.toMatchObject({
      code: reason,
    })
    if (reason === 'webhook_deleted') return
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    await tenant.write((own) => retryDelivery(own, id, new Date()))
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
  })

  test('disabled while an attempt is in flight: its result counts', async () => {
    await using bench = await newBench()
    await bench.start({ delays: NEVER, timeoutMs: 2_000 })
    await using receiver = await startReceiver({ answers: [{ afterMs: 300 }] })
    const tenant = await newTenant(bench)
    const webhookId = await tenant.subscribe(receiver.url)
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    expect(await tenant.find(id)).toMatchObject({ state: 'failed' })
    await tenant.reached(id, 'delivered')
    expect(await tenant.find(id)).toMatchObject({ attempts: 1, failureReason: null })
  })
})

test('a hanging endpoint does not delay another', async () => {
  await using bench = await newBench()
  await bench.start({ timeoutMs: 10_000 })
  await using slow = await startReceiver({ answers: ['hang'] })
  await using quick = await startReceiver()
  const [slowTenant, quickTenant] = [await newTenant(bench), await newTenant(bench)]
  const webhookId = await slowTenant.subscribe(slow.url)
  await quickTenant.subscribe(quick.url)
  await slowTenant.emit(60, 'task.created')
  await slow.received(1)
  const before = Date.now()
  await quickTenant.settled((await quickTenant.emitOne()).id)
  expect(Date.now() - before).toBeLessThan(5_000)
  expect(slow.requests.length).toBeLessThanOrEqual(16)
  await slowTenant.write((own) => deleteWebhook(own, webhookId, new Date()))
})

test('background jobs: each runs once, again after a failure, and a stop aborts it', async () => {
  await using bench = await newBench()
  const due = new Set<string>([randomUUID(), randomUUID()])
  const runs: string[] = []
  let aborted = false
  const hanging = randomUUID()
  const engine = await bench.start({
    backgroundJobs: {
      exports: {
        due: async () => [...due],
        async run(id, signal) {
          runs.push(id)
          if (id === hanging) {
            await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
            aborted = true
            return
          }
          if (runs.length === 1) throw new Error('the first run fails')
          due.delete(id)
        },
      },
    },
  })
  await until('no job is due', () => due.size === 0)
  expect(runs).toHaveLength(3)
  due.add(hanging)
  engine.wake()
  await until('the hanging job runs', () => runs.includes(hanging))
  await engine.stop(5_000)
  expect(aborted).toBe(true)
})
