/** The entries of the audit log as texts. */
import type { AuditEntry } from '../../../records/audit-log.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ACCESS_LEVELS } from '../account/api-key-parts.ts'
import { absoluteTime, counted } from '../format.ts'
import { icon } from '../icons.ts'
import { ROLES } from '../layout.ts'
import { label, noun } from '../records/labels.ts'
import type { RecordLinks } from '../records/record-link.ts'
import { fieldLabel } from '../records/resources.ts'
import { shortId } from '../ui.ts'
import { MODULE_LABELS, PERMISSION_LABELS } from './access-form.ts'

/** For example `Updated the task Call Ada`. */
export function describe(entry: AuditEntry, links: RecordLinks): Content {
  const { action, target, isEvent } = entry
  if (!isEvent) return (DESCRIBERS[action] ?? describeByName)(entry)
  return html`${describeChange(entry)} the ${noun(target)} ${links.get(target.id) ?? targetLink(entry)}`
}

/** `Created`, `Updated` or `Deleted`: what happened to a record. */
export function describeChange({ action }: AuditEntry): string {
  return label(action.slice(action.indexOf('.') + 1))
}

/** The labels of the changed fields of a record: `Full name, Email`. */
export function fieldLabels({ fields }: AuditEntry): string {
  return fields.map((name) => fieldLabel(name.replace(/_minor$/, ''))).join(', ')
}

/** The user, and the key that made the request. */
export function describeActor({ userName, apiKey }: AuditEntry): Content {
  return apiKey
    ? html`${userName} <span class="muted">with the API key</span> ${apiKey.name}`
    : userName
}

/** The name of the target, with a link to all entries about it. */
function targetLink({ target: { id, name } }: AuditEntry): Html {
  const text = name ?? html`<code>${shortId(id)}</code>`
  return html`<a href="/console/audit-log?target=${id}">${text}</a>`
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
  'export.downloaded': (entry) => html`Downloaded ${rowsOf(entry)} as ${targetLink(entry)}`,
  'import.downloaded': (entry) =>
    html`Downloaded the refused rows of the import ${targetLink(entry)}`,
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
  return html`${describeByName(entry)}: no attempt succeeded since ${absoluteTime(Date.parse(since))}`
}

/** For example `437 participants`. */
function rowsOf({ details: { resource, row_count: rows } }: AuditEntry): string {
  const records = String(resource).replaceAll('_', ' ')
  return typeof rows === 'number' ? counted(rows, records.replace(/s$/, '')) : records
}

const detailOf = ({ details }: AuditEntry, name: string): Content =>
  typeof details[name] === 'string' && html` (${details[name]})`

const NOUNS: Record<string, string> = {
  api_key: 'the API key',
  webhook: 'the webhook',
  account: 'the account',
  user: 'the user',
  export: 'the export',
  import: 'the import',
}

/** Texts for the part of an action after its dot. Without a text, the part itself is shown:
 *  `Link sent:` for `link_sent`. */
const VERBS: Record<string, string> = {
  updated: 'Updated',
  handed_over: 'Handed over',
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
  retry_waiting_started: 'Started to retry waiting deliveries to',
  bulk_job_paused: 'Paused a bulk job of',
  bulk_job_resumed: 'Resumed a bulk job of',
  bulk_job_cancelled: 'Cancelled a bulk job of',
}

/** For example `Revoked the API key CI` for `api_key.revoked`. */
const describeByName: Describer = (entry) => {
  const [noun = '', verb = ''] = entry.action.split('.')
  const action = VERBS[verb] ?? `${label(verb)}${verb.includes('_') ? ':' : ''}`
  return html`${action} ${NOUNS[noun] ?? noun.replaceAll('_', ' ')} ${targetLink(entry)}`
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

/** The changed fields, and for entries that are no records also their values. */
export function changes(entry: AuditEntry): Content {
  const { details } = entry
  if (typeof details.changes !== 'object' || details.changes === null) return fieldLabels(entry)
  const entries = Object.entries(details.changes as Record<string, { from: unknown; to: unknown }>)
  return entries.map(([name, { from, to }]) =>
    changedField(FIELD_LABELS[name] ?? label(name), {
      from: valueLabel(name, from),
      to: valueLabel(name, to),
    }),
  )
}

/** For example `Role: Member → Admin`, or only the label if the values are not shown. */
export function changedField(label: string, values?: { from: Content; to: Content }): Html {
  const arrow = [html`<span class="visually-hidden"> to </span>`, icon('arrow')]
  const shown = values && html`: ${values.from} ${arrow}<strong>${values.to}</strong>`
  return html`<span class="change">${label}${shown}</span>`
}

function valueLabel(name: string, value: unknown): string {
  if (value === true) return 'yes'
  if (value === false) return 'no'
  if (value === null || value === undefined || value === '') return 'nothing'
  if (Array.isArray(value)) return value.map((one) => valueLabel(name, one)).join(', ') || 'nothing'
  if (typeof value === 'object') return JSON.stringify(value)
  return VALUE_LABELS[name]?.[String(value)] ?? String(value)
}
