import { assertFound } from '../errors.ts'
import { findWebhook, type PublicWebhook, toPublicWebhook } from '../records/webhooks.ts'
import type { Call } from './call.ts'

export async function getWebhook(call: Call<'getWebhook'>): Promise<PublicWebhook> {
  const webhook = await findWebhook(call.scope, call.path.webhook)
  assertFound(webhook, 'webhook')
  return toPublicWebhook(webhook)
}
