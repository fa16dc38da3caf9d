/** The list of API keys. The Owner and Admins see it; Admins need a grant to manage keys. */
import { validate as isUuid } from 'uuid'
import { listAccountKeys, type OwnedApiKey } from '../../../records/api-keys.ts'
import { type Html, html } from '../../shared/html.ts'
import { type ConsolePage, get, isAdmin, post, type Route, type Visit } from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import { buttonLink, card, empty, pager, table, tabs, timeElement } from '../ui.ts'
import { accessPill, keyOwner, keyPrefix, mayManageKeys, revokeButton } from './api-key-parts.ts'
import { createKey, newKeyPage } from './create-api-key.ts'
import { keyPage, revokeKey, updateKey } from './edit-api-key.ts'

export const apiKeyRoutes: Route[] = [
  get('/api-keys', isAdmin, keysPage),
  post('/api-keys', mayManageKeys, createKey),
  get('/api-keys/new', mayManageKeys, (visit) => newKeyPage(visit)),
  get('/api-keys/:key', mayManageKeys, keyPage),
  post('/api-keys/:key', mayManageKeys, updateKey),
  post('/api-keys/:key/revoke', mayManageKeys, revokeKey),
]

const KEYS_PER_PAGE = 50

async function keysPage(visit: Visit): Promise<ConsolePage> {
  const { user, query, scope } = visit
  const isRevoked = query.get('state') === 'revoked'
  const before = query.get('before')
  const found = await listAccountKeys(scope, {
    isRevoked,
    beforeId: before !== null && isUuid(before) ? before : undefined,
    limit: KEYS_PER_PAGE + 1,
  })
  const keys = found.slice(0, KEYS_PER_PAGE)
  const hasMore = found.length > keys.length
  const firstPage = `/api-keys${isRevoked ? '?state=revoked' : ''}`
  const nextPage = `${firstPage}${isRevoked ? '&' : '?'}before=${keys.at(-1)?.id}`
  const canManage = mayManageKeys(user, {})
  return {
    title: 'API keys',
    lead: 'API keys let your integrations call the API with their creator’s permissions.',
    actions: canManage && buttonLink('/api-keys/new', 'Create a key', 'primary'),
    body: [
      !canManage && (await readOnlyNote(visit, 'API keys')),
      html`<div class="above-table">${keyTabs(isRevoked)}</div>`,
      card('', [
        keys.length === 0 ? noKeys(isRevoked, canManage) : keysTable(visit, keys, isRevoked),
        pager({
          previous: before === null ? undefined : firstPage,
          next: hasMore ? nextPage : undefined,
        }),
      ]),
    ],
  }
}

function keyTabs(isRevoked: boolean): Html {
  return tabs('API keys', [
    { label: 'Active', to: '/api-keys', isCurrent: !isRevoked },
    { label: 'Revoked', to: '/api-keys?state=revoked', isCurrent: isRevoked },
  ])
}

function noKeys(isRevoked: boolean, canManage: boolean): Html {
  if (isRevoked)
    return empty('No revoked keys', 'Revoke a key that is lost, leaked or no longer needed.')
  return empty(
    'No API keys yet',
    'Programs send their key with each request, as “Authorization: Bearer”. ' +
      'Create a key for each program, so that you can tell them apart and revoke one alone.',
    canManage && buttonLink('/api-keys/new', 'Create the first key', 'primary'),
  )
}

function keysTable({ user, now }: Visit, keys: OwnedApiKey[], isRevoked: boolean): Html {
  const canManage = mayManageKeys(user, {})
  const hasActions = canManage && !isRevoked
  return table(
    [
      'Name',
      'Owner',
      'Access',
      'Created',
      'Last used',
      ...(isRevoked ? ['Revoked'] : []),
      ...(hasActions ? [{ label: 'Actions', isHidden: true }] : []),
    ],
    keys.map((key) => ({
      cells: [
        nameCell(key, canManage),
        keyOwner(key),
        accessPill(key),
        timeElement(key.createdAt, now),
        timeElement(key.lastUsedAt, now),
        ...(isRevoked ? [timeElement(key.revokedAt, now)] : []),
        ...(hasActions ? [actionsCell(key)] : []),
      ],
    })),
    { label: 'API keys' },
  )
}

function nameCell(key: OwnedApiKey, canManage: boolean): Html {
  const name = canManage
    ? html`<a href="/console/api-keys/${key.id}">${key.name}</a>`
    : html`<strong>${key.name}</strong>`
  return html`<span class="two-lines">
    ${name}
    <small class="muted">${keyPrefix(key)}</small>
  </span>`
}

function actionsCell(key: OwnedApiKey): Html {
  return html`<span class="row-actions">
    ${buttonLink(`/api-keys/${key.id}`, 'Edit')}
    ${revokeButton(key)}
  </span>`
}
