/** Who did what to keys, webhooks, people and the account, for the Owner. */
import { validate as isUuid } from 'uuid'
import { type AuditEntry, type AuditFilter, listAuditEntries } from '../../../records/audit-log.ts'
import { listUsers, type User } from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ACCESS_LEVELS } from '../account/api-keys.ts'
import { ROLES } from '../layout.ts'
import { get, isOwner, type Page, type Route, type Visit } from '../page.ts'
import {
  button,
  buttonLink,
  card,
  empty,
  icon,
  pager,
  selectField,
  table,
  timeOf,
  utc,
} from '../ui.ts'
import { MODULES, PERMISSIONS } from './people.ts'

export const auditLogRoutes: Route[] = [get('/audit-log', isOwner, auditLogPage)]

const ENTRIES_PER_PAGE = 50
const COMMAND_LINE = 'command-line'
/** By what stands before the dot of an action. */
const KINDS: Record<string, string> = {
  api_key: 'API keys',
  webhook: 'Webhooks',
  user: 'People and permissions',
  session: 'Signing in and out',
  account: 'The account',
}

async function auditLogPage(visit: Visit): Promise<Page> {
  const filter = filterOf(visit.query)
  const found = await listAuditEntries(visit.scope, { ...filter, limit: ENTRIES_PER_PAGE + 1 })
  const isBackwards = filter.afterId !== undefined
  const entries = isBackwards ? found.slice(-ENTRIES_PER_PAGE) : found.slice(0, ENTRIES_PER_PAGE)
  const hasMore = found.length > entries.length
  const hasNewer = isBackwards ? hasMore : filter.beforeId !== undefined
  const hasOlder = isBackwards || hasMore
  const address = (cursor: string, id: string | undefined): string =>
    `/audit-log?${new URLSearchParams([...kept(visit.query), [cursor, id ?? '']])}`
  return {
    title: 'Audit log',
    lead: 'Who did what, when and from where. Nothing is ever changed or removed here.',
    body: html`<div id="audit-log">${filters(visit, await listUsers(visit.scope))}${card('', [
      entries.length === 0 ? nothing(visit.query) : entriesTable(entries, visit),
      entries.length > 0 &&
        pager({
          previous: hasNewer ? address('after', entries[0]?.id) : undefined,
          next: hasOlder ? address('before', entries.at(-1)?.id) : undefined,
        }),
    ])}</div>`,
  }
}

/** What is none of a filter's values is as if it had not been given. */
function filterOf(query: URLSearchParams): Omit<AuditFilter, 'limit'> {
  const idOf = (name: string): string | undefined => {
    const id = query.get(name)
    return id !== null && isUuid(id) ? id.toLowerCase() : undefined
  }
  const kind = query.get('kind') ?? ''
  return {
    userId: query.get('user') === COMMAND_LINE ? null : idOf('user'),
    action: Object.hasOwn(KINDS, kind) ? kind : undefined,
    targetId: idOf('target'),
    beforeId: idOf('before'),
    afterId: idOf('after'),
  }
}

const FILTERS = ['user', 'kind', 'target']

/** The filters, without the page. */
const kept = (query: URLSearchParams): [string, string][] =>
  FILTERS.map((name): [string, string] => [name, query.get(name) ?? '']).filter(
    ([, value]) => value !== '',
  )

function filters({ query }: Visit, users: User[]): Html {
  const target = query.get('target')
  return html`<form class="filters" method="get" action="/console/audit-log" hx-get="/console/audit-log" hx-trigger="change, submit" hx-target="#audit-log" hx-select="#audit-log" hx-swap="outerHTML" hx-push-url="true">${[
    selectField({
      name: 'user',
      label: 'Person',
      none: 'Everybody',
      value: query.get('user') ?? '',
      choices: [
        ...users.map(({ id, fullName }) => ({ value: id, label: fullName })),
        { value: COMMAND_LINE, label: 'The command line' },
      ],
    }),
    selectField({
      name: 'kind',
      label: 'About',
      none: 'Everything',
      value: query.get('kind') ?? '',
      choices: Object.entries(KINDS).map(([value, label]) => ({ value, label })),
    }),
    target && html`<input type="hidden" name="target" value="${target}">`,
    button('Show'),
    kept(query).length > 0 && buttonLink('/audit-log', 'Show all', 'quiet'),
  ]}</form>`
}

function nothing(query: URLSearchParams): Html {
  return kept(query).length > 0 || query.has('before') || query.has('after')
    ? empty(
        'Nothing of this kind',
        'No entry matches what you chose.',
        buttonLink('/audit-log', 'Show all'),
      )
    : empty(
        'Nothing has happened yet',
        'When somebody signs in, creates a key or changes what people may do, it is written here for good.',
      )
}

function entriesTable(entries: AuditEntry[], { now }: Visit): Html {
  return table(
    ['What', 'Who and from where', 'When'],
    entries.map((entry) => ({
      id: `entry-${entry.id}`,
      cells: [
        html`<span class="two-lines"><span>${sentenceOf(entry)}</span>${changesOf(entry)}</span>`,
        html`<span class="two-lines"><span>${entry.userName}</span>${entry.ip !== null && html`<small class="muted mono">${entry.ip}</small>`}</span>`,
        html`<span class="two-lines">${timeOf(entry.createdAt, now)}<small class="muted nowrap">${utc(entry.createdAt)}</small></span>`,
      ],
    })),
    { label: 'Audit log' },
  )
}

/** Its name, and all else that was done to it. */
function targetOf({ target }: AuditEntry): Html {
  return html`<a href="/console/audit-log?target=${target.id}">${target.name}</a>`
}

type Sentence = (entry: AuditEntry) => Content

/** What others say of it is made of its name: see `plainSentence`. */
const SENTENCES: Record<string, Sentence> = {
  'account.created': (entry) => html`Created the account ${targetOf(entry)}`,
  'account.ownership_transferred': () => 'Transferred the ownership',
  'session.started': ({ details }) =>
    `Signed in${typeof details.device === 'string' ? `: ${details.device}` : ''}`,
  'session.ended': ({ target }) => `Signed out ${target.name}`,
  'session.others_ended': ({ details }) =>
    `Signed out all other devices${typeof details.count === 'number' ? `: ${details.count}` : ''}`,
  'user.created': (entry) => html`Made the user ${targetOf(entry)}${detailOf(entry, 'email')}`,
  'user.invited': (entry) => html`Invited ${targetOf(entry)}${detailOf(entry, 'email')}`,
  'user.invitation_renewed': (entry) => html`Made a new invitation link for ${targetOf(entry)}`,
  'user.invitation_withdrawn': (entry) =>
    html`Withdrew the invitation of ${targetOf(entry)}${detailOf(entry, 'email')}`,
  'user.password_link_made': (entry) =>
    html`Made a link for ${targetOf(entry)} to choose a new password`,
  'user.joined': () => 'Joined the account',
  'user.password_changed': () => 'Changed their password',
  'user.password_reset': () => 'Chose a new password by a link',
  'user.renamed': () => 'Changed their name',
  'user.email_changed': () => 'Changed their e-mail address',
  'user.access_changed': (entry) => html`Changed what ${targetOf(entry)} may do`,
  'user.deactivated': (entry) => html`Deactivated ${targetOf(entry)}`,
  'user.reactivated': (entry) => html`Reactivated ${targetOf(entry)}`,
}

const detailOf = ({ details }: AuditEntry, name: string): Content =>
  typeof details[name] === 'string' && html` (${details[name]})`

const NOUNS: Record<string, string> = {
  api_key: 'the API key',
  webhook: 'the webhook',
  account: 'the account',
  user: 'the user',
}

/** What was done, by what stands after the dot, where the word alone would not say it. */
const DEEDS: Record<string, string> = {
  updated: 'Changed',
  test_sent: 'Sent a test to',
  secret_revealed: 'Looked at the signing secret of',
  secret_prepared: 'Prepared a new signing secret of',
  secret_activated: 'Activated the new signing secret of',
  delivery_retried: 'Retried a delivery to',
  delivery_resent: 'Sent a delivery again to',
  delivery_hurried: 'Made the next attempt at once to',
  delivery_cancelled: 'Cancelled a delivery to',
  send_missed_started: 'Began to send what was missed to',
  retry_failed_started: 'Began to retry what had failed to',
  bulk_job_paused: 'Paused a bulk job of',
  bulk_job_resumed: 'Resumed a bulk job of',
  bulk_job_cancelled: 'Cancelled a bulk job of',
}

/** `api_key.revoked`: Revoked the API key “CI”. `webhook.test_sent`: Sent a test to the webhook “Shop”. */
const plainSentence: Sentence = (entry) => {
  const [noun = '', verb = ''] = entry.action.split('.')
  const words = verb.replaceAll('_', ' ')
  const deed =
    DEEDS[verb] ??
    `${words.charAt(0).toUpperCase()}${words.slice(1)}${words.includes(' ') ? ':' : ''}`
  return html`${deed} ${NOUNS[noun] ?? noun.replaceAll('_', ' ')} “${targetOf(entry)}”`
}

function sentenceOf(entry: AuditEntry): Content {
  return (SENTENCES[entry.action] ?? plainSentence)(entry)
}

const NAMES: Record<string, string> = {
  access_level: 'Access',
  manages_api_keys: 'Manages API keys',
  manages_webhooks: 'Manages webhooks',
  ...MODULES,
}

/** What the values of some things are called. Of all others, such as names, a value is what somebody typed. */
const WORDS: Record<string, Record<string, string>> = {
  access_level: ACCESS_LEVELS,
  role: ROLES,
  ...Object.fromEntries(Object.keys(MODULES).map((module) => [module, PERMISSIONS])),
}

/** What was before and what is now, of each thing that changed. */
function changesOf({ details }: AuditEntry): Content {
  if (typeof details.changes !== 'object' || details.changes === null) return false
  const changes = Object.entries(details.changes as Record<string, { from: unknown; to: unknown }>)
  return html`<small class="changes muted">${changes.map(([name, { from, to }]) => html`<span>${nameOf(name)}: ${wordOf(name, from)}<span class="visually-hidden"> to </span>${icon('arrow')}<strong>${wordOf(name, to)}</strong></span>`)}</small>`
}

function nameOf(name: string): string {
  const words = name.replaceAll('_', ' ')
  return NAMES[name] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

function wordOf(name: string, value: unknown): string {
  if (value === true) return 'yes'
  if (value === false) return 'no'
  if (value === null || value === undefined || value === '') return 'nothing'
  if (Array.isArray(value)) return value.map((one) => wordOf(name, one)).join(', ') || 'nothing'
  if (typeof value === 'object') return JSON.stringify(value)
  return WORDS[name]?.[String(value)] ?? String(value)
}
