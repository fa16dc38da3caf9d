/** Work at many deliveries: what was missed is sent, what failed is retried. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { countSelected } from '../../records/bulk-batches.ts'
import {
  type BulkJob,
  type BulkSelection,
  cancelBulkJob,
  findBulkJob,
  listBulkJobs,
  pauseBulkJob,
  resumeBulkJob,
} from '../../records/bulk-jobs.ts'
import { openDatabase } from '../../records/database/open.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import type { Delivery } from '../../records/deliveries.ts'
import { cancelDelivery } from '../../records/delivery-commands.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  findWebhook,
} from '../../records/webhooks.ts'
import { readConfig } from '../../server/config.ts'
import { failedIn, MAX_RATE, missedBy, type Span, startBulkJob } from '../../webhooks/bulk.ts'
import { emit, emitTest } from '../../webhooks/emit.ts'
import { newMuster } from '../cli/muster.ts'
import { newDatabase, startApp, type TestApp, until } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { newTenant, type Tenant } from './tenant.ts'

const SECOND = 1_000
/** None comes by itself before a test is over. */
const NEVER = '600,600,600,600,600,600,600,600,600'
const BY_HAND = { rate: MAX_RATE, createdBy: null }

let app: TestApp
beforeAll(async () => {
  app = await startApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
})
afterAll(() => app?.[Symbol.asyncDispose]())

async function missed(tenant: Tenant, webhookId: string, span: Span = {}): Promise<BulkSelection> {
  const webhook = await findWebhook(tenant.scope, webhookId)
  if (!webhook) throw new Error('There is no webhook')
  return missedBy(webhook, span, new Date())
}

const start = (
  tenant: Tenant,
  selection: BulkSelection,
  rate = MAX_RATE,
  of: TestApp = app,
): Promise<BulkJob> =>
  startBulkJob(of.db, tenant.accountId, selection, { rate, createdBy: null }, new Date())

const jobOf = async (tenant: Tenant, id: string): Promise<BulkJob> => {
  const job = await findBulkJob(tenant.scope, id)
  if (!job) throw new Error('There is no job')
  return job
}

const jobIn = (tenant: Tenant, id: string, state: BulkJob['state']): Promise<BulkJob> =>
  until(
    `the job is ${state}`,
    async () => {
      const job = await jobOf(tenant, id)
      return job.state === state && job
    },
    30 * SECOND,
  )

const allEnded = (tenant: Tenant, count: number): Promise<Delivery[]> =>
  until(
    `${count} deliveries have ended`,
    async () => {
      const deliveries = await tenant.deliveries()
      const ended = deliveries.filter(
        ({ state, nextAttemptAt }) =>
          nextAttemptAt === null && (state === 'delivered' || state === 'failed'),
      )
      return deliveries.length === count && ended.length === count && deliveries
    },
    30 * SECOND,
  )

/** A webhook that was disabled while so many events happened, and is enabled again. */
async function newOutage(
  count: number,
  of: TestApp = app,
): Promise<{ tenant: Tenant; receiver: Receiver; webhookId: string } & AsyncDisposable> {
  const receiver = await startReceiver()
  const tenant = await newTenant(of)
  const webhookId = await tenant.subscribe(receiver.url)
  await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
  await tenant.emit(count)
  await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
  return {
    tenant,
    receiver,
    webhookId,
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

/** Failed deliveries of a webhook whose receiver answers from then on. */
async function newFailures(
  tenant: Tenant,
  count: number,
  eventTypes?: string[],
): Promise<{ webhookId: string; receiver: Receiver }> {
  let isBroken = true
  const receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
  const webhookId = await tenant.subscribe(receiver.url, eventTypes)
  await tenant.emit(count)
  await cancelRetrying(tenant, count)
  isBroken = false
  receiver.requests.length = 0
  return { webhookId, receiver }
}

/** Waits until so many have failed once, and lets it be their last attempt. */
async function cancelRetrying(tenant: Tenant, count: number): Promise<void> {
  const retrying = await until('all have failed once', async () => {
    const found = (await tenant.deliveries()).filter(({ state }) => state === 'retrying')
    return found.length === count && found
  })
  for (const { id } of retrying) await tenant.write((own) => cancelDelivery(own, id, new Date()))
}

const idsIn = (receiver: Receiver): string[] =>
  receiver.requests.map(({ headers }) => String(headers['webhook-id'])).sort()

describe('send_missed', () => {
  test('sends what happened while the webhook was disabled, and what was cut off: as many as the preview says, once each', async () => {
    await using receiver = await startReceiver()
    await using other = await startReceiver()
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url, ['participant.created', 'task.created'])
    await tenant.subscribe(other.url)
    await tenant.emit(3)
    await allEnded(tenant, 6)
    await tenant.write(async (own) => {
      // A test that is cut off has been in vain, and is not sent again.
      await emitTest(own, webhookId, new Date())
      await emit(own, 'participant.created', tenant.accountId, [], new Date())
      await disableWebhook(own, webhookId, new Date())
    })
    await tenant.emit(20)
    await tenant.emit(5, 'job.created')
    await tenant.emit(4, 'task.created')
    // It is disabled already: that is when it began.
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    await tenant.emit(2)
    await other.received(3 + 1 + 29 + 2)
    receiver.requests.length = 0

    const selection = await missed(tenant, webhookId)
    expect(await countSelected(tenant.scope, selection)).toBe(25)
    const { id } = await start(tenant, selection)
    expect(await jobIn(tenant, id, 'completed')).toMatchObject({
      total: 25,
      done: 25,
      skipped: 0,
      endedAt: expect.any(Number),
    })
    await allEnded(tenant, 35 + 3 + 2 + 1 + 1 + 24)
    const deliveries = (await tenant.deliveries()).filter(
      (delivery) => delivery.webhookId === webhookId,
    )
    expect(deliveries.filter(({ eventType }) => eventType === 'webhook.test')).toMatchObject([
      { state: 'failed', attempts: 0 },
    ])
    const sent = deliveries.filter(({ eventType }) => eventType !== 'webhook.test')
    expect(sent.every(({ state, attempts }) => state === 'delivered' && attempts === 1)).toBe(true)

    const events: { id: string; event_type: string }[] = await tenant.scope
      .rows('events')
      .orderBy('id')
      .select('id', 'event_type')
    const wanted = events
      .filter(({ event_type }) => event_type !== 'job.created')
      .map((event) => event.id)
    expect(sent.map(({ eventId }) => eventId).sort()).toEqual(wanted)
    // In the order in which they happened.
    const late = sent.reverse().slice(6)
    expect(late.map(({ eventId }) => eventId)).toEqual(wanted.slice(4, 28))
    expect(
      idsIn(receiver).filter((delivery) => sent.slice(0, 3).some(({ id }) => id === delivery)),
    ).toEqual([])
    expect(other.requests).toHaveLength(35)
    expect(await countSelected(tenant.scope, await missed(tenant, webhookId))).toBe(0)
  })

  test('takes up a delivery that was cut off between two attempts where it was', async () => {
    await using receiver = await startReceiver({ answers: ['hang', 500, 204] })
    await using slow = await startApp({
      role: 'all',
      environment: {
        WEBHOOK_RETRY_DELAYS: '600,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1',
        WEBHOOK_TIMEOUT_MS: '200',
      },
    })
    const tenant = await newTenant(slow)
    const webhookId = await tenant.subscribe(receiver.url)
    await tenant.emit()
    const [{ id } = { id: '' }] = await until('it is to be tried again', async () => {
      const deliveries = await tenant.deliveries()
      return deliveries[0]?.state === 'retrying' && deliveries
    })
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    const job = await start(tenant, await missed(tenant, webhookId), MAX_RATE, slow)
    expect(await jobIn(tenant, job.id, 'completed')).toMatchObject({ total: 1, done: 1 })
    await until('it is delivered', async () => (await tenant.find(id)).state === 'delivered')
    expect(await tenant.find(id)).toMatchObject({ attempts: 3, failureReason: null })
  })

  test('only of the time given', async () => {
    await using outage = await newOutage(2)
    const { tenant, receiver, webhookId } = outage
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    await delay(5)
    const since = new Date()
    await tenant.emit(3)
    await delay(5)
    const end = new Date()
    await tenant.emit(4)
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    const selection = await missed(tenant, webhookId, { since, until: end })
    expect(await countSelected(tenant.scope, selection)).toBe(3)
    const { id } = await start(tenant, selection)
    await jobIn(tenant, id, 'completed')
    await allEnded(tenant, 3)
    expect(receiver.requests).toHaveLength(3)
  })

  test('to an ordered webhook: the events of one resource one after the other', async () => {
    const underWay = new Set<string>()
    let overlaps = 0
    const resources: string[] = []
    await using receiver = await startReceiver({
      answers: ({ body }) => {
        const { resource } = JSON.parse(String(body)) as { resource: { id: string } }
        if (underWay.has(resource.id)) overlaps++
        underWay.add(resource.id)
        resources.push(resource.id)
        setTimeout(() => underWay.delete(resource.id), 20)
        return { afterMs: 20 }
      },
    })
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url)
    await tenant.write((own) => own.rows('webhooks').update({ ordering: 'by_resource' }))
    const [first, second] = [tenant.accountId, webhookId]
    const tell = (ids: string[]) =>
      tenant.write(async (own) => {
        for (const id of ids) await emit(own, 'participant.updated', id, [], new Date())
      })
    await tenant.write(async (own) => {
      await emit(own, 'participant.created', first, [], new Date())
      await emit(own, 'participant.updated', first, [], new Date())
      await disableWebhook(own, webhookId, new Date())
    })
    await tell([first, second, first, second])
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    const { id } = await start(tenant, await missed(tenant, webhookId))
    expect(await jobIn(tenant, id, 'completed')).toMatchObject({ total: 6, done: 6 })
    const deliveries = await allEnded(tenant, 6)
    expect(deliveries.every(({ state, attempts }) => state === 'delivered' && attempts === 1)).toBe(
      true,
    )
    expect({ overlaps, first: resources.filter((id) => id === first).length }).toEqual({
      overlaps: 0,
      first: 4,
    })
  })

  test('without a time, of a webhook that was never disabled: refused', async () => {
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe('https://example.com/')
    await expect(missed(tenant, webhookId)).rejects.toThrow('has not been disabled')
    expect(
      await countSelected(tenant.scope, await missed(tenant, webhookId, { since: new Date(0) })),
    ).toBe(0)
  })

  test.runIf(inject('database') === 'postgres')(
    'waits for an event whose transaction began while the webhook was disabled',
    async () => {
      await using outage = await newOutage(3)
      const { tenant, receiver, webhookId } = outage
      await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
      const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
      const { promise: isEmitted, resolve: emitted } = Promise.withResolvers<void>()
      const late = tenant.write(async (own) => {
        await emit(own, 'participant.created', tenant.accountId, [], new Date())
        emitted()
        await mayCommit
      })
      await isEmitted
      await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
      const { id } = await start(
        tenant,
        await missed(tenant, webhookId, { since: new Date(Date.now() - 60 * SECOND) }),
      )
      await delay(SECOND)
      expect(await jobOf(tenant, id)).toMatchObject({ state: 'running', done: 0 })
      commit()
      await late
      expect(await jobIn(tenant, id, 'completed')).toMatchObject({ done: 4, skipped: 0 })
      await allEnded(tenant, 4)
      expect(receiver.requests).toHaveLength(4)
    },
  )
})

describe('retry_failed', () => {
  test('by webhook, type and time: as many as the preview says, one attempt by hand each', async () => {
    const tenant = await newTenant(app)
    const { webhookId, receiver } = await newFailures(tenant, 4, ['participant.created'])
    await delay(5)
    const since = new Date()
    await delay(5)
    receiver.close()
    await tenant.write((own) => deleteWebhook(own, webhookId, new Date()))
    const { webhookId: second, receiver: receivesSecond } = await newFailures(tenant, 6, [
      'participant.created',
      'task.created',
    ])
    await tenant.write((own) => emitTest(own, second, new Date()))
    await allEnded(tenant, 11)
    receivesSecond.requests.length = 0

    const count = (selection: BulkSelection): Promise<number> =>
      countSelected(tenant.scope, selection)
    await delay(5)
    const now = new Date()
    const everything = { since: new Date(0) }
    expect(await count(failedIn(second, null, everything, now))).toBe(6)
    expect(await count(failedIn(second, null, { since: now }, now))).toBe(0)
    expect(await count(failedIn(second, ['task.created'], everything, now))).toBe(0)
    // A webhook that is gone gets nothing.
    expect(await count(failedIn(null, null, everything, now))).toBe(6)
    expect(await count(failedIn(null, null, { since: new Date(0), until: since }, now))).toBe(0)

    const { id } = await start(tenant, failedIn(second, ['participant.created'], { since }, now))
    expect(await jobIn(tenant, id, 'completed')).toMatchObject({ total: 6, done: 6, skipped: 0 })
    const deliveries = (await allEnded(tenant, 11)).filter(
      (delivery) => delivery.webhookId === second && delivery.eventId !== null,
    )
    expect(deliveries.every(({ state, attempts }) => state === 'delivered' && attempts === 2)).toBe(
      true,
    )
    expect(idsIn(receivesSecond)).toEqual(deliveries.map((delivery) => delivery.id).sort())
    await receivesSecond.close()
  })

  test('what fails again is not tried twice by the same job; what was retried meanwhile is skipped', async () => {
    await using receiver = await startReceiver({ answers: [500] })
    const tenant = await newTenant(app)
    await tenant.subscribe(receiver.url)
    await tenant.emit(10)
    await cancelRetrying(tenant, 10)
    // What failed in the very millisecond of the start is not the job's.
    await delay(5)
    const { id } = await start(tenant, failedIn(null, null, { since: new Date(0) }, new Date()), 5)
    const last = (await tenant.deliveries())[0]?.id ?? ''
    await tenant.write(
      async (own) =>
        void (await own.rows('deliveries').where({ id: last }).update({ state: 'delivered' })),
    )
    expect(await jobIn(tenant, id, 'completed')).toMatchObject({ total: 10, done: 9, skipped: 1 })
    await allEnded(tenant, 10)
    const attempts = (await tenant.deliveries()).map((delivery) => delivery.attempts)
    expect(attempts.sort((a, b) => a - b)).toEqual([1, ...Array(9).fill(2)])
  })
})

describe('a bulk job', () => {
  test('keeps to its rate', async () => {
    await using outage = await newOutage(60)
    const { tenant, receiver, webhookId } = outage
    const { id } = await start(tenant, await missed(tenant, webhookId), 20)
    await jobIn(tenant, id, 'completed')
    await receiver.received(60)
    const [first, last] = [
      receiver.requests[0]?.receivedAt ?? 0,
      receiver.requests.at(-1)?.receivedAt ?? 0,
    ]
    // Three seconds' worth, of which it may catch up on one, and the first and the last batch take no time.
    expect(last - first).toBeGreaterThan(1.4 * SECOND)
  })

  test('is paused, resumed and cancelled at once, and what it has done stays done', async () => {
    await using outage = await newOutage(100)
    const { tenant, receiver, webhookId } = outage
    const { id } = await start(tenant, await missed(tenant, webhookId), 20)
    await until('it has begun', async () => (await jobOf(tenant, id)).done > 0)
    const paused = await tenant.write((own) => pauseBulkJob(own, id, new Date()))
    expect(paused).toMatchObject({ state: 'paused', endedAt: null })
    // Longer than between two batches.
    await delay(SECOND)
    expect(await jobOf(tenant, id)).toEqual(paused)
    expect((await tenant.deliveries()).length).toBe(paused?.done)
    expect(await tenant.write((own) => pauseBulkJob(own, id, new Date()))).toMatchObject({
      state: 'paused',
    })

    await tenant.write((own) => resumeBulkJob(own, id, new Date()))
    await until('it goes on', async () => (await jobOf(tenant, id)).done > (paused?.done ?? 0))
    const cancelled = await tenant.write((own) => cancelBulkJob(own, id, new Date()))
    expect(cancelled).toMatchObject({ state: 'cancelled', endedAt: expect.any(Number) })
    const deliveries = await allEnded(tenant, cancelled?.done ?? 0)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(deliveries.length)
    expect(receiver.requests).toHaveLength(deliveries.length)
    await expect(tenant.write((own) => resumeBulkJob(own, id, new Date()))).rejects.toThrow(
      `Bulk job ${id} is cancelled.`,
    )

    // Another one sends the rest, and nothing twice.
    const rest = await start(tenant, await missed(tenant, webhookId))
    expect(rest.total).toBe(100 - deliveries.length)
    await jobIn(tenant, rest.id, 'completed')
    const all = await allEnded(tenant, 100)
    expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(100)
    expect((await listBulkJobs(tenant.scope)).map((job) => job.id)).toEqual([rest.id, id])
  })

  test('is one of its kind: of ten starts at once the others name the first', async () => {
    await using outage = await newOutage(30)
    const { tenant, webhookId } = outage
    const selection = await missed(tenant, webhookId)
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, () => start(tenant, selection, 5)),
    )
    const [job] = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const refusals = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason.message] : [],
    )
    expect(refusals).toEqual(
      Array(9).fill(
        `Bulk job ${job?.id} already does this and is running. Cancel it first, or let it finish.`,
      ),
    )

    const failed = (webhook: string | null): BulkSelection =>
      failedIn(webhook, null, { since: new Date(0) }, new Date())
    const retries = await start(tenant, failed(null))
    await jobIn(tenant, retries.id, 'completed')
    await tenant.write((own) => cancelBulkJob(own, job?.id ?? '', new Date()))
  })

  test('is paused when its webhook is disabled, and cancelled when it is deleted', async () => {
    await using outage = await newOutage(40)
    const { tenant, webhookId } = outage
    const { id } = await start(tenant, await missed(tenant, webhookId), 20)
    await until('it has begun', async () => (await jobOf(tenant, id)).done > 0)
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    expect(await jobIn(tenant, id, 'paused')).toMatchObject({ stateReason: 'webhook_disabled' })
    await expect(tenant.write((own) => resumeBulkJob(own, id, new Date()))).rejects.toMatchObject({
      code: 'webhook_disabled',
    })
    await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
    expect(await tenant.write((own) => resumeBulkJob(own, id, new Date()))).toMatchObject({
      state: 'running',
      stateReason: null,
    })
    await tenant.write((own) => deleteWebhook(own, webhookId, new Date()))
    expect(await jobIn(tenant, id, 'cancelled')).toMatchObject({ stateReason: 'webhook_deleted' })
    await expect(
      startBulkJob(
        app.db,
        tenant.accountId,
        failedIn(webhookId, null, { since: new Date(0) }, new Date()),
        BY_HAND,
        new Date(),
      ),
    ).rejects.toMatchObject({
      code: 'webhook_deleted',
    })
  })

  test('goes on where it was after kill -9: every event has one delivery', {
    timeout: 120 * SECOND,
  }, async () => {
    await using database = await newDatabase()
    await using muster = await newMuster()
    const environment = {
      PORT: '0',
      LOG_LEVEL: 'error',
      WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
      ...database.environment,
    }
    const config = readConfig(environment)
    const serve = async () => {
      const started = muster.start(['serve', '--json'], { environment })
      await until('the server is ready', () => started.output.stdout.includes('\n'), 60 * SECOND)
      return started
    }
    const firstRun = await serve()
    const { first_account: account } = JSON.parse(firstRun.output.stdout)
    const db = openDatabase(config.database)
    const anApp = {
      db,
      config,
      newAccount: async () => ({ accountId: account.account_id }),
    } as unknown as TestApp
    await using outage = await newOutage(150, anApp)
    const { tenant, receiver, webhookId } = outage
    const { id } = await startBulkJob(
      db,
      tenant.accountId,
      await missed(tenant, webhookId),
      { rate: 40, createdBy: null },
      new Date(),
    )

    await until('some are done', async () => (await jobOf(tenant, id)).done >= 30, 60 * SECOND)
    firstRun.process.kill('SIGKILL')
    await firstRun.ended
    // PostgreSQL may still be at what it was told last.
    await until(
      'what is done is there',
      async () => (await tenant.deliveries()).length === (await jobOf(tenant, id)).done,
    )
    expect(await jobOf(tenant, id)).toMatchObject({ state: 'running' })
    const secondRun = await serve()
    expect(
      await until(
        'it is completed',
        async () => {
          const job = await jobOf(tenant, id)
          return job.state === 'completed' && job
        },
        60 * SECOND,
      ),
    ).toMatchObject({ total: 150, done: 150, skipped: 0 })
    const deliveries = await until(
      'all are delivered',
      async () => {
        const found = await tenant.deliveries()
        return found.every(({ state }) => state === 'delivered') && found
      },
      60 * SECOND,
    )
    expect(deliveries).toHaveLength(150)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(150)
    expect([...new Set(idsIn(receiver))]).toEqual(deliveries.map((delivery) => delivery.id).sort())
    secondRun.process.kill('SIGTERM')
    await secondRun.ended
    await db.close()
  })
})

test('new events of others are not delayed by a job', async () => {
  await using outage = await newOutage(300)
  const { tenant, webhookId } = outage
  const { id } = await start(tenant, await missed(tenant, webhookId), 100)
  await until('it has begun', async () => (await jobOf(tenant, id)).done > 0)
  await using receiver = await startReceiver()
  const other = await newTenant(app)
  await other.subscribe(receiver.url)
  await other.emit()
  await receiver.received(1, 2 * SECOND)
  expect((await jobOf(tenant, id)).state).toBe('running')
  await transaction(app.db, (trx) =>
    cancelBulkJob(writeScope(trx, tenant.accountId), id, new Date()),
  )
})
