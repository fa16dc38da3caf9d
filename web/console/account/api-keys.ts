/** The list of API keys. The Owner and Admins see it; Admins need a grant to manage keys. */
import { listAccountKeys, type OwnedApiKey } from '../../../records/api-keys.ts'
import { findUser, type User } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { counted } from '../format.ts'
import {
  type ConsolePage,
  canManageKeys,
  get,
  getFromStandby,
  isOwnerOrAdmin,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { parseId, toListPage, withQuery } from '../query.ts'
import { readOnlyNote } from '../read-only-note.ts'
import { buttonLink, card, empty, pager, table, tabs, timeElement, twoLines } from '../ui.ts'
import { accessPill, keyOwner, keyPrefix, keyRequestsLink, revokeButton } from './api-key-parts.ts'
import { createKey, newKeyPage } from './create-api-key.ts'
import { keyPage, revokeKey, updateKey } from './edit-api-key.ts'

export const apiKeyRoutes: Route[] = [
  getFromStandby('/api-keys', isOwnerOrAdmin, keysPage),
  post('/api-keys', canManageKeys, createKey),
  get('/api-keys/new', canManageKeys, (visit) => newKeyPage(visit)),
  get('/api-keys/:key', canManageKeys, keyPage),
  post('/api-keys/:key', canManageKeys, updateKey),
  post('/api-keys/:key/revoke', canManageKeys, revokeKey),
]

const KEYS_PER_PAGE = 50

async function keysPage(visit: Visit): Promise<ConsolePage> {
  const { user, query, scope, config } = visit
  const { auditLog } = config.retentionDays
  const isRevoked = query.get('state') === 'revoked'
  const userId = parseId(query.get('user'))
  const olderThan = parseId(query.get('before'))
  const found = await listAccountKeys(scope, {
    isRevoked,
    userId,
    beforeId: olderThan,
    limit: KEYS_PER_PAGE + 1,
  })
  const { items: keys, hasNewer, hasOlder } = toListPage(found, KEYS_PER_PAGE, { olderThan })
  const owner = userId === undefined ? undefined : await findUser(scope, userId)
  const input = { state: isRevoked ? 'revoked' : '', user: userId ?? '' }
  const canManage = canManageKeys(user)
  return {
    title: 'API keys',
    lead: isRevoked
      ? `Revoked keys are refused. They stay in this list for ${counted(auditLog, 'day')}.`
      : 'Programs call the API with a key. A key belongs to the user who creates it.',
    actions: canManage && buttonLink('/api-keys/new', 'Create API key', 'primary'),
    body: [
      !canManage && (await readOnlyNote(visit, 'API keys')),
      html`<div class="above-table">${keyTabs(isRevoked, userId)}</div>`,
      userId !== undefined && ownerFilter(owner, input),
      card('', [
        keys.length === 0
          ? noKeys(isRevoked, userId !== undefined)
          : keysTable(visit, keys, isRevoked),
        pager({
          previous: hasNewer ? withQuery('/api-keys', input) : undefined,
          next: hasOlder
            ? withQuery('/api-keys', { ...input, before: keys.at(-1)?.id })
            : undefined,
        }),
      ]),
    ],
  }
}

function keyTabs(isRevoked: boolean, user?: string): Html {
  const path = (state: string): string => withQuery('/api-keys', { state, user })
  return tabs('API keys', [
    { label: 'Active', to: path(''), isCurrent: !isRevoked },
    { label: 'Revoked', to: path('revoked'), isCurrent: isRevoked },
  ])
}

function ownerFilter(owner: User | undefined, { state }: { state: string }): Html {
  return html`<p class="note quiet note-with-action">
    <span>Only keys of ${owner?.fullName ?? 'a former user'}.</span>
    ${buttonLink(withQuery('/api-keys', { state }), 'Show all keys', 'quiet')}
  </p>`
}

function noKeys(isRevoked: boolean, isFiltered: boolean): Html {
  if (isFiltered) return empty('No keys', 'This user has no such keys.')
  if (isRevoked)
    return empty('No revoked keys', 'Revoke a key that is lost, leaked or no longer needed.')
  return empty(
    'No API keys yet',
    'Programs send their key with each request, as “Authorization: Bearer”. ' +
      'Create a key for each program, so that you can tell them apart and revoke one alone.',
  )
}

function keysTable({ user, now }: Visit, keys: OwnedApiKey[], isRevoked: boolean): Html {
  const canManage = canManageKeys(user)
  const hasActions = canManage && !isRevoked
  const columns = [
    'Name',
    'Owner',
    'Access',
    'Created',
    'Last used',
    ...(isRevoked ? ['Revoked'] : []),
    ...(hasActions ? [{ label: 'Actions', isHidden: true }] : []),
  ]
  const rows = keys.map((key) => ({
    cells: [
      nameCell(key, canManage),
      keyOwner(key),
      accessPill(key),
      timeElement(key.createdAt, now),
      timeElement(key.lastUsedAt, now),
      ...(isRevoked ? [timeElement(key.revokedAt, now)] : []),
      ...(hasActions ? [html`<span class="row-actions">${revokeButton(key)}</span>`] : []),
    ],
  }))
  return table('API keys', columns, rows, 'keys')
}

function nameCell(key: OwnedApiKey, canManage: boolean): Html {
  const name = canManage
    ? html`<a href="/console/api-keys/${key.id}">${key.name}</a>`
    : html`<strong>${key.name}</strong>`
  return twoLines(name, html`${keyPrefix(key)} · ${keyRequestsLink(key)}`)
}
