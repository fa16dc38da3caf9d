/** Parts that the pages of API keys share. */
import {
  type AccessLevel,
  accessLevels,
  findAccountKey,
  listAccountKeys,
  type OwnedApiKey,
} from '../../../records/api-keys.ts'
import type { Scope } from '../../../records/database/scope.ts'
import { parseName } from '../../../records/names.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Choice, checkFields, choiceField, type Errors, textField } from '../form-fields.ts'
import type { Visit } from '../page.ts'
import { parseId, withQuery } from '../query.ts'
import { actionForm, code, confirmButton, pill } from '../ui.ts'

export const CRUMBS = [{ label: 'API keys', to: '/api-keys' }]

export const ACCESS_LEVELS: Record<AccessLevel, string> = {
  full_access: 'Full Access',
  read_only: 'Read Only',
}

const ACCESS_HINTS: Record<AccessLevel, string> = {
  full_access: 'Reads, creates, updates and deletes records.',
  read_only: 'Reads records. Other requests fail with 403.',
}

/** Loads the key whose ID is in the page's URL. Throws 404 if the account has no such key. */
export async function loadKey({ scope, params, ctx }: Visit): Promise<OwnedApiKey> {
  return (await findAccountKey(scope, params.key ?? '')) ?? ctx.throw(404)
}

export const keyPrefix = (key: OwnedApiKey): Html => code(`${key.tokenPrefix}…`)

/** All requests with the key that the log has. */
export function keyRequestsLink({ id }: OwnedApiKey): Html {
  const path = withQuery('/requests', { key: id, range: '30d' })
  return html`<a href="/console${path}">Requests</a>`
}

export function keyOwner({ owner }: OwnedApiKey): Content {
  return [owner.fullName, owner.status === 'deactivated' && [' ', pill('warn', 'Deactivated')]]
}

/** Coloured for keys that can change records. */
export function accessPill({ accessLevel }: OwnedApiKey): Html {
  return pill(accessLevel === 'full_access' ? 'busy' : 'quiet', ACCESS_LEVELS[accessLevel])
}

export function revokeButton({ id, name, lastUsedAt }: OwnedApiKey): Html {
  const usage = lastUsedAt === null ? ' Never used.' : ''
  return confirmButton('Revoke', {
    title: `Revoke “${name}”?`,
    text: `Requests with this key will fail immediately. This cannot be undone.${usage}`,
    body: actionForm({ to: `/api-keys/${id}/revoke`, label: 'Revoke key', style: 'danger' }),
  })
}

export interface KeyInput {
  name: string
  accessLevel: AccessLevel
}

/** Use `key` only if `errors` is empty. */
export function readKeyForm({ form }: Visit): { key: KeyInput; errors: Errors } {
  const name = form.get('name') ?? ''
  const accessLevel = accessLevels.find((level) => level === form.get('access_level'))
  const errors = checkFields({ name: () => parseName('The name', name) })
  if (name.trim() === '') errors.name = ['Enter a name.']
  if (!accessLevel) errors.access_level = ['Choose an access level.']
  return { key: { name, accessLevel: accessLevel ?? 'read_only' }, errors }
}

export function keyFields(values: { name: string; accessLevel: string }, errors: Errors): Content {
  return [
    textField({
      name: 'name',
      label: 'Name',
      hint: 'The program that uses the key, for example “Nightly import”.',
      value: values.name,
      maxLength: 200,
      isRequired: true,
      errors,
    }),
    choiceField({
      name: 'access_level',
      legend: 'Access',
      choices: accessLevels.map((value) => ({
        value,
        label: ACCESS_LEVELS[value],
        hint: ACCESS_HINTS[value],
      })),
      values: [values.accessLevel],
      errors,
    }),
  ]
}

const MAX_KEYS_OF_EACH_STATE = 100

/** The newest keys, and the chosen one, as choices of a filter. */
export async function keyChoices(scope: Scope, chosen = ''): Promise<Choice[]> {
  const [active, revoked] = await Promise.all([
    listAccountKeys(scope, { isRevoked: false, limit: MAX_KEYS_OF_EACH_STATE }),
    listAccountKeys(scope, { isRevoked: true, limit: MAX_KEYS_OF_EACH_STATE }),
  ])
  const keys = [...active, ...revoked]
  const chosenId = parseId(chosen)
  if (chosenId !== undefined && !keys.some(({ id }) => id === chosenId)) {
    const key = await findAccountKey(scope, chosenId)
    if (key) keys.push(key)
  }
  return keys.map(({ id, name, tokenPrefix, revokedAt }) => ({
    value: id,
    label: `${name} (${tokenPrefix}…)${revokedAt === null ? '' : ', revoked'}`,
  }))
}
