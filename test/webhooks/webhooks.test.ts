/** The webhooks of an account: their number, the rotation of a signing secret, and what ends the
 *  deliveries. */
import { describe, expect, test } from 'vitest'
import { retryDelivery } from '../../records/delivery-commands.ts'
import { FIXED_DEFAULTS, setQuota } from '../../records/quotas.ts'
import { activateSecret, NoNextSecret, prepareSecret } from '../../records/webhook-secrets.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  TooManyWebhooks,
} from '../../records/webhooks.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { sharedApp } from '../helpers.ts'
import { signatureOf } from '../receiver.ts'
import { NEVER, newSubscriber, newTenant } from './harness.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

test('an account has at most 50 webhooks; deleting one allows another', async () => {
  const tenant = await newTenant(app)
  const firstId = await tenant.subscribe('https://example.com/')
  for (let count = 1; count < FIXED_DEFAULTS.webhooks; count++)
    await tenant.subscribe('https://example.com/')
  await expect(tenant.subscribe('https://example.com/')).rejects.toThrow(TooManyWebhooks)
  await tenant.write((scope) => deleteWebhook(scope, firstId, new Date()))
  await tenant.subscribe('https://example.com/')
})

test('a quota of one webhook: the refusal says "1 webhook"', async () => {
  const tenant = await newTenant(app)
  await tenant.write((own) => setQuota(own, 'webhooks', 1))
  await tenant.subscribe('https://example.com/')
  await expect(tenant.subscribe('https://example.com/')).rejects.toThrow(
    'An account may have at most 1 webhook. Delete one first.',
  )
})

test('secret rotation: the next secret signs only after its activation', async () => {
  await using subscriber = await newSubscriber(app)
  const { tenant, receiver, webhookId } = subscriber
  const [secret, next] = [await tenant.secretOf(webhookId), newSecret()]
  const activate = () => tenant.write((scope) => activateSecret(scope, webhookId, new Date()))
  await expect(activate()).rejects.toThrow(NoNextSecret)
  const sealed = sealSecret(app.config.secretKeys.newest(), webhookId, next)
  await tenant.write((scope) => prepareSecret(scope, webhookId, sealed, new Date()))
  await tenant.settled((await tenant.emitOne()).id)
  await activate()
  await tenant.settled((await tenant.emitOne()).id)
  expect(receiver.requests.map(({ headers }) => headers['x-service-signature'])).toEqual(
    [secret, next].map((key, index) =>
      signatureOf(key, receiver.requests[index]?.body ?? Buffer.of()),
    ),
  )
})

describe('a webhook that is disabled or deleted', () => {
  test.each([
    { name: 'disabled', end: disableWebhook, reason: 'webhook_disabled' },
    { name: 'deleted', end: deleteWebhook, reason: 'webhook_deleted' },
  ])('$name: its scheduled deliveries fail, and a retry is refused', async ({ end, reason }) => {
    await using subscriber = await newSubscriber(app, { answers: [500] })
    const { tenant, receiver, webhookId } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    await tenant.write((scope) => end(scope, webhookId, new Date()))
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: reason,
      nextAttemptAt: null,
      attempts: 1,
    })
    const retry = tenant.write((scope) => retryDelivery(scope, { id, webhookId }, new Date()))
    await expect(retry).rejects.toMatchObject({ code: reason })
    expect(receiver.requests).toHaveLength(1)
  })

  test('enabled again: its failed deliveries can be retried', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, 204] })
    const { tenant, webhookId } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    expect(await tenant.find(id)).toMatchObject({ state: 'failed', nextAttemptAt: null })
    await tenant.write((scope) => retryDelivery(scope, { id, webhookId }, new Date()))
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
  })

  test('disabled while an attempt is in flight: the success of the attempt counts', async () => {
    await using subscriber = await newSubscriber(app, { answers: [{ afterMs: 300 }] })
    const { tenant, receiver, webhookId } = subscriber
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    expect(await tenant.find(id)).toMatchObject({ state: 'failed' })
    await tenant.reached(id, 'delivered')
    expect(await tenant.find(id)).toMatchObject({ attempts: 1, failureReason: null })
  })
})
