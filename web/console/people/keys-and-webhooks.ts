/** The API keys of a user and the webhooks that the user created, in the forms that change the access of the
 *  user. Both keep working when the user gets less access, so the forms ask what becomes of each. */
import { Refused } from '../../../errors.ts'
import {
  type ApiKey,
  handOverApiKey,
  listApiKeys,
  revokeApiKey,
  updateApiKey,
} from '../../../records/api-keys.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { listUsers, type User } from '../../../records/users.ts'
import { listWebhooks, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { switchWebhook } from '../../../webhooks/webhook-changes.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ACCESS_LEVELS } from '../account/api-key-parts.ts'
import { selectField } from '../form-fields.ts'
import type { Visit } from '../page.ts'
import { parseId } from '../query.ts'
import { timeElement } from '../ui.ts'

export interface KeysAndWebhooks {
  /** The keys that are not revoked. */
  keys: ApiKey[]
  webhooks: Webhook[]
  /** The users to whom keys can be handed over. */
  others: User[]
}

export async function loadKeysAndWebhooks({ scope }: Visit, user: User): Promise<KeysAndWebhooks> {
  const [keys, webhooks, users] = await Promise.all([
    listApiKeys(scope, user.id),
    listWebhooks(scope),
    listUsers(scope),
  ])
  return {
    keys: keys.filter(({ revokedAt }) => revokedAt === null),
    webhooks: webhooks.filter(({ createdBy }) => createdBy === user.id),
    others: users.filter(({ id, status }) => id !== user.id && status === 'active'),
  }
}

/** Empty if the user has no keys and no webhooks. `keyHint` says what happens to keys that are kept. */
export function keysAndWebhooksFields(
  { form, now }: Visit,
  { keys, webhooks, others }: KeysAndWebhooks,
  keyHint: string,
): Content {
  if (keys.length === 0 && webhooks.length === 0) return false
  const choose = (
    name: string,
    label: Content,
    choices: Record<string, string | false>,
  ): Html => html`<div class="segments-row">
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      ${Object.entries(choices).map(([value, text]) => {
        const selected = form.get(name) === value && html` selected`
        return text && html`<option value="${value}"${selected}>${text}</option>`
      })}
    </select>
  </div>`
  return html`<fieldset class="field">
    <legend>API keys and webhooks</legend>
    <p class="hint">${keyHint} Webhooks belong to the account and keep sending.</p>
    ${keys.map((key) =>
      choose(`key-${key.id}`, keyLabel(key, now), {
        '': 'Keep',
        read_only: key.accessLevel === 'full_access' && 'Lower to Read Only',
        hand_over: others.length > 0 && 'Hand over',
        revoke: 'Revoke',
      }),
    )}
    ${webhooks.map((webhook) =>
      choose(`webhook-${webhook.id}`, webhookLabel(webhook), {
        '': 'Keep',
        disable: webhook.enabled && 'Disable',
      }),
    )}
    ${
      keys.length > 0 &&
      others.length > 0 &&
      html`<div class="for-new-owner">${selectField({
        name: 'new_owner',
        label: 'Hand over to',
        hint:
          'A key has the Finance and webhook permissions and the rate limit of its owner. Whoever ' +
          'knows the key can still use it.',
        value: form.get('new_owner') ?? '',
        none: 'Choose a user',
        isRequired: true,
        choices: others.map(({ id, fullName }) => ({ value: id, label: fullName })),
      })}</div>`
    }
  </fieldset>`
}

function keyLabel({ name, tokenPrefix, accessLevel, lastUsedAt }: ApiKey, now: Date): Content {
  const usage = lastUsedAt === null ? 'never used' : html`last used ${timeElement(lastUsedAt, now)}`
  return html`${name} <code>${tokenPrefix}…</code>
    <small class="muted">${ACCESS_LEVELS[accessLevel]}, ${usage}</small>`
}

function webhookLabel(webhook: Webhook): Content {
  const state = webhook.enabled ? 'Webhook' : 'Webhook, disabled'
  return html`${webhookName(webhook)} <small class="muted">${state}</small>`
}

/** Makes the changes that the form names, in the transaction of the change of the user. Returns their number. */
export async function changeKeysAndWebhooks(
  visit: Visit,
  scope: WriteScope,
  user: User,
): Promise<number> {
  const { keys, webhooks } = await loadKeysAndWebhooks({ ...visit, scope }, user)
  const changedKeys = keys.filter(({ id }) => visit.form.get(`key-${id}`))
  const disabled = webhooks.filter(({ id }) => visit.form.get(`webhook-${id}`) === 'disable')
  for (const key of changedKeys) await changeKey(visit, scope, user, key)
  for (const { id } of disabled) await switchWebhook({ ...visit, scope }, id, false)
  return changedKeys.length + disabled.length
}

/** Throws `Refused` if the key was revoked meanwhile. */
async function changeKey(
  { form, now, audit }: Visit,
  scope: WriteScope,
  user: User,
  { id, name }: ApiKey,
): Promise<void> {
  const target = { type: 'api_key', id, name } as const
  const value = form.get(`key-${id}`)
  switch (value) {
    case 'read_only': {
      const before = await updateApiKey(scope, id, { accessLevel: value }, now)
      if (!before) throw toRevoked(name)
      const changes = { access_level: { from: before.accessLevel, to: value } }
      return audit(scope, 'api_key.changed', target, { changes })
    }
    case 'hand_over': {
      const newOwner = parseId(form.get('new_owner'))
      if (newOwner === undefined) throw new Refused('Choose who the keys are handed over to.')
      const owner = await handOverApiKey(scope, id, newOwner, now)
      if (!owner) throw toRevoked(name)
      const changes = { owner: { from: user.fullName, to: owner.fullName } }
      return audit(scope, 'api_key.handed_over', target, { changes })
    }
    case 'revoke': {
      const before = await revokeApiKey(scope, id, now)
      if (before?.revokedAt !== null) throw toRevoked(name)
      return audit(scope, 'api_key.revoked', target)
    }
    default:
      throw new Refused(`Choose what happens to the key “${name}”.`)
  }
}

function toRevoked(name: string): Refused {
  return new Refused(`The key “${name}” is revoked. Nothing was changed.`)
}
