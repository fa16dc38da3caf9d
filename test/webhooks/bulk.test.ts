/** States, rate and restarts of bulk jobs. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  type BulkJob,
  type BulkSelection,
  cancelBulkJob,
  listBulkJobs,
  pauseBulkJob,
  resumeBulkJob,
} from '../../records/bulk-jobs.ts'
import { openDatabase } from '../../records/database/open.ts'
import { deleteWebhook, disableWebhook, enableWebhook } from '../../records/webhooks.ts'
import { readConfig } from '../../server/config.ts'
import { selectFailedDeliveries } from '../../webhooks/bulk.ts'
import { newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { newDatabase, sharedApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import {
  allEnded,
  findJob,
  newOutage,
  receivedIds,
  selectMissed,
  startJob,
  waitForJob,
} from './bulk-jobs.ts'
import { NEVER, newTenant } from './harness.ts'

const SECOND = 1_000

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

/** Selects all failed deliveries of a webhook. `webhookId` null: of the account. */
const selectFailed = (webhookId: string | null): BulkSelection =>
  selectFailedDeliveries(webhookId, null, { since: new Date(0) }, new Date())

describe('a bulk job', () => {
  test('does not exceed its rate', async () => {
    await using outage = await newOutage(app, 60)
    const { tenant, receiver, webhookId } = outage
    const { id } = await startJob(tenant, await selectMissed(tenant, webhookId), 20)
    await waitForJob(tenant, id, 'completed')
    await receiver.received(60)
    const [first, last] = [
      receiver.requests[0]?.receivedAt ?? 0,
      receiver.requests.at(-1)?.receivedAt ?? 0,
    ]
    // 60 deliveries at 20 per second take 3 s. The job may catch up on 1 s, and its first and last
    // batch, of 250 ms each, take no time.
    expect(last - first).toBeGreaterThan(1.4 * SECOND)
  })

  test('can be paused, resumed and cancelled; another job sends the rest, and no event twice', async () => {
    await using outage = await newOutage(app, 100)
    const { tenant, receiver, webhookId } = outage
    const { id } = await startJob(tenant, await selectMissed(tenant, webhookId), 20)
    await until('the job has created deliveries', async () => (await findJob(tenant, id)).done > 0)
    const paused = await tenant.write((scope) => pauseBulkJob(scope, id, new Date()))
    expect(paused).toMatchObject({ state: 'paused', endedAt: null })
    // Longer than the time between two batches.
    await delay(SECOND)
    expect(await findJob(tenant, id)).toEqual(paused)
    expect((await tenant.deliveries()).length).toBe(paused?.done)
    expect(await tenant.write((scope) => pauseBulkJob(scope, id, new Date()))).toMatchObject({
      state: 'paused',
    })

    await tenant.write((scope) => resumeBulkJob(scope, id, new Date()))
    await until(
      'the job has continued',
      async () => (await findJob(tenant, id)).done > (paused?.done ?? 0),
    )
    const cancelled = await tenant.write((scope) => cancelBulkJob(scope, id, new Date()))
    expect(cancelled).toMatchObject({ state: 'cancelled', endedAt: expect.any(Number) })
    const deliveries = await allEnded(tenant, cancelled?.done ?? 0)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(deliveries.length)
    expect(receiver.requests).toHaveLength(deliveries.length)
    await expect(tenant.write((scope) => resumeBulkJob(scope, id, new Date()))).rejects.toThrow(
      `Bulk job ${id} is cancelled.`,
    )

    const secondJob = await startJob(tenant, await selectMissed(tenant, webhookId))
    expect(secondJob.total).toBe(100 - deliveries.length)
    await waitForJob(tenant, secondJob.id, 'completed')
    const all = await allEnded(tenant, 100)
    expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(100)
    expect((await listBulkJobs(tenant.scope)).map((job) => job.id)).toEqual([secondJob.id, id])
  })

  test('is the only one of its selection: of ten concurrent starts nine are refused with its ID', async () => {
    await using outage = await newOutage(app, 30)
    const { tenant, webhookId } = outage
    const selection = await selectMissed(tenant, webhookId)
    const started: BulkJob[] = []
    const refusals: string[] = []
    await Promise.all(
      Array.from({ length: 10 }, () =>
        startJob(tenant, selection, 5).then(
          (job) => started.push(job),
          (error: Error) => refusals.push(error.message),
        ),
      ),
    )
    expect(started).toHaveLength(1)
    const id = started[0]?.id ?? ''
    expect(refusals).toEqual(
      Array(9).fill(
        `Bulk job ${id} already does this and is running. Cancel it first, or let it finish.`,
      ),
    )

    // A job with another selection runs beside it.
    const other = await startJob(tenant, selectFailed(null))
    await waitForJob(tenant, other.id, 'completed')
    await tenant.write((scope) => cancelBulkJob(scope, id, new Date()))
  })

  test('is paused when its webhook is disabled, and cancelled when its webhook is deleted', async () => {
    await using outage = await newOutage(app, 40)
    const { tenant, webhookId } = outage
    const { id } = await startJob(tenant, await selectMissed(tenant, webhookId), 20)
    await until('the job has created deliveries', async () => (await findJob(tenant, id)).done > 0)
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    expect(await waitForJob(tenant, id, 'paused')).toMatchObject({
      stateReason: 'webhook_disabled',
    })
    await expect(
      tenant.write((scope) => resumeBulkJob(scope, id, new Date())),
    ).rejects.toMatchObject({
      code: 'webhook_disabled',
    })
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    expect(await findJob(tenant, id)).toMatchObject({ state: 'running', stateReason: null })
    await tenant.write((scope) => deleteWebhook(scope, webhookId, new Date()))
    expect(await waitForJob(tenant, id, 'cancelled')).toMatchObject({
      stateReason: 'webhook_deleted',
    })
    await expect(startJob(tenant, selectFailed(webhookId))).rejects.toMatchObject({
      code: 'webhook_deleted',
    })
  })

  test('continues after kill -9, and creates one delivery of every event', {
    timeout: 120 * SECOND,
  }, async () => {
    await using database = await newDatabase()
    await using muster = await newMuster()
    const environment = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8', ...database.environment }
    const serve = () => startServing(muster, { environment })
    const firstRun = await serve()
    const config = readConfig(environment)
    const db = openDatabase(config.database)
    const accountId = firstRun.ready.first_account?.account_id ?? ''
    const accounts = { db, config, newAccount: async () => ({ accountId }) }
    await using outage = await newOutage(accounts, 150)
    const { tenant, receiver, webhookId } = outage
    const { id } = await startJob(tenant, await selectMissed(tenant, webhookId), 40)

    await until(
      'the job has created 30 deliveries',
      async () => (await findJob(tenant, id)).done >= 30,
      60 * SECOND,
    )
    firstRun.process.kill('SIGKILL')
    await firstRun.ended
    // PostgreSQL may still execute the last statement of the killed process.
    await until(
      'the job counts every delivery',
      async () => (await tenant.deliveries()).length === (await findJob(tenant, id)).done,
    )
    expect(await findJob(tenant, id)).toMatchObject({ state: 'running' })
    const secondRun = await serve()
    expect(await waitForJob(tenant, id, 'completed', 60 * SECOND)).toMatchObject({
      total: 150,
      done: 150,
      skipped: 0,
    })
    const deliveries = await until(
      'all deliveries are delivered',
      async () => {
        const found = await tenant.deliveries()
        return found.every(({ state }) => state === 'delivered') && found
      },
      60 * SECOND,
    )
    expect(deliveries).toHaveLength(150)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(150)
    expect([...new Set(receivedIds(receiver))]).toEqual(
      deliveries.map((delivery) => delivery.id).sort(),
    )
    secondRun.process.kill('SIGTERM')
    await secondRun.ended
    await db.close()
  })
})

test('a bulk job does not delay new events of other accounts', async () => {
  await using outage = await newOutage(app, 300)
  const { tenant, webhookId } = outage
  const { id } = await startJob(tenant, await selectMissed(tenant, webhookId), 100)
  await until('the job has created deliveries', async () => (await findJob(tenant, id)).done > 0)
  await using receiver = await startReceiver()
  const other = await newTenant(app)
  await other.subscribe(receiver.url)
  await other.emit()
  await receiver.received(1, 2 * SECOND)
  expect((await findJob(tenant, id)).state).toBe('running')
  await tenant.write((scope) => cancelBulkJob(scope, id, new Date()))
})
