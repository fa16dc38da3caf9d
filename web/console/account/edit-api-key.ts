/** The page of one API key: its facts, and the form that updates it. */
import { Refused } from '../../../errors.ts'
import { type OwnedApiKey, revokeApiKey, updateApiKey } from '../../../records/api-keys.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Errors, form } from '../form-fields.ts'
import { type ConsolePage, isOwner, type PageResult, type Visit } from '../page.ts'
import { card, copyableId, facts, pill, timeElement } from '../ui.ts'
import {
  accessPill,
  keyFields,
  keyOwner,
  keyPrefix,
  loadKey,
  readKeyForm,
  revokeButton,
} from './api-key-parts.ts'

export async function keyPage(visit: Visit): Promise<ConsolePage> {
  return renderKey(visit, await loadKey(visit))
}

function renderKey(visit: Visit, key: OwnedApiKey, errors: Errors = {}): ConsolePage {
  const isActive = key.revokedAt === null
  const hasErrors = Object.keys(errors).length > 0
  const values = hasErrors
    ? {
        name: visit.form.get('name') ?? '',
        accessLevel: visit.form.get('access_level') ?? '',
      }
    : key
  return {
    title: key.name,
    crumbs: [{ label: 'API keys', to: '/api-keys' }],
    actions: isActive ? revokeButton(key) : pill('quiet', 'Revoked'),
    status: hasErrors ? 422 : 200,
    isNarrow: true,
    body: [
      card('', keyFacts(visit, key)),
      isActive &&
        card(
          'Name and access',
          form(
            { to: `/api-keys/${key.id}`, submit: 'Save', cancel: '/api-keys', errors },
            keyFields(values, errors),
          ),
        ),
    ],
  }
}

function keyFacts({ now, user }: Visit, key: OwnedApiKey): Html {
  const history = html`<a href="/console/audit-log?target=${key.id}">Change history</a>`
  const revoked: [string, Content][] = [
    ['Access', accessPill(key)],
    ['Revoked', timeElement(key.revokedAt, now)],
  ]
  return facts([
    ['Prefix', keyPrefix(key)],
    ['ID', copyableId(key.id)],
    ['Owner', keyOwner(key)],
    ...(key.revokedAt === null ? [] : revoked),
    ['Created', timeElement(key.createdAt, now)],
    ['Last used', timeElement(key.lastUsedAt, now)],
    ...(isOwner(user, {}) ? [['History', history] satisfies [string, Content]] : []),
  ])
}

export async function updateKey(visit: Visit): Promise<PageResult> {
  const found = await loadKey(visit)
  const { key, errors } = readKeyForm(visit)
  if (Object.keys(errors).length > 0) return renderKey(visit, found, errors)
  const name = key.name.trim()
  await visit.change(async (scope) => {
    const before = await updateApiKey(scope, found.id, key, visit.now)
    if (!before)
      throw new Refused(`The key “${found.name}” is revoked. Create another key instead.`)
    const changes = changesBetween(
      { name: before.name, access_level: before.accessLevel },
      { name, access_level: key.accessLevel },
    )
    if (changes)
      await visit.audit(scope, {
        action: 'api_key.changed',
        target: { type: 'api_key', id: found.id, name },
        details: { changes },
      })
  })
  return { to: '/api-keys', notice: { kind: 'ok', text: `Key “${name}” updated.` } }
}

export async function revokeKey(visit: Visit): Promise<PageResult> {
  const { id, name } = await loadKey(visit)
  await visit.change(async (scope) => {
    const before = await revokeApiKey(scope, id, visit.now)
    if (before?.revokedAt === null)
      await visit.audit(scope, { action: 'api_key.revoked', target: { type: 'api_key', id, name } })
  })
  return {
    to: '/api-keys',
    notice: { kind: 'ok', text: `Key “${name}” revoked. Requests with it now fail.` },
  }
}
