import { InvalidInput } from '../errors.ts'
import { type PublicWebhook, TooManyWebhooks, toPublicWebhook } from '../records/webhooks.ts'
import { addWebhook, assertWebhookFields } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function createWebhook(call: Call<'createWebhook'>): Promise<PublicWebhook> {
  const { body, caller, config } = call
  assertWebhookFields(body, config)
  const { event_types: eventTypes, ...fields } = body
  const webhookFields = { ...fields, eventTypes, createdBy: caller.userId }
  const added = addWebhook(call, config.secretKeys, webhookFields, {})
  const { webhook, secret } = await added.catch((error: unknown) => {
    if (error instanceof TooManyWebhooks) throw new InvalidInput({ webhooks: [error.message] })
    throw error
  })
  return { ...toPublicWebhook(webhook), secret }
}
