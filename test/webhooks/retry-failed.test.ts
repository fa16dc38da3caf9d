/** Bulk jobs that retry failed deliveries. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { countSelected } from '../../records/bulk-batches.ts'
import type { BulkSelection } from '../../records/bulk-jobs.ts'
import { deleteWebhook } from '../../records/webhooks.ts'
import { selectFailedDeliveries } from '../../webhooks/bulk.ts'
import { emitTest } from '../../webhooks/emit.ts'
import { sharedApp } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { allEnded, cancelRetrying, receivedIds, startJob, waitForJob } from './bulk-jobs.ts'
import { NEVER, newTenant, type Tenant } from './harness.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

/** A webhook with `count` failed deliveries. From then on its receiver responds with 204. */
async function newFailures(
  tenant: Tenant,
  count: number,
  eventTypes?: string[],
): Promise<{ webhookId: string; receiver: Receiver }> {
  let isBroken = true
  const receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
  const webhookId = await tenant.subscribe(receiver.url, { eventTypes })
  await tenant.emit(count)
  await cancelRetrying(tenant, count)
  isBroken = false
  receiver.requests.length = 0
  return { webhookId, receiver }
}
describe('retry_failed', () => {
  test('makes one manual attempt of each delivery selected by webhook, type and time', async () => {
    const tenant = await newTenant(app)
    const { webhookId, receiver } = await newFailures(tenant, 4, ['participant.created'])
    await delay(5)
    const since = new Date()
    await delay(5)
    receiver.close()
    await tenant.write((own) => deleteWebhook(own, webhookId, new Date()))
    const { webhookId: second, receiver: secondReceiver } = await newFailures(tenant, 6, [
      'participant.created',
      'task.created',
    ])
    await tenant.write((own) => emitTest(own, second, new Date()))
    await allEnded(tenant, 11)
    secondReceiver.requests.length = 0

    const count = (selection: BulkSelection): Promise<number> =>
      countSelected(tenant.scope, selection)
    await delay(5)
    const now = new Date()
    const everything = { since: new Date(0) }
    expect(await count(selectFailedDeliveries(second, null, everything, now))).toBe(6)
    expect(await count(selectFailedDeliveries(second, null, { since: now }, now))).toBe(0)
    expect(await count(selectFailedDeliveries(second, ['task.created'], everything, now))).toBe(0)
    // Deliveries of the deleted webhook are not selected.
    expect(await count(selectFailedDeliveries(null, null, everything, now))).toBe(6)
    expect(
      await count(selectFailedDeliveries(null, null, { since: new Date(0), until: since }, now)),
    ).toBe(0)

    const { id } = await startJob(
      tenant,
      selectFailedDeliveries(second, ['participant.created'], { since }, now),
    )
    expect(await waitForJob(tenant, id, 'completed')).toMatchObject({
      total: 6,
      done: 6,
      skipped: 0,
    })
    const deliveries = (await allEnded(tenant, 11)).filter(
      (delivery) => delivery.webhookId === second && delivery.eventId !== null,
    )
    expect(deliveries.every(({ state, attempts }) => state === 'delivered' && attempts === 2)).toBe(
      true,
    )
    expect(receivedIds(secondReceiver)).toEqual(deliveries.map((delivery) => delivery.id).sort())
    await secondReceiver.close()
  })

  test('attempts a delivery once even if it fails, and skips one delivered meanwhile', async () => {
    await using receiver = await startReceiver({ answers: [500] })
    const tenant = await newTenant(app)
    await tenant.subscribe(receiver.url)
    await tenant.emit(10)
    await cancelRetrying(tenant, 10)
    // A job does not select deliveries that failed in the millisecond of its start.
    await delay(5)
    const { id } = await startJob(
      tenant,
      selectFailedDeliveries(null, null, { since: new Date(0) }, new Date()),
      5,
    )
    const last = (await tenant.deliveries())[0]?.id ?? ''
    await tenant.write(
      async (own) =>
        void (await own.rows('deliveries').where({ id: last }).update({ state: 'delivered' })),
    )
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
