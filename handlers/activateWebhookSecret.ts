import { assertFound } from '../errors.ts'
import { lockWebhook, type PublicWebhook, toPublicWebhook } from '../records/webhooks.ts'
import { activateNextSecret } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function activateWebhookSecret(
  call: Call<'activateWebhookSecret'>,
): Promise<PublicWebhook> {
  const webhook = await lockWebhook(call.scope, call.path.webhook)
  assertFound(webhook, 'webhook')
  // A repeated request changes nothing.
  if (!webhook.hasNextSecret) return toPublicWebhook(webhook)
  const activated = await activateNextSecret(call, webhook.id)
  assertFound(activated, 'webhook')
  return toPublicWebhook(activated)
}
