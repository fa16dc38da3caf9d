/** Bulk jobs that retry failed deliveries. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { countSelected } from '../../records/bulk-batches.ts'
import { deleteWebhook } from '../../records/webhooks.ts'
import { selectFailedDeliveries } from '../../webhooks/bulk.ts'
import { emitTest } from '../../webhooks/emit.ts'
import { sharedApp } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { allEnded, cancelRetrying, receivedIds, startJob, waitForJob } from './bulk-jobs.ts'
import { NEVER, newTenant, type Tenant } from './harness.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

/** A selection begins and ends at a millisecond, in which nothing else may happen. */
const SEPARATION_MS = 5
const ALL_TIME = { since: new Date(0) }

interface Failures extends AsyncDisposable {
  webhookId: string
  receiver: Receiver
  /** From now on the receiver responds with 204. Forgets the requests so far. */
  mend(): void
}

/** Creates a webhook and `count` failed deliveries of it. */
async function newFailures(tenant: Tenant, count: number): Promise<Failures> {
  let isBroken = true
  const receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
  const webhookId = await tenant.subscribe(receiver.url, {
    eventTypes: ['participant.created', 'task.created'],
  })
  await tenant.emit(count)
  await cancelRetrying(tenant, count)
  return {
    webhookId,
    receiver,
    mend() {
      isBroken = false
      receiver.requests.length = 0
    },
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

describe('retry_failed', () => {
  test('selects failed deliveries by webhook, type and time, but no test event and none of a deleted webhook', async () => {
    const tenant = await newTenant(app)
    await using deleted = await newFailures(tenant, 4)
    await tenant.write((scope) => deleteWebhook(scope, deleted.webhookId, new Date()))
    await delay(SEPARATION_MS)
    const between = new Date()
    await delay(SEPARATION_MS)
    await using failing = await newFailures(tenant, 6)
    const { webhookId } = failing
    await tenant.write((scope) => emitTest(scope, webhookId, new Date()))
    await allEnded(tenant, 4 + 6 + 1)
    await delay(SEPARATION_MS)
    const now = new Date()

    const count = (
      webhook: string | null,
      eventTypes: string[] | null,
      period: { since: Date; until?: Date },
    ): Promise<number> =>
      countSelected(tenant.scope, selectFailedDeliveries(webhook, eventTypes, period, now))
    expect(await count(webhookId, null, ALL_TIME)).toBe(6)
    expect(await count(null, null, ALL_TIME)).toBe(6)
    expect(await count(deleted.webhookId, null, ALL_TIME)).toBe(0)
    expect(await count(webhookId, ['participant.created'], ALL_TIME)).toBe(6)
    expect(await count(webhookId, ['task.created'], ALL_TIME)).toBe(0)
    expect(await count(webhookId, null, { since: between })).toBe(6)
    expect(await count(webhookId, null, { since: now })).toBe(0)
    expect(await count(null, null, { since: new Date(0), until: between })).toBe(0)
  })

  test('makes one manual attempt of each selected delivery', async () => {
    const tenant = await newTenant(app)
    await using failing = await newFailures(tenant, 6)
    const { webhookId, receiver } = failing
    await delay(SEPARATION_MS)
    failing.mend()
    const selection = selectFailedDeliveries(
      webhookId,
      ['participant.created'],
      ALL_TIME,
      new Date(),
    )
    const { id } = await startJob(tenant, selection)
    expect(await waitForJob(tenant, id, 'completed')).toMatchObject({
      total: 6,
      done: 6,
      skipped: 0,
    })
    const deliveries = await allEnded(tenant, 6)
    expect(deliveries).toMatchObject(Array(6).fill({ state: 'delivered', attempts: 2 }))
    expect(receivedIds(receiver)).toEqual(deliveries.map((delivery) => delivery.id).sort())
  })

  test('makes one attempt of a delivery even if it fails, and none of a delivery that was delivered meanwhile', async () => {
    await using receiver = await startReceiver({ answers: [500] })
    const tenant = await newTenant(app)
    await tenant.subscribe(receiver.url)
    await tenant.emit(10)
    await cancelRetrying(tenant, 10)
    // A job does not select deliveries that failed in the millisecond of its start.
    await delay(SEPARATION_MS)
    const selection = selectFailedDeliveries(null, null, ALL_TIME, new Date())
    const { id } = await startJob(tenant, selection, 5)
    const [newest] = await tenant.deliveries()
    await tenant.write(async (scope) => {
      await scope.rows('deliveries').where({ id: newest?.id }).update({ state: 'delivered' })
    })
    expect(await waitForJob(tenant, id, 'completed')).toMatchObject({
      total: 10,
      done: 9,
      skipped: 1,
    })
    await allEnded(tenant, 10)
    const attempts = (await tenant.deliveries()).map((delivery) => delivery.attempts)
    expect(attempts.sort((a, b) => a - b)).toEqual([1, ...Array(9).fill(2)])
  })
})
