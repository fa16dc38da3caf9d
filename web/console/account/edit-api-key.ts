/** The page of one API key: its facts, and the form that updates it. */
import { Refused } from '../../../errors.ts'
import {
  type AccessLevel,
  type ApiKey,
  type OwnedApiKey,
  revokeApiKey,
  updateApiKey,
} from '../../../records/api-keys.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import { type Html, html } from '../../shared/html.ts'
import { type Errors, form, formStatus, hasErrors } from '../form-fields.ts'
import { type ConsolePage, isOwner, type PageResult, redirect, type Visit } from '../page.ts'
import { card, copyableId, facts, pill, timeElement } from '../ui.ts'
import {
  accessPill,
  CRUMBS,
  keyFields,
  keyOwner,
  keyPrefix,
  keyRequestsLink,
  loadKey,
  readKeyForm,
  revokeButton,
} from './api-key-parts.ts'

export async function keyPage(visit: Visit): Promise<ConsolePage> {
  return renderKey(visit, await loadKey(visit))
}

function renderKey(visit: Visit, key: OwnedApiKey, errors: Errors = {}): ConsolePage {
  const { form: input } = visit
  const values = hasErrors(errors)
    ? { name: input.get('name') ?? '', accessLevel: input.get('access_level') ?? '' }
    : key
  const editForm = form(
    { to: `/api-keys/${key.id}`, submit: 'Save', cancel: '/api-keys', errors },
    keyFields(values, errors),
  )
  const isActive = key.revokedAt === null
  return {
    title: key.name,
    crumbs: CRUMBS,
    actions: isActive ? revokeButton(key) : pill('quiet', 'Revoked'),
    status: formStatus(errors),
    isNarrow: true,
    body: [card('', keyFacts(visit, key)), isActive && card('Name and access', editForm)],
  }
}

function keyFacts({ now, user }: Visit, key: OwnedApiKey): Html {
  const isRevoked = key.revokedAt !== null
  const history = html`<a href="/console/audit-log?target=${key.id}">Change history</a>`
  return facts([
    ['Prefix', keyPrefix(key)],
    ['ID', copyableId(key.id)],
    [
      'Owner',
      isOwner(user)
        ? html`<a href="/console/people/${key.owner.id}">${keyOwner(key)}</a>`
        : keyOwner(key),
    ],
    isRevoked && ['Access', accessPill(key)],
    isRevoked && ['Revoked', timeElement(key.revokedAt, now)],
    ['Created', timeElement(key.createdAt, now)],
    ['Last used', html`${timeElement(key.lastUsedAt, now)} · ${keyRequestsLink(key)}`],
    isOwner(user) && ['History', history],
  ])
}

export async function updateKey(visit: Visit): Promise<PageResult> {
  const found = await loadKey(visit)
  const { key, errors } = readKeyForm(visit)
  if (hasErrors(errors)) return renderKey(visit, found, errors)
  const name = key.name.trim()
  await visit.change(async (scope) => {
    const before = await updateApiKey(scope, found.id, key, visit.now)
    if (!before)
      throw new Refused(`The key “${found.name}” is revoked. Create another key instead.`)
    assertCanRaise(visit, before, key.accessLevel)
    const changes = changesBetween(
      { name: before.name, access_level: before.accessLevel },
      { name, access_level: key.accessLevel },
    )
    const target = { type: 'api_key', id: found.id, name } as const
    if (changes) await visit.audit(scope, 'api_key.changed', target, { changes })
  })
  return redirect('/api-keys', `Key “${name}” updated.`)
}

/** Throws `Refused` if an Admin raises the key of another user to Full Access. The key has the
 *  Finance permission of its owner, and the Admin may lack this permission. */
function assertCanRaise({ user }: Visit, before: ApiKey, accessLevel: AccessLevel): void {
  const isRaised = before.accessLevel === 'read_only' && accessLevel === 'full_access'
  if (isRaised && before.userId !== user.id && !isOwner(user))
    throw new Refused('Only the owner of the key and the Account Owner can give it Full Access.')
}

export async function revokeKey(visit: Visit): Promise<PageResult> {
  const { id, name } = await loadKey(visit)
  await visit.change(async (scope) => {
    const before = await revokeApiKey(scope, id, visit.now)
    if (before?.revokedAt === null)
      await visit.audit(scope, 'api_key.revoked', { type: 'api_key', id, name })
  })
  return redirect('/api-keys', `Key “${name}” revoked. Requests with it now fail.`)
}
