import { assertFound } from '../errors.ts'
import { lockWebhook, toPublicWebhook } from '../records/webhooks.ts'
import { removeWebhook } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function deleteWebhook(call: Call<'deleteWebhook'>): Promise<void> {
  const { scope, path, assertMatch } = call
  const webhook = await lockWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  assertMatch(toPublicWebhook(webhook))
  await removeWebhook(call, webhook.id)
}
