import { assertFound, InvalidInput } from '../errors.ts'
import { findChanges, nextUpdatedAt } from '../records/changes.ts'
import {
  findWebhook,
  HeadersOfOtherHost,
  lockWebhook,
  NotForSlack,
  type PublicWebhook,
  toPublicWebhook,
} from '../records/webhooks.ts'
import {
  assertWebhookFields,
  changeWebhook,
  switchWebhook,
  toHeaderChange,
} from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function updateWebhook(call: Call<'updateWebhook'>): Promise<PublicWebhook> {
  const { scope, path, body, config, now, assertMatch } = call
  const webhook = await lockWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const current = toPublicWebhook(webhook)
  assertMatch(current)
  assertWebhookFields(body, config)

  const { headers: headerList, ...sent } = body
  const { secretKeys } = config
  const headers =
    headerList &&
    (await toHeaderChange(scope, secretKeys, webhook, { headers: headerList, url: sent.url }))
  const changes = findChanges(current, sent)
  if (changes === undefined && Object.keys(headers ?? {}).length === 0) return current
  const { event_types: eventTypes, enabled, ...fields } = changes ?? {}
  const change = { ...call, now: new Date(nextUpdatedAt(current, now)) }
  await changeWebhook(change, secretKeys, webhook.id, { ...fields, eventTypes, headers }).catch(
    (error: unknown) => {
      if (error instanceof NotForSlack)
        throw new InvalidInput({
          [sent.url === undefined ? 'event_types' : 'url']: [error.message],
        })
      if (error instanceof HeadersOfOtherHost) throw new InvalidInput({ headers: [error.message] })
      throw error
    },
  )
  if (enabled !== undefined) await switchWebhook(change, webhook.id, enabled)
  const updated = await findWebhook(scope, webhook.id)
  assertFound(updated, 'webhook')
  return toPublicWebhook(updated)
}
