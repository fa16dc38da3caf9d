/** Webhooks with `ordering: by_resource`. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listDeliveries } from '../../records/deliveries.ts'
import { disableWebhook } from '../../records/webhooks.ts'
import { emit } from '../../webhooks/emit.ts'
import { startReceiver } from '../receiver.ts'
import { allEnded } from './bulk-jobs.ts'
import { type Bench, newBench, newTenant } from './harness.ts'

const TYPES = ['task.created', 'task.updated', 'task.completed', 'task.deleted'] as const
const what = (body: Buffer): { event_type: string; resource: { id: string } } =>
  JSON.parse(body.toString())

describe('ordering: by_resource', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await newBench()
    await bench.start({ delays: '1,1,1,1,1,1,1,1,1' })
  })
  afterAll(() => bench[Symbol.asyncDispose]())

  test('the events of a resource arrive in order; a failing delivery delays only its resource', async () => {
    const tenant = await newTenant(bench)
    const [stubborn, ...others] = Array.from({ length: 6 }, () => randomUUID())
    let fromOthers = 0
    await using receiver = await startReceiver({
      // The first event of one resource fails until all events of the others have arrived.
      answers: ({ body }) => {
        const isOther = what(body).resource.id !== stubborn
        if (isOther) fromOthers++
        return isOther || fromOthers === 5 * TYPES.length ? 204 : 500
      },
    })
    await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
    for (const type of TYPES)
      for (const id of [stubborn ?? '', ...others])
        await tenant.write((own) =>
          emit(own, { eventType: type, resourceId: id, data: [] }, new Date()),
        )
    await allEnded(tenant, 6 * TYPES.length)
    const arrived = receiver.requests.map(({ body }) => what(body))
    const typesOf = (id: string | undefined) =>
      arrived.filter(({ resource }) => resource.id === id).map(({ event_type }) => event_type)
    for (const id of others) expect(typesOf(id)).toEqual(TYPES)
    const ofStubborn = typesOf(stubborn)
    const refused = ofStubborn.lastIndexOf('task.created')
    expect(refused).toBeGreaterThan(0)
    expect(ofStubborn).toEqual([...Array(refused).fill('task.created'), ...TYPES])
  })

  test('after the final failure of a delivery the next one is sent', async () => {
    await using failing = await newBench()
    await failing.start({ delays: '0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02' })
    const tenant = await newTenant(failing)
    await using receiver = await startReceiver({
      answers: ({ body }) => (what(body).event_type === 'task.created' ? 500 : 204),
    })
    await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
    const id = randomUUID()
    await tenant.write((own) =>
      emit(own, { eventType: 'task.created', resourceId: id, data: [] }, new Date()),
    )
    await tenant.write((own) =>
      emit(own, { eventType: 'task.updated', resourceId: id, data: [] }, new Date()),
    )
    await receiver.received(11)
    expect(receiver.requests.map(({ body }) => what(body).event_type)).toEqual([
      ...Array(10).fill('task.created'),
      'task.updated',
    ])
  })

  test('an event emitted while the delivery before it ends is scheduled', async () => {
    const tenant = await newTenant(bench)
    await using receiver = await startReceiver()
    await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
    const id = randomUUID()
    const count = 150
    for (let number = 0; number < count; number++)
      await tenant.write((own) =>
        emit(own, { eventType: 'task.updated', resourceId: id, data: [] }, new Date()),
      )
    await receiver.received(count, 30_000)
    const made = await listDeliveries(tenant.scope, { limit: 1_000 })
    await allEnded(tenant, count)
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(
      made.map(({ id }) => id).reverse(),
    )
  })

  test('waiting deliveries fail when the webhook is disabled', async () => {
    const tenant = await newTenant(bench)
    await using receiver = await startReceiver({ answers: ['hang'] })
    const webhookId = await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
    const id = randomUUID()
    for (let number = 0; number < 3; number++)
      await tenant.write((own) =>
        emit(own, { eventType: 'task.updated', resourceId: id, data: [] }, new Date()),
      )
    await receiver.received(1)
    await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
    const states = async () =>
      (await listDeliveries(tenant.scope, { limit: 10 })).map(({ state, nextAttemptAt }) => ({
        state,
        nextAttemptAt,
      }))
    expect(await states()).toEqual(Array(3).fill({ state: 'failed', nextAttemptAt: null }))
    expect(receiver.requests).toHaveLength(1)
  })
})
