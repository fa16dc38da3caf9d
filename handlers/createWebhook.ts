import { InvalidInput } from '../errors.ts'
import { type PublicWebhook, TooManyWebhooks, toPublicWebhook } from '../records/webhooks.ts'
import { addWebhook, assertHeaderList, assertWebhookFields } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function createWebhook(call: Call<'createWebhook'>): Promise<PublicWebhook> {
  const { body, caller, config } = call
  assertWebhookFields(body, config)
  const { event_types: eventTypes, headers = [], ...fields } = body
  assertHeaderList(headers)
  const headerValues = Object.fromEntries(headers.map(({ name, value }) => [name, value]))
  const webhookFields = { ...fields, eventTypes, createdBy: caller.userId }
  const added = addWebhook(call, config.secretKeys, webhookFields, headerValues)
  const { webhook, secret } = await added.catch((error: unknown) => {
    if (error instanceof TooManyWebhooks) throw new InvalidInput({ webhooks: [error.message] })
    throw error
  })
  return { ...toPublicWebhook(webhook), secret }
}
