/** The list of undelivered deliveries of an account. */
import { expect, test } from 'vitest'
import { listUndelivered } from '../../records/deliveries.ts'
import { cancelDelivery } from '../../records/delivery-commands.ts'
import { disableWebhook } from '../../records/webhooks.ts'
import { sharedApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER, newSubscriber } from './harness.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

test('lists the pending, retrying and failed deliveries of all webhooks, newest first, with their last error', async () => {
  await using broken = await newSubscriber(app, { answers: [500] })
  const { tenant } = broken
  await using healthy = await startReceiver()
  await tenant.subscribe(healthy.url)
  await using slow = await startReceiver({ answers: ['hang'] })
  const slowId = await tenant.subscribe(slow.url)
  await tenant.emit()
  await until('one is delivered and one has failed once', async () => {
    const states = (await tenant.deliveries()).map(({ state }) => state)
    return states.includes('delivered') && states.includes('retrying')
  })
  const [first] = await listUndelivered(tenant.scope, { webhookId: broken.webhookId, limit: 9 })
  await tenant.write((scope) => cancelDelivery(scope, { id: first?.id ?? '' }, new Date()))
  expect(await listUndelivered(tenant.scope, { limit: 9 })).toMatchObject([
    { webhookId: slowId, state: 'pending', attempts: 0, lastError: null },
    {
      webhookId: broken.webhookId,
      state: 'failed',
      failureReason: 'cancelled',
      attempts: 1,
      lastError: 'The endpoint responded with status 500.',
    },
  ])
  const [newest, oldest] = await listUndelivered(tenant.scope, { limit: 9 })
  expect(await listUndelivered(tenant.scope, { beforeId: newest?.id, limit: 9 })).toEqual([oldest])
  await tenant.write((scope) => disableWebhook(scope, slowId, new Date()))
})
