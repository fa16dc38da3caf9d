import { assertFound } from '../errors.ts'
import { findChanges, nextUpdatedAt } from '../records/changes.ts'
import {
  findWebhook,
  lockWebhook,
  type PublicWebhook,
  toPublicWebhook,
} from '../records/webhooks.ts'
import { assertWebhookFields, changeWebhook, switchWebhook } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function updateWebhook(call: Call<'updateWebhook'>): Promise<PublicWebhook> {
  const { scope, path, body, config, now, assertMatch } = call
  const webhook = await lockWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const current = toPublicWebhook(webhook)
  assertMatch(current)
  assertWebhookFields(body, config)

  const changes = findChanges(current, body)
  if (changes === undefined) return current
  const { event_types: eventTypes, enabled, ...fields } = changes
  const change = { ...call, now: new Date(nextUpdatedAt(current, now)) }
  await changeWebhook(change, config.secretKeys, webhook.id, { ...fields, eventTypes })
  if (enabled !== undefined) await switchWebhook(change, webhook.id, enabled)
  const updated = await findWebhook(scope, webhook.id)
  assertFound(updated, 'webhook')
  return toPublicWebhook(updated)
}
