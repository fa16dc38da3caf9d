/** The audit log: who signed in, and who changed API keys, webhooks, users and the account. Only
 *  the Account Owner sees it. */
import { type AuditEntry, type AuditFilter, listAuditEntries } from '../../../records/audit-log.ts'
import { listUsers, type User } from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ACCESS_LEVELS } from '../account/api-key-parts.ts'
import { filterForm } from '../filter-form.ts'
import { selectField } from '../form-fields.ts'
import { counted, utc } from '../format.ts'
import { replace } from '../htmx.ts'
import { icon } from '../icons.ts'
import { ROLES } from '../layout.ts'
import { type ConsolePage, getFromStandby, isOwner, type Route, type Visit } from '../page.ts'
import { parseId, toListPage, withQuery } from '../query.ts'
import { label } from '../records/labels.ts'
import { buttonLink, card, empty, pager, table, timeElement, twoLines } from '../ui.ts'
import { MODULE_LABELS, PERMISSION_LABELS } from './access-form.ts'

export const auditLogRoutes: Route[] = [getFromStandby('/audit-log', isOwner, auditLogPage)]

const ENTRIES_PER_PAGE = 50
const COMMAND_LINE = 'command-line'
/** Labels of the kinds of actions. The kind of `api_key.revoked` is `api_key`. */
const KINDS: Record<string, string> = {
  api_key: 'API keys',
  webhook: 'Webhooks',
  user: 'People and permissions',
  session: 'Signing in and out',
  account: 'The account',
}

async function auditLogPage(visit: Visit): Promise<ConsolePage> {
  const { query, scope } = visit
  const cursor = { olderThan: parseId(query.get('before')), newerThan: parseId(query.get('after')) }
  const found = await listAuditEntries(scope, {
    ...readFilter(query),
    beforeId: cursor.olderThan,
    afterId: cursor.newerThan,
    limit: ENTRIES_PER_PAGE + 1,
  })
  const { items: entries, hasNewer, hasOlder } = toListPage(found, ENTRIES_PER_PAGE, cursor)
  const pagePath = (page: Record<string, string | undefined>): string =>
    withQuery('/audit-log', { ...filtersIn(query), ...page })
  return {
    title: 'Audit log',
    lead: [
      'Who did what, when and from which IP address. ',
      `Entries are kept for ${counted(visit.config.retentionDays.auditLog, 'day')}.`,
    ],
    body: html`<div id="audit-log">
      ${filters(visit, await listUsers(scope))}
      ${card('', [
        entries.length === 0 ? noEntries(query) : entriesTable(entries, visit),
        entries.length > 0 &&
          pager({
            previous: hasNewer ? pagePath({ after: entries[0]?.id }) : undefined,
            next: hasOlder ? pagePath({ before: entries.at(-1)?.id }) : undefined,
          }),
      ])}
    </div>`,
  }
}

/** The filter in the URL. Ignores invalid values. */
function readFilter(query: URLSearchParams): Pick<AuditFilter, 'userId' | 'action' | 'targetId'> {
  const kind = query.get('kind') ?? ''
  return {
    userId: query.get('user') === COMMAND_LINE ? null : parseId(query.get('user')),
    action: Object.hasOwn(KINDS, kind) ? kind : undefined,
    targetId: parseId(query.get('target')),
  }
}

/** The filters that are set, without the cursor (`before` or `after`). */
function filtersIn(query: URLSearchParams): Record<string, string> {
  const names = ['user', 'kind', 'target'].filter((name) => query.get(name))
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']))
}

function filters({ query }: Visit, users: User[]): Html {
  const input = filtersIn(query)
  const { user = '', kind = '', target } = input
  const reload = replace('audit-log', { path: '/console/audit-log', trigger: 'change, submit' })
  return filterForm({
    to: '/audit-log',
    attributes: html` hx-push-url="true"${reload}`,
    hidden: target === undefined ? {} : { target },
    fields: [
      selectField({
        name: 'user',
        label: 'Person',
        none: 'Everyone',
        value: user,
        choices: [
          ...users.map(({ id, fullName }) => ({ value: id, label: fullName })),
          { value: COMMAND_LINE, label: 'Muster and the command line' },
        ],
      }),
      selectField({
        name: 'kind',
        label: 'About',
        none: 'Everything',
        value: kind,
        choices: Object.entries(KINDS).map(([value, label]) => ({ value, label })),
      }),
    ],
    clear: Object.keys(input).length > 0 && '/audit-log',
  })
}

function noEntries(query: URLSearchParams): Html {
  if (query.size === 0)
    return empty('No entries yet', 'Sign-ins, new keys and changes of access appear here.')
  return empty(
    'No matching entries',
    'No entries match these filters.',
    buttonLink('/audit-log', 'Clear filters'),
  )
}

function entriesTable(entries: AuditEntry[], { now }: Visit): Html {
  const rows = entries.map((entry) => ({
    id: `entry-${entry.id}`,
    cells: [
      twoLines(describe(entry), changes(entry)),
      twoLines(entry.userName, entry.ip !== null && html`<span class="mono">${entry.ip}</span>`),
      twoLines(
        timeElement(entry.createdAt, now),
        html`<span class="nowrap">${utc(entry.createdAt)}</span>`,
      ),
    ],
  }))
  return table('Audit log', ['What', 'Who and from where', 'When'], rows)
}

/** The name of the target, with a link to all entries about it. */
function targetLink({ target }: AuditEntry): Html {
  return html`<a href="/console/audit-log?target=${target.id}">${target.name}</a>`
}

type Describer = (entry: AuditEntry) => Content

/** Functions that describe entries, by action. `describeByName` describes all other actions. */
const DESCRIBERS: Record<string, Describer> = {
  'account.created': (entry) => html`Created the account ${targetLink(entry)}`,
  'account.quota_changed': () => 'Changed a quota of the account',
  'account.ownership_transferred': () => 'Transferred the ownership',
  'session.started': ({ details }) =>
    `Signed in${typeof details.device === 'string' ? `: ${details.device}` : ''}`,
  'session.refused': ({ details }) =>
    details.is_blocked
      ? 'Sign-in blocked: too many wrong passwords'
      : 'Failed to sign in: wrong password',
  'session.ended': ({ target }) => `Signed out ${target.name}`,
  'session.others_ended': ({ details }) =>
    `Signed out all other devices${typeof details.count === 'number' ? `: ${details.count}` : ''}`,
  'webhook.disabled': (entry) => describeDisabling(entry),
  'user.created': (entry) => html`Created the user ${targetLink(entry)}${detailOf(entry, 'email')}`,
  'user.invited': (entry) => html`Invited ${targetLink(entry)}${detailOf(entry, 'email')}`,
  'user.invitation_renewed': (entry) =>
    html`Created a new invitation link for ${targetLink(entry)}`,
  'user.invitation_withdrawn': (entry) =>
    html`Withdrew the invitation of ${targetLink(entry)}${detailOf(entry, 'email')}`,
  'user.password_link_made': (entry) => html`Created a password link for ${targetLink(entry)}`,
  'user.password_link_withdrawn': (entry) =>
    html`Withdrew the password link of ${targetLink(entry)}`,
  'user.joined': () => 'Joined the account',
  'user.password_changed': () => 'Changed their password',
  'user.password_reset': () => 'Reset their password with a link',
  'user.renamed': () => 'Changed their name',
  'user.email_changed': () => 'Changed their email',
  'user.quota_changed': (entry) => html`Changed the rate limit of ${targetLink(entry)}`,
  'user.access_changed': (entry) => html`Changed the access of ${targetLink(entry)}`,
  'user.deactivated': (entry) => html`Deactivated ${targetLink(entry)}`,
  'user.reactivated': (entry) => html`Reactivated ${targetLink(entry)}`,
}

const describeDisabling: Describer = (entry) => {
  const { failing_since: since } = entry.details
  if (typeof since !== 'string') return describeByName(entry)
  return html`${describeByName(entry)}: no attempt succeeded since ${utc(Date.parse(since))}`
}

const detailOf = ({ details }: AuditEntry, name: string): Content =>
  typeof details[name] === 'string' && html` (${details[name]})`

const NOUNS: Record<string, string> = {
  api_key: 'the API key',
  webhook: 'the webhook',
  account: 'the account',
  user: 'the user',
}

/** Texts for the part of an action after its dot. Without a text, the part itself is shown:
 *  `Link sent:` for `link_sent`. */
const VERBS: Record<string, string> = {
  updated: 'Updated',
  test_sent: 'Sent a test to',
  secret_revealed: 'Viewed the signing secret of',
  secret_prepared: 'Prepared a new signing secret of',
  secret_activated: 'Activated the new signing secret of',
  delivery_retried: 'Retried a delivery to',
  delivery_resent: 'Resent a delivery to',
  delivery_attempted: 'Started the next attempt of a delivery to',
  delivery_cancelled: 'Cancelled a delivery to',
  send_missed_started: 'Started to send missed events to',
  retry_failed_started: 'Started to retry failed deliveries to',
  bulk_job_paused: 'Paused a bulk job of',
  bulk_job_resumed: 'Resumed a bulk job of',
  bulk_job_cancelled: 'Cancelled a bulk job of',
}

/** For example `Revoked the API key “CI”` for `api_key.revoked`. */
const describeByName: Describer = (entry) => {
  const [noun = '', verb = ''] = entry.action.split('.')
  const action = VERBS[verb] ?? `${label(verb)}${verb.includes('_') ? ':' : ''}`
  return html`${action} ${NOUNS[noun] ?? noun.replaceAll('_', ' ')} “${targetLink(entry)}”`
}

function describe(entry: AuditEntry): Content {
  return (DESCRIBERS[entry.action] ?? describeByName)(entry)
}

const FIELD_LABELS: Record<string, string> = {
  access_level: 'Access',
  manages_api_keys: 'Manages API keys',
  manages_webhooks: 'Manages webhooks',
  ...MODULE_LABELS,
}

/** Labels of values, by field. Values of other fields have no labels. */
const VALUE_LABELS: Record<string, Record<string, string>> = {
  access_level: ACCESS_LEVELS,
  role: ROLES,
  ...Object.fromEntries(Object.keys(MODULE_LABELS).map((module) => [module, PERMISSION_LABELS])),
}

function changes({ details }: AuditEntry): Content {
  if (typeof details.changes !== 'object' || details.changes === null) return false
  const entries = Object.entries(details.changes as Record<string, { from: unknown; to: unknown }>)
  const arrow = [html`<span class="visually-hidden"> to </span>`, icon('arrow')]
  const items = entries.map(
    ([name, { from, to }]) => html`<span>
      ${FIELD_LABELS[name] ?? label(name)}: ${valueLabel(name, from)}
      ${arrow}<strong>${valueLabel(name, to)}</strong>
    </span>`,
  )
  return html`<span class="changes">${items}</span>`
}

function valueLabel(name: string, value: unknown): string {
  if (value === true) return 'yes'
  if (value === false) return 'no'
  if (value === null || value === undefined || value === '') return 'nothing'
  if (Array.isArray(value)) return value.map((one) => valueLabel(name, one)).join(', ') || 'nothing'
  if (typeof value === 'object') return JSON.stringify(value)
  return VALUE_LABELS[name]?.[String(value)] ?? String(value)
}
