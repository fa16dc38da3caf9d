import { assertFound, throwConflict } from '../errors.ts'
import { findDelivery, type PublicDelivery, toPublicDelivery } from '../records/deliveries.ts'
import { findWebhook } from '../records/webhooks.ts'
import { sendTestEvent } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function testWebhook(call: Call<'testWebhook'>): Promise<PublicDelivery> {
  const { scope, path } = call
  const webhook = await findWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const id = await sendTestEvent(call, webhook.id).catch(throwConflict)
  const delivery = id === undefined ? undefined : await findDelivery(scope, id)
  assertFound(delivery, 'webhook')
  return toPublicDelivery(delivery)
}
