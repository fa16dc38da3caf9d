import { assertFound } from '../errors.ts'
import {
  findWebhook,
  lockWebhook,
  type PublicWebhook,
  toPublicWebhook,
} from '../records/webhooks.ts'
import { prepareNextSecret } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function prepareWebhookSecret(
  call: Call<'prepareWebhookSecret'>,
): Promise<PublicWebhook> {
  const { scope, path, config } = call
  const locked = await lockWebhook(scope, path.webhook)
  assertFound(locked, 'webhook')
  const secret = await prepareNextSecret(call, config.secretKeys, locked.id)
  const webhook = await findWebhook(scope, locked.id)
  assertFound(webhook, 'webhook')
  return { ...toPublicWebhook(webhook), next_secret: secret ?? null }
}
