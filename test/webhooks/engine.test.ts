import { createHmac, randomUUID } from 'node:crypto'
import type { Worker } from 'node:worker_threads'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { type Delivery, listDeliveries } from '../../records/deliveries.ts'
import { DeliveryRefused, resendDelivery, retryDelivery } from '../../records/delivery-commands.ts'
import { ATTEMPTS_SCHEDULED } from '../../records/due-work.ts'
import {
  activateSecret,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  insertWebhook,
  MAX_WEBHOOKS_PER_ACCOUNT,
  NoNextSecret,
  prepareSecret,
  TooManyWebhooks,
} from '../../records/webhooks.ts'
import { emit, emitMany } from '../../webhooks/emit.ts'
import type { Engine } from '../../webhooks/engine/engine.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from '../receiver.ts'
import {
  type Bench,
  NEVER,
  newBench,
  newTenant,
  SECRET_KEY,
  type Tenant,
  until,
} from './engines.ts'

describe('one engine', () => {
  let bench: Bench
  let engine: Engine
  beforeAll(async () => {
    bench = await newBench()
    engine = await bench.start()
  })
  afterAll(() => bench[Symbol.asyncDispose]())

  /** A tenant with one webhook and its receiver. */
  async function newSubscriber(
    options?: ReceiverOptions,
  ): Promise<
    { tenant: Tenant; receiver: Receiver; webhookId: string; secret: string } & AsyncDisposable
  > {
    const receiver = await startReceiver(options)
    const tenant = await newTenant(bench.db)
    const { id, secret } = await tenant.subscribe(receiver.url)
    return {
      tenant,
      receiver,
      webhookId: id,
      secret,
      [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
    }
  }

  test('success: one signed request, and the delivery is delivered', async () => {
    await using subscriber = await newSubscriber({
      answers: [{ status: 200, headers: { 'x-answer': 'yes' }, body: 'thanks' }],
    })
    const { tenant, receiver, secret } = subscriber
    const { id } = await tenant.emit()
    const delivery = await tenant.settled(id)
    expect(delivery).toMatchObject({
      state: 'delivered',
      attempts: 1,
      failureReason: null,
      nextTrigger: null,
    })
    const [request] = receiver.requests
    expect(receiver.requests).toHaveLength(1)
    expect(JSON.parse(String(request?.body))).toMatchObject({
      id,
      event_type: 'participant.created',
      data: [],
    })
    const digest = createHmac('sha256', secret)
      .update(request?.body ?? '')
      .digest('hex')
    expect(request?.headers).toMatchObject({ 'x-service-signature': digest, 'webhook-id': id })
    const attempts = await listAttempts(tenant.scope, id)
    expect(attempts).toMatchObject([
      {
        number: 1,
        trigger: 'schedule',
        outcome: 'success',
        status: 200,
        responseBody: 'thanks',
        error: null,
      },
    ])
    expect(attempts[0]?.responseHeaders).toMatchObject({ 'x-answer': 'yes' })
  })

  test('failures, then success: retries with the same ID and bytes', async () => {
    await using subscriber = await newSubscriber({ answers: [500, 503, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 3 })
    expect(new Set(receiver.requests.map(({ body }) => body.toString('hex'))).size).toBe(1)
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([id]),
    )
    const attempts = await listAttempts(tenant.scope, id)
    expect(attempts.map(({ outcome, status }) => [outcome, status])).toEqual([
      ['http_error', 500],
      ['http_error', 503],
      ['success', 204],
    ])
    for (const [index, attempt] of attempts.entries()) {
      const before = attempts[index - 1]
      if (before)
        expect(attempt.startedAt).toBeGreaterThanOrEqual(before.startedAt + before.durationMs + 29)
    }
  })

  test('ten failures: the delivery has failed, and nothing more is sent', async () => {
    await using subscriber = await newSubscriber({ answers: [500] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({
      state: 'failed',
      attempts: 10,
      failureReason: 'attempts_exhausted',
    })
    expect(receiver.requests).toHaveLength(10)
    expect((await listAttempts(tenant.scope, id)).map(({ number }) => number)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })

  test.each([
    {
      name: 'no answer',
      answers: ['hang', 204] as const,
      want: { outcome: 'timeout', status: null, error: 'There was no response within 1 second.' },
    },
    {
      name: 'a body without end',
      answers: ['drip', 204] as const,
      want: {
        outcome: 'timeout',
        status: 200,
        error: 'The response did not finish within 1 second.',
      },
    },
    {
      name: 'a connection that is cut',
      answers: ['reset', 204] as const,
      want: {
        outcome: 'unreachable',
        status: null,
        error: 'The endpoint closed the connection before it responded.',
      },
    },
    {
      name: 'a redirect, which is not followed',
      answers: [{ status: 302, headers: { location: '/elsewhere' } }, 204] as const,
      want: {
        outcome: 'http_error',
        status: 302,
        error: 'The endpoint redirected (302). Redirects are not followed.',
      },
    },
    {
      name: 'a client error',
      answers: [{ status: 410, body: 'gone' }, 204] as const,
      want: {
        outcome: 'http_error',
        status: 410,
        responseBody: 'gone',
        error: 'The endpoint responded with status 410.',
      },
    },
  ])('$name: a failed attempt that says why, and a retry', async ({ answers, want }) => {
    await using subscriber = await newSubscriber({ answers: [...answers] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect((await listAttempts(tenant.scope, id))[0]).toMatchObject(want)
    expect(receiver.requests.every(({ path }) => path === '/webhooks')).toBe(true)
  })

  test('a large response with NUL and a split character: cut at 16 KiB and stored; the status counts', async () => {
    const body = Buffer.concat([Buffer.from('a\0b'), Buffer.from('é'.repeat(50_000))])
    await using subscriber = await newSubscriber({ answers: [{ status: 200, body }] })
    const { tenant } = subscriber
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
    const [attempt] = await listAttempts(tenant.scope, id)
    expect(attempt?.responseBody?.startsWith('a\uFFFDbéé')).toBe(true)
    expect(Buffer.byteLength(attempt?.responseBody ?? '')).toBeLessThanOrEqual(16 * 1024 + 2)
    expect(attempt?.responseBody?.endsWith('é')).toBe(true)
  })

  test('connection refused: unreachable', async () => {
    const receiver = await startReceiver()
    await receiver.close()
    const tenant = await newTenant(bench.db)
    await tenant.subscribe(receiver.url)
    const { id } = await tenant.emit()
    await until(async () => (await tenant.find(id)).attempts > 0)
    const [attempt] = await listAttempts(tenant.scope, id)
    expect(attempt).toMatchObject({
      outcome: 'unreachable',
      status: null,
      error: 'Connection refused: nothing listens at 127.0.0.1.',
    })
  })

  test('blocked IP address: retried like any failure', async () => {
    const tenant = await newTenant(bench.db)
    await tenant.subscribe('http://10.255.255.1/')
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({ state: 'failed', attempts: 10 })
    const [attempt] = await listAttempts(tenant.scope, id)
    expect(attempt).toMatchObject({
      outcome: 'blocked',
      error: expect.stringContaining('10.255.255.1, which is not public'),
    })
  })

  test('unreadable secret: nothing is sent', async () => {
    await using subscriber = await newSubscriber()
    const { tenant, receiver, webhookId } = subscriber
    await tenant.write((own) =>
      prepareSecret(
        own,
        webhookId,
        sealSecret('another secret key, long enough for it', webhookId, newSecret()),
        new Date(),
      ),
    )
    await tenant.write((own) => activateSecret(own, webhookId, new Date()))
    const { id } = await tenant.emit()
    expect(await tenant.settled(id)).toMatchObject({ state: 'failed' })
    expect((await listAttempts(tenant.scope, id))[0]).toMatchObject({
      outcome: 'blocked',
      error: expect.stringContaining('SECRET_KEY'),
    })
    expect(receiver.requests).toHaveLength(0)
  })

  test('manual retry: one attempt outside the schedule; a failure changes nothing, a success delivers it', async () => {
    await using subscriber = await newSubscriber({
      answers: (_, index) => (index < 11 ? 500 : 204),
    })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
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
    await using subscriber = await newSubscriber({ answers: [204, 500, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
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
    await using subscriber = await newSubscriber({ answers: [204, { afterMs: 100 }] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emit()
    await tenant.settled(id)
    const resend = (): Promise<Delivery | undefined> =>
      tenant.write((own) => resendDelivery(own, id, new Date()))
    await Promise.all([resend(), resend(), resend()])
    expect(await tenant.settled(id)).toMatchObject({ attempts: 2 })
    expect(receiver.requests).toHaveLength(2)
  })

  test('one delivery for each enabled and subscribed webhook', async () => {
    await using subscriber = await newSubscriber()
    const { tenant, receiver, webhookId } = subscriber
    const given = {
      url: receiver.url,
      description: '',
      eventTypes: ['task.created'],
      createdBy: null,
    }
    await tenant.write((own) =>
      insertWebhook(own, given, (id) => sealSecret(SECRET_KEY, id, newSecret()), new Date()),
    )
    const { id: disabledId } = await tenant.subscribe(receiver.url)
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
    await using subscriber = await newSubscriber()
    const { tenant } = subscriber
    const broken = tenant.write(async (own) => {
      await emit(own, 'participant.created', randomUUID(), [], new Date())
      throw new Error('undone')
    })
    await expect(broken).rejects.toThrow('undone')
    expect(await listDeliveries(tenant.scope, { limit: 1 })).toEqual([])
  })

  test('secret rotation: the new secret signs after its activation', async () => {
    await using subscriber = await newSubscriber()
    const { tenant, receiver, webhookId, secret } = subscriber
    const next = newSecret()
    await expect(tenant.write((own) => activateSecret(own, webhookId, new Date()))).rejects.toThrow(
      NoNextSecret,
    )
    await tenant.write((own) =>
      prepareSecret(own, webhookId, sealSecret(SECRET_KEY, webhookId, next), new Date()),
    )
    await tenant.settled((await tenant.emit()).id)
    await tenant.write((own) => activateSecret(own, webhookId, new Date()))
    await tenant.settled((await tenant.emit()).id)
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
    const tenant = await newTenant(bench.db)
    const first = await tenant.subscribe('https://example.com/')
    for (let count = 1; count < MAX_WEBHOOKS_PER_ACCOUNT; count++)
      await tenant.subscribe('https://example.com/')
    await expect(tenant.subscribe('https://example.com/')).rejects.toThrow(TooManyWebhooks)
    await tenant.write((own) => deleteWebhook(own, first.id, new Date()))
    await tenant.subscribe('https://example.com/')
  })

  test('a lost job is added again', async () => {
    await using subscriber = await newSubscriber({ answers: [500, 204] })
    const { tenant, receiver } = subscriber
    // The attempt is marked as queued, but has no job: as after a loss of the tables of the queue.
    await tenant.write(async (own) => {
      await emit(own, 'participant.created', randomUUID(), [], new Date(Date.now() - 60_000))
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
  ])('$name: what is scheduled ends as failed, and retry is refused', async ({ end, reason }) => {
    await using bench = await newBench()
    await bench.start({ delays: NEVER })
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(bench.db)
    const webhook = await tenant.subscribe(receiver.url)
    const { id } = await tenant.emit()
    await until(async () => (await tenant.find(id)).state === 'retrying')
    await tenant.write((own) => end(own, webhook.id, new Date()))
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
    await tenant.write((own) => enableWebhook(own, webhook.id, new Date()))
    await tenant.write((own) => retryDelivery(own, id, new Date()))
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
  })

  test('disabled while an attempt is in flight: its result counts', async () => {
    await using bench = await newBench()
    await bench.start({ delays: NEVER, timeoutMs: 2_000 })
    await using receiver = await startReceiver({ answers: [{ afterMs: 300 }] })
    const tenant = await newTenant(bench.db)
    const webhook = await tenant.subscribe(receiver.url)
    const { id } = await tenant.emit()
    await receiver.received(1)
    await tenant.write((own) => disableWebhook(own, webhook.id, new Date()))
    expect(await tenant.find(id)).toMatchObject({ state: 'failed' })
    await until(async () => (await tenant.find(id)).state === 'delivered')
    expect(await tenant.find(id)).toMatchObject({ attempts: 1, failureReason: null })
  })
})

describe('stops and starts', () => {
  test('attempts scheduled without an engine are sent at the next start; the schedule survives a restart', async () => {
    await using bench = await newBench()
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(bench.db)
    await tenant.subscribe(receiver.url)
    const { id } = await tenant.emit()
    const first = await bench.start({ delays: '1.5,1,1,1,1,1,1,1,1' })
    await until(async () => (await tenant.find(id)).state === 'retrying')
    await first.stop(2_000)
    expect(await first.ready()).toBe(false)
    const { nextAttemptAt } = await tenant.find(id)
    await bench.start()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect(receiver.requests[1]?.receivedAt).toBeGreaterThanOrEqual(
      nextAttemptAt ?? Number.POSITIVE_INFINITY,
    )
  })

  test('a stop lets attempts in flight finish', async () => {
    await using bench = await newBench()
    const engine = await bench.start({ timeoutMs: 5_000 })
    await using receiver = await startReceiver({ answers: [{ afterMs: 500 }] })
    const tenant = await newTenant(bench.db)
    await tenant.subscribe(receiver.url)
    const { id } = await tenant.emit()
    await receiver.received(1)
    await engine.stop(10_000)
    expect(await tenant.find(id)).toMatchObject({ state: 'delivered', attempts: 1 })
  })

  test('an attempt that another process scheduled is found within a second', async () => {
    await using bench = await newBench()
    await bench.start()
    await using receiver = await startReceiver()
    // As in a command beside the server: the commit is not announced.
    const tenant = await newTenant({ ...bench.db, publish: () => undefined })
    await tenant.subscribe(receiver.url)
    await tenant.emit()
    await receiver.received(1, 1_500)
  })

  test('a commit announces its due attempts; above the limit the engine queries for them', async () => {
    await using bench = await newBench()
    await bench.start({ timeoutMs: 10_000 })
    await using receiver = await startReceiver()
    const tenant = await newTenant(bench.db)
    await tenant.subscribe(receiver.url)
    const said: (number | undefined)[] = []
    bench.db.subscribe(ATTEMPTS_SCHEDULED, (planned) => said.push(planned?.length))
    const events = Array.from({ length: 600 }, () => ({
      eventType: 'task.created' as const,
      resourceId: randomUUID(),
      data: [] as [],
    }))
    await tenant.emit()
    await tenant.write((own) => emitMany(own, events, new Date()))
    await tenant.write(async (own) => {
      await emitMany(own, events, new Date())
      await emitMany(own, events, new Date())
    })
    expect(said).toEqual([1, 600, undefined])
    await until(
      async () =>
        (await listDeliveries(tenant.scope, { state: 'delivered', limit: 2_000 })).length === 1_801,
    )
    expect(receiver.requests).toHaveLength(1_801)
  })

  test.runIf(inject('database') === 'postgres')(
    'two engines share the attempts, and nothing is sent twice',
    async () => {
      await using bench = await newBench()
      const engines = [
        await bench.start({ timeoutMs: 10_000 }),
        await bench.start({ timeoutMs: 10_000 }),
      ]
      await using receiver = await startReceiver()
      const tenant = await newTenant(bench.db)
      await tenant.subscribe(receiver.url)
      const events = Array.from({ length: 300 }, () => ({
        eventType: 'task.created' as const,
        resourceId: randomUUID(),
        data: [] as [],
      }))
      await tenant.write((own) => emitMany(own, events, new Date()))
      await until(
        async () =>
          (await listDeliveries(tenant.scope, { state: 'delivered', limit: 400 })).length === 300,
      )
      expect(receiver.requests).toHaveLength(300)
      expect(
        engines
          .map((engine) => engine.stats().outcomes.success)
          .reduce((sum, count) => sum + count),
      ).toBe(300)
    },
  )

  test.runIf(inject('database') === 'postgres')(
    'an emptied queue is rebuilt from the records',
    async () => {
      await using bench = await newBench()
      await bench.start({ delays: NEVER })
      await using receiver = await startReceiver({ answers: [500, 204] })
      const tenant = await newTenant(bench.db)
      await tenant.subscribe(receiver.url)
      const { id } = await tenant.emit()
      await until(async () => (await tenant.find(id)).state === 'retrying')
      const client = new pg.Client({ connectionString: bench.databaseUrl })
      await client.connect()
      await client.query('delete from pgboss.job')
      await client.end()
      await tenant.write(
        async (own) =>
          void (await own
            .rows('deliveries')
            .update({ next_attempt_at: Date.now() - 10_000, queued_at: Date.now() - 20_000 })),
      )
      expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    },
  )
})

test.runIf(inject('database') === 'sqlite')(
  'the thread of the embedded queue ends: the queue is rebuilt from the records',
  async () => {
    await using bench = await newBench()
    const threads: Worker[] = []
    const notice = (thread: Worker): void => void threads.push(thread)
    process.on('worker', notice)
    const due = new Set<string>()
    const jobs = {
      exports: { due: async () => [...due], run: async (id: string) => void due.delete(id) },
    }
    const engine = await bench.start({ delays: '4,1,1,1,1,1,1,1,1', timeoutMs: 10_000, jobs })
    await using slow = await startReceiver({ answers: [{ status: 200, afterMs: 4_000 }] })
    await using failing = await startReceiver({ answers: [500, 204] })
    const [slowTenant, failingTenant] = [await newTenant(bench.db), await newTenant(bench.db)]
    await slowTenant.subscribe(slow.url)
    await failingTenant.subscribe(failing.url)
    const underWay = await slowTenant.emit()
    const retried = await failingTenant.emit()
    await until(
      async () =>
        slow.requests.length === 1 && (await failingTenant.find(retried.id)).state === 'retrying',
    )

    expect(threads).toHaveLength(1)
    await threads[0]?.terminate()
    expect(await engine.ready()).toBe(false)
    const meanwhile = await failingTenant.emit()
    due.add(randomUUID())
    await until(() => engine.ready())
    process.off('worker', notice)

    expect(await failingTenant.settled(meanwhile.id)).toMatchObject({
      state: 'delivered',
      attempts: 1,
    })
    expect(await failingTenant.settled(retried.id)).toMatchObject({
      state: 'delivered',
      attempts: 2,
    })
    expect(await slowTenant.settled(underWay.id)).toMatchObject({ state: 'delivered', attempts: 1 })
    await until(() => due.size === 0)
    expect(slow.requests).toHaveLength(1)
    expect(threads).toHaveLength(2)
  },
)

test('a hanging endpoint does not delay another', async () => {
  await using bench = await newBench()
  await bench.start({ timeoutMs: 10_000 })
  await using slow = await startReceiver({ answers: ['hang'] })
  await using quick = await startReceiver()
  const [slowTenant, quickTenant] = [await newTenant(bench.db), await newTenant(bench.db)]
  const webhook = await slowTenant.subscribe(slow.url)
  await quickTenant.subscribe(quick.url)
  const events = Array.from({ length: 60 }, () => ({
    eventType: 'task.created' as const,
    resourceId: randomUUID(),
    data: [] as [],
  }))
  await slowTenant.write((own) => emitMany(own, events, new Date()))
  await slow.received(1)
  const before = Date.now()
  await quickTenant.settled((await quickTenant.emit()).id)
  expect(Date.now() - before).toBeLessThan(5_000)
  expect(slow.requests.length).toBeLessThanOrEqual(16)
  await slowTenant.write((own) => deleteWebhook(own, webhook.id, new Date()))
})

test('background jobs: each runs once, again after a failure, and a stop aborts it', async () => {
  await using bench = await newBench()
  const due = new Set<string>([randomUUID(), randomUUID()])
  const runs: string[] = []
  let aborted = false
  const hanging = randomUUID()
  const engine = await bench.start({
    jobs: {
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
  await until(() => due.size === 0)
  expect(runs).toHaveLength(3)
  due.add(hanging)
  engine.wake()
  await until(() => runs.includes(hanging))
  await engine.stop(5_000)
  expect(aborted).toBe(true)
})
