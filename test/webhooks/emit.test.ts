/** Which deliveries an event or a test event gets, and which events are refused. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { listUndelivered } from '../../records/deliveries.ts'
import { deleteWebhook, disableWebhook } from '../../records/webhooks.ts'
import { emit, emitMany, emitTest, InvalidEvent } from '../../webhooks/emit.ts'
import { sharedApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { emitFor, NEVER, newSubscriber, newTenant } from './harness.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe('event', () => {
  test('one delivery for each enabled and subscribed webhook', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant, receiver, webhookId } = subscriber
    await tenant.subscribe(receiver.url, { eventTypes: ['task.created'] })
    const disabledId = await tenant.subscribe(receiver.url)
    await tenant.write((scope) => disableWebhook(scope, disabledId, new Date()))
    await tenant.write((scope) =>
      emitMany(
        scope,
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
    const deliveries = await tenant.deliveries()
    expect(deliveries.map(({ webhookId, eventType }) => [webhookId, eventType])).toEqual([
      [webhookId, 'job_application.created'],
      [webhookId, 'participant.created'],
    ])
    await receiver.received(2)
  })

  test('a rollback removes the event and its deliveries', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant } = subscriber
    const broken = tenant.write(async (scope) => {
      await emitFor(scope, randomUUID(), 'participant.created')
      throw new Error('undone')
    })
    await expect(broken).rejects.toThrow('undone')
    expect(await tenant.scope.rows('events')).toEqual([])
    expect(await tenant.deliveries()).toEqual([])
  })

  test('an event that breaks asyncapi.yaml: neither the event nor the change is stored', async () => {
    const tenant = await newTenant(app)
    await tenant.subscribe('https://example.com/')
    const change = tenant.write(async (scope) => {
      await scope.rows('webhooks').update({ description: 'It happened' })
      await emit(
        scope,
        { eventType: 'participant.created', resourceId: 'no id', data: [] },
        new Date(),
      )
    })
    await expect(change).rejects.toThrow(InvalidEvent)
    await expect(change).rejects.toThrow(
      'An event participant.created breaks asyncapi.yaml: /resource/id must match format "uuid"',
    )
    const wrongData = { screening_outcome: 'perfect' } as unknown as { screening_outcome: null }
    await expect(
      tenant.write((scope) =>
        emit(
          scope,
          { eventType: 'job_application.created', resourceId: tenant.accountId, data: wrongData },
          new Date(),
        ),
      ),
    ).rejects.toThrow('/data/screening_outcome')
    expect(await tenant.scope.rows('events')).toEqual([])
    expect(await tenant.deliveries()).toEqual([])
    expect(await tenant.scope.rows('webhooks')).toMatchObject([{ description: '' }])
  })
})

describe('test event', () => {
  test('reaches its webhook, even when that is not subscribed to it, and stores no event', async () => {
    await using receiver = await startReceiver()
    await using other = await startReceiver()
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url, { eventTypes: ['task.created'] })
    await tenant.subscribe(other.url)
    const id = (await tenant.write((scope) => emitTest(scope, webhookId, new Date()))) ?? ''
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

  test('that fails: it has one attempt and is not listed as undelivered', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500] })
    const { tenant, webhookId } = subscriber
    const id = (await tenant.write((scope) => emitTest(scope, webhookId, new Date()))) ?? ''
    expect(await tenant.settled(id)).toMatchObject({
      state: 'failed',
      failureReason: 'attempt_failed',
      attempts: 1,
    })
    expect(await listUndelivered(tenant.scope, { limit: 9 })).toEqual([])
  })

  test('is refused for a disabled webhook, and does nothing for a deleted one', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant, receiver, webhookId } = subscriber
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    await expect(
      tenant.write((scope) => emitTest(scope, webhookId, new Date())),
    ).rejects.toMatchObject({ code: 'webhook_disabled' })
    await tenant.write((scope) => deleteWebhook(scope, webhookId, new Date()))
    expect(await tenant.write((scope) => emitTest(scope, webhookId, new Date()))).toBeUndefined()
    expect(receiver.requests).toEqual([])
  })
})
