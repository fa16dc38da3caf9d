/** Webhooks with `ordering: by_resource`: the deliveries of one resource are sent in the order of
 *  its events. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { cancelDelivery } from '../../records/delivery-commands.ts'
import { disableWebhook } from '../../records/webhooks.ts'
import { type ReceivedRequest, startReceiver } from '../receiver.ts'
import { allEnded } from './bulk-jobs.ts'
import { emitFor, newInstallation, newTenant, sharedInstallation, type Tenant } from './harness.ts'

const TYPES = ['task.created', 'task.updated', 'task.completed', 'task.deleted'] as const

const installation = sharedInstallation()
beforeAll(() => installation.start({ delays: Array(9).fill('1').join() }))

const payloadOf = ({
  body,
}: Pick<ReceivedRequest, 'body'>): { event_type: string; resource: { id: string } } =>
  JSON.parse(String(body))

/** Emits updates of one resource, one after the other. */
async function emitUpdates(tenant: Tenant, resourceId: string, count: number): Promise<void> {
  for (let number = 0; number < count; number++)
    await tenant.write((scope) => emitFor(scope, resourceId, 'task.updated'))
}

test('the events of a resource arrive in order; a failing delivery delays only its resource', async () => {
  const tenant = await newTenant(installation)
  const failingId = randomUUID()
  const otherIds = Array.from({ length: 5 }, () => randomUUID())
  let fromOthers = 0
  await using receiver = await startReceiver({
    // The first event of one resource fails until all events of the others have arrived.
    answers: (request) => {
      if (payloadOf(request).resource.id === failingId)
        return fromOthers === otherIds.length * TYPES.length ? 204 : 500
      fromOthers++
      return 204
    },
  })
  await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
  for (const type of TYPES)
    for (const id of [failingId, ...otherIds])
      await tenant.write((scope) => emitFor(scope, id, type))
  await allEnded(tenant, 6 * TYPES.length)
  const arrived = receiver.requests.map(payloadOf)
  const typesOf = (id: string) =>
    arrived.filter(({ resource }) => resource.id === id).map(({ event_type }) => event_type)
  for (const id of otherIds) expect(typesOf(id)).toEqual(TYPES)
  const failedCount = typesOf(failingId).length - TYPES.length
  expect(failedCount).toBeGreaterThan(0)
  expect(typesOf(failingId)).toEqual([...Array(failedCount).fill('task.created'), ...TYPES])
})

test('after the final failure of a delivery the next one is sent', async () => {
  await using failing = await newInstallation()
  await failing.start()
  const tenant = await newTenant(failing)
  await using receiver = await startReceiver({
    answers: (request) => (payloadOf(request).event_type === 'task.created' ? 500 : 204),
  })
  await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
  const id = randomUUID()
  await tenant.write((scope) => emitFor(scope, id, 'task.created'))
  await tenant.write((scope) => emitFor(scope, id, 'task.updated'))
  await receiver.received(11)
  expect(receiver.requests.map((request) => payloadOf(request).event_type)).toEqual([
    ...Array(10).fill('task.created'),
    'task.updated',
  ])
})

test('after a cancelled delivery the next one is sent', async () => {
  const tenant = await newTenant(installation)
  await using receiver = await startReceiver({ answers: [500, 204] })
  await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
  await emitUpdates(tenant, randomUUID(), 2)
  const [next, first] = await tenant.deliveries()
  await tenant.reached(first?.id ?? '', 'retrying')
  await tenant.write((scope) => cancelDelivery(scope, { id: first?.id ?? '' }, new Date()))
  expect(await tenant.reached(next?.id ?? '', 'delivered')).toMatchObject({ attempts: 1 })
  expect(await tenant.find(first?.id ?? '')).toMatchObject({ state: 'failed', attempts: 1 })
  expect(receiver.requests).toHaveLength(2)
})

test('events arrive in order even if they are emitted just when the previous delivery ends', async () => {
  const tenant = await newTenant(installation)
  await using receiver = await startReceiver()
  await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
  // Attempts begin with the first event, so that many emits meet the end of a delivery.
  const count = 150
  await emitUpdates(tenant, randomUUID(), count)
  await receiver.received(count, 30_000)
  const deliveries = await allEnded(tenant, count)
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(
    deliveries.map(({ id }) => id).reverse(),
  )
})

test('waiting deliveries fail when the webhook is disabled', async () => {
  const tenant = await newTenant(installation)
  await using receiver = await startReceiver({ answers: ['hang'] })
  const webhookId = await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
  await emitUpdates(tenant, randomUUID(), 3)
  await receiver.received(1)
  await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
  expect(await tenant.deliveries()).toMatchObject(
    Array(3).fill({ state: 'failed', nextAttemptAt: null }),
  )
  expect(receiver.requests).toHaveLength(1)
})
