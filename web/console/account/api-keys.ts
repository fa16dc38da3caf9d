/** API keys: seen by the Owner and the Admins, managed by those of them who may. */
import { randomUUID } from 'node:crypto'
import { validate as isUuid } from 'uuid'
import { issueApiKey } from '../../../auth/api-key.ts'
import { Refused } from '../../../errors.ts'
import {
  type AccessLevel,
  accessLevels,
  findAccountKey,
  listAccountKeys,
  type OwnedApiKey,
  revokeApiKey,
  updateApiKey,
} from '../../../records/api-keys.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { assertName } from '../../../records/names.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { choiceField, type Errors, form, problemsOf, textField } from '../form-fields.ts'
import { count } from '../format.ts'
import {
  AlreadyCreated,
  createOnce,
  formKey,
  formKeyField,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import {
  type ConsolePage,
  get,
  isAdmin,
  isOwner,
  may,
  type PageResult,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  action,
  buttonLink,
  card,
  code,
  codeBlock,
  confirmed,
  copyableId,
  empty,
  facts,
  note,
  pager,
  pill,
  table,
  tabs,
  timeElement,
} from '../ui.ts'

const mayManage = may('api_keys')

export const apiKeyRoutes: Route[] = [
  get('/api-keys', isAdmin, keysPage),
  post('/api-keys', mayManage, createKey),
  get('/api-keys/new', mayManage, (visit) => newKeyPage(visit)),
  get('/api-keys/:key', mayManage, async (visit) => keyPage(visit, await findKey(visit))),
  post('/api-keys/:key', mayManage, changeKey),
  post('/api-keys/:key/revoke', mayManage, revokeKey),
]

const KEYS_PER_PAGE = 50
export const ACCESS_LEVELS: Record<AccessLevel, string> = {
  full_access: 'Full Access',
  read_only: 'Read Only',
}

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
  const state = isRevoked ? 'state=revoked' : ''
  const older =
    found.length > keys.length &&
    `/api-keys?${[state, `before=${keys.at(-1)?.id}`].filter(Boolean).join('&')}`
  const canManage = mayManage(user, {})
  return {
    title: 'API keys',
    lead: 'Programs call the API with them, on behalf of whoever created them.',
    actions: canManage && buttonLink('/api-keys/new', 'Create a key', 'primary'),
    body: html`${!canManage && (await readOnlyNote(visit, 'API keys'))}<div class="above-table">${tabs(
      'API keys',
      [
        { label: 'In use', to: '/api-keys', isCurrent: !isRevoked },
        { label: 'Revoked', to: '/api-keys?state=revoked', isCurrent: isRevoked },
      ],
    )}</div>${card('', [
      keys.length === 0 ? noKeys(isRevoked, canManage) : keysTable(visit, keys, isRevoked),
      pager({
        previous: before !== null ? `/api-keys${state && `?${state}`}` : undefined,
        next: older || undefined,
      }),
    ])}`,
  }
}

function noKeys(isRevoked: boolean, canManage: boolean): Html {
  if (isRevoked)
    return empty(
      'No key was revoked',
      'A key that is lost, leaked or not needed any more is revoked, and then listed here.',
    )
  return empty(
    'No API keys yet',
    'A program sends its key with each request, as “Authorization: Bearer”. Give each program one of its own: then you see which one did what, and can revoke it alone.',
    canManage && buttonLink('/api-keys/new', 'Create the first key', 'primary'),
  )
}

function keysTable({ user, now }: Visit, keys: OwnedApiKey[], isRevoked: boolean): Html {
  const canManage = mayManage(user, {})
  return table(
    [
      'Name',
      'Owner',
      'Access',
      'Created',
      'Last used',
      ...(isRevoked ? ['Revoked'] : []),
      ...(canManage && !isRevoked ? [{ label: 'Actions', isHidden: true }] : []),
    ],
    keys.map((key) => ({
      cells: [
        html`<span class="two-lines">${canManage ? html`<a href="/console/api-keys/${key.id}">${key.name}</a>` : html`<strong>${key.name}</strong>`}<small class="muted">${prefixOf(key)}</small></span>`,
        ownerOf(key),
        accessOf(key),
        timeElement(key.createdAt, now),
        timeElement(key.lastUsedAt, now),
        ...(isRevoked ? [timeElement(key.revokedAt, now)] : []),
        ...(canManage && !isRevoked
          ? [
              html`<span class="row-actions">${buttonLink(`/api-keys/${key.id}`, 'Edit')}${revokeButton(key)}</span>`,
            ]
          : []),
      ],
    })),
    { label: 'API keys' },
  )
}

const prefixOf = (key: OwnedApiKey): Html => code(`${key.tokenPrefix}…`)

function ownerOf({ owner }: OwnedApiKey): Html {
  return html`${owner.fullName}${owner.status === 'deactivated' && html` ${pill('warn', 'Deactivated')}`}`
}

/** Amber for what changes records. */
function accessOf({ accessLevel }: OwnedApiKey): Html {
  return pill(accessLevel === 'full_access' ? 'busy' : 'quiet', ACCESS_LEVELS[accessLevel])
}

function revokeButton({ id, name, lastUsedAt }: OwnedApiKey): Html {
  return confirmed('Revoke', {
    title: `Revoke “${name}”?`,
    text: `Every request with it is refused from the next one on. This cannot be undone.${lastUsedAt === null ? ' It was never used.' : ''}`,
    body: action({ to: `/api-keys/${id}/revoke`, label: 'Revoke the key', style: 'danger' }),
  })
}

function keyFields(given: { name: string; accessLevel: string }, errors: Errors): Content {
  return [
    textField({
      name: 'name',
      label: 'Name',
      hint: 'What uses it, such as “Nightly import”.',
      value: given.name,
      maxLength: 200,
      isRequired: true,
      errors,
    }),
    choiceField({
      name: 'access_level',
      legend: 'Access',
      choices: [
        {
          value: 'full_access',
          label: ACCESS_LEVELS.full_access,
          hint: 'Reads, creates, updates and deletes.',
        },
        {
          value: 'read_only',
          label: ACCESS_LEVELS.read_only,
          hint: 'Reads. Anything else is answered with 403.',
        },
      ],
      values: [given.accessLevel],
      errors,
    }),
  ]
}

interface GivenKey {
  name: string
  accessLevel: AccessLevel
}

function givenKey({ form: given }: Visit): { key: GivenKey; errors: Errors } {
  const name = given.get('name') ?? ''
  const accessLevel = accessLevels.find((level) => level === given.get('access_level'))
  const errors = problemsOf({ name: () => assertName('The name', name) })
  if (!accessLevel) errors.access_level = ['Choose what the key may do.']
  return { key: { name, accessLevel: accessLevel ?? 'read_only' }, errors }
}

const FINANCE: Record<string, string> = {
  none: 'With your Finance permission, None, payments are answered with 403.',
  read: 'With your Finance permission, View, it can read payments and not change them.',
  write: 'With your Finance permission, Edit, it reaches payments too.',
}

function newKeyPage(
  visit: Visit,
  errors: Errors = {},
  again: { key?: string; problem?: string } = {},
): ConsolePage {
  const { form: given, user, config } = visit
  return {
    title: 'Create an API key',
    crumbs: [{ label: 'API keys', to: '/api-keys' }],
    status: visit.ctx.method === 'POST' ? 422 : 200,
    isNarrow: true,
    body: card('', [
      form(
        {
          to: '/api-keys',
          submit: 'Create the key',
          cancel: '/api-keys',
          errors,
          problem: again.problem,
        },
        [
          formKeyField(again.key ?? formKey(visit)),
          keyFields(
            {
              name: given.get('name') ?? '',
              accessLevel: given.get('access_level') ?? 'read_only',
            },
            errors,
          ),
          html`<p class="muted">The key is yours: its requests count against your ${count(config.rateLimitPerMinute)} a minute, and it stops when you are deactivated. ${FINANCE[user.permissions.finance]}</p>`,
        ],
      ),
    ]),
  }
}

async function createKey(visit: Visit): Promise<PageResult> {
  const { key, errors } = givenKey(visit)
  if (Object.keys(errors).length > 0) return newKeyPage(visit, errors)
  try {
    const { token } = await visit.change((scope) =>
      createOnce(visit, scope, () => issueKey(visit, scope, key)),
    )
    return createdPage(visit, key, token)
  } catch (error) {
    if (!(error instanceof AlreadyCreated)) throw error
    if (error.isOther)
      return newKeyPage(visit, {}, { key: randomUUID(), problem: RESENT_WITH_CHANGES })
    return { to: `/api-keys/${error.id}`, notice: { kind: 'ok', text: CREATED_BEFORE } }
  }
}

const CREATED_BEFORE =
  'This key was already created and cannot be shown again. If you missed it, revoke it and create another one.'

async function issueKey(visit: Visit, scope: WriteScope, { name, accessLevel }: GivenKey) {
  const made = await issueApiKey(scope, { name, accessLevel, userId: visit.user.id }, visit.now)
  await visit.audit(scope, {
    action: 'api_key.created',
    target: { type: 'api_key', id: made.id, name: name.trim() },
    details: { access_level: accessLevel },
  })
  return made
}

/** The token is in this page and nowhere else. */
function createdPage(
  { config }: Visit,
  { name, accessLevel }: GivenKey,
  token: string,
): ConsolePage {
  const curl = `curl -H 'Authorization: Bearer ${token}' ${config.baseUrl}/public/v1/participants`
  return {
    title: `The key “${name.trim()}” is ready`,
    lead: ACCESS_LEVELS[accessLevel],
    crumbs: [{ label: 'API keys', to: '/api-keys' }],
    isNarrow: true,
    body: card(
      'Your new key',
      html`${note('warn', 'Copy it now: it is shown this once. If it is lost, revoke it and create another one.')}${codeBlock(token, 'key')}<h3 class="card-body">Try it</h3>${codeBlock(curl, 'command')}<p>${buttonLink('/api-keys', 'Done', 'primary')} <a href="/docs/" class="aside-link">Read the documentation</a></p>`,
    ),
  }
}

async function findKey({ scope, params, ctx }: Visit): Promise<OwnedApiKey> {
  return (await findAccountKey(scope, params.key?.toLowerCase() ?? '')) ?? ctx.throw(404)
}

function keyPage(visit: Visit, key: OwnedApiKey, errors: Errors = {}): ConsolePage {
  const { now, user, form: given } = visit
  const isSent = Object.keys(errors).length > 0
  const shown = isSent
    ? { name: given.get('name') ?? '', accessLevel: given.get('access_level') ?? '' }
    : { name: key.name, accessLevel: key.accessLevel }
  return {
    title: key.name,
    crumbs: [{ label: 'API keys', to: '/api-keys' }],
    actions: key.revokedAt === null ? revokeButton(key) : pill('quiet', 'Revoked'),
    status: isSent ? 422 : 200,
    isNarrow: true,
    body: [
      card(
        '',
        facts([
          ['Begins with', prefixOf(key)],
          ['Id', copyableId(key.id)],
          ['Owner', ownerOf(key)],
          ...(key.revokedAt === null
            ? []
            : [
                ['Access', accessOf(key)] as [string, Content],
                ['Revoked', timeElement(key.revokedAt, now)] as [string, Content],
              ]),
          ['Created', timeElement(key.createdAt, now)],
          ['Last used', timeElement(key.lastUsedAt, now)],
          ...(isOwner(user, {})
            ? [
                [
                  'History',
                  html`<a href="/console/audit-log?target=${key.id}">What was changed</a>`,
                ] as [string, Content],
              ]
            : []),
        ]),
      ),
      key.revokedAt === null &&
        card(
          'Name and access',
          form(
            { to: `/api-keys/${key.id}`, submit: 'Save', cancel: '/api-keys', errors },
            keyFields(shown, errors),
          ),
        ),
    ],
  }
}

async function changeKey(visit: Visit): Promise<PageResult> {
  const found = await findKey(visit)
  const { key, errors } = givenKey(visit)
  if (Object.keys(errors).length > 0) return keyPage(visit, found, errors)
  const name = key.name.trim()
  await visit.change(async (scope) => {
    const before = await updateApiKey(scope, found.id, key, visit.now)
    if (!before) throw new Refused(`The key “${found.name}” is revoked, and stays as it is`)
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
  return {
    to: '/api-keys',
    notice: { kind: 'ok', text: `The key “${name}” is changed, from its next request on.` },
  }
}

async function revokeKey(visit: Visit): Promise<PageResult> {
  const { id, name } = await findKey(visit)
  await visit.change(async (scope) => {
    const before = await revokeApiKey(scope, id, visit.now)
    if (before?.revokedAt === null)
      await visit.audit(scope, { action: 'api_key.revoked', target: { type: 'api_key', id, name } })
  })
  return {
    to: '/api-keys',
    notice: { kind: 'ok', text: `The key “${name}” is revoked: its next request is refused.` },
  }
}
