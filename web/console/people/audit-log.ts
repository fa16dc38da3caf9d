/** The audit log: who signed in, who changed API keys, webhooks, users and the account, and who created,
 *  updated, deleted and exported records. Only the Account Owner sees it. */
import { Readable } from 'node:stream'
import { type AuditEntry, type AuditFilter, type Verb, verbs } from '../../../records/audit-log.ts'
import { eachTrailEntry, listTrail, recordTypes } from '../../../records/trail.ts'
import { listUsers } from '../../../records/users.ts'
import { parseDateTimeInput, shownInInput, toLinkTime } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { keyChoices } from '../account/api-key-parts.ts'
import { filterForm } from '../filter-form.ts'
import { type Choice, selectField, textField } from '../form-fields.ts'
import { absoluteTime, counted, timeLabel } from '../format.ts'
import { replace } from '../htmx.ts'
import {
  type ConsolePage,
  type Download,
  getFromStandby,
  isOwner,
  type Route,
  type Visit,
} from '../page.ts'
import { parseId, toListPage, withQuery } from '../query.ts'
import { label } from '../records/labels.ts'
import { loadRecordLinks } from '../records/record-link.ts'
import {
  buttonLink,
  card,
  empty,
  NO_VALUE,
  pager,
  shortId,
  table,
  timeElement,
  twoLines,
} from '../ui.ts'
import { changes, describe } from './audit-entry.ts'
import { auditLogCsv, auditLogNdjson } from './audit-log-file.ts'

export const auditLogRoutes: Route[] = [
  getFromStandby('/audit-log', isOwner, auditLogPage),
  getFromStandby('/audit-log.csv', isOwner, (visit) => auditLogFile(visit, 'csv')),
  getFromStandby('/audit-log.ndjson', isOwner, (visit) => auditLogFile(visit, 'ndjson')),
]

const ENTRIES_PER_PAGE = 50
const COMMAND_LINE = 'command-line'
/** Labels of the kinds of actions. The kind of `api_key.revoked` is `api_key`. */
const KINDS: Record<string, string> = {
  ...Object.fromEntries(recordTypes.map((type) => [type, `${label(type)}s`])),
  api_key: 'API keys',
  webhook: 'Webhooks',
  user: 'People and permissions',
  session: 'Signing in and out',
  account: 'The account',
}

async function auditLogPage(visit: Visit): Promise<ConsolePage> {
  const { query, scope } = visit
  const cursor = { olderThan: parseId(query.get('before')), newerThan: parseId(query.get('after')) }
  const found = await listTrail(scope, {
    ...readFilter(query),
    beforeId: cursor.olderThan,
    afterId: cursor.newerThan,
    limit: ENTRIES_PER_PAGE + 1,
  })
  const { items: entries, hasNewer, hasOlder } = toListPage(found, ENTRIES_PER_PAGE, cursor)
  const pagePath = (page: Record<string, string | undefined>): string =>
    withQuery('/audit-log', { ...filtersIn(query), ...page })
  const { auditLog, events } = visit.config.retentionDays
  return {
    title: 'Audit log',
    lead: [
      'Who did what, when and from which IP address. ',
      `Entries about records are kept for ${counted(events, 'day')}, `,
      `all others for ${counted(auditLog, 'day')}.`,
    ],
    body: html`<div id="audit-log">
      ${await filters(visit)}
      ${card(
        'Entries',
        [
          entries.length === 0 ? noEntries(query) : await entriesTable(visit, entries),
          entries.length > 0 &&
            pager({
              previous: hasNewer ? pagePath({ after: entries[0]?.id }) : undefined,
              next: hasOlder ? pagePath({ before: entries.at(-1)?.id }) : undefined,
            }),
        ],
        entries.length > 0 && [
          buttonLink(withQuery('/audit-log.csv', filtersIn(query)), 'Export as CSV'),
          buttonLink(withQuery('/audit-log.ndjson', filtersIn(query)), 'Export as NDJSON'),
        ],
      )}
    </div>`,
  }
}

function auditLogFile({ query, scope, now }: Visit, format: 'csv' | 'ndjson'): Download {
  const batches = eachTrailEntry(scope, readFilter(query))
  return {
    fileName: `audit-log-${now.toISOString().slice(0, 10)}.${format}`,
    contentType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
    content: Readable.from(format === 'csv' ? auditLogCsv(batches) : auditLogNdjson(batches)),
  }
}

const FILTERS = ['user', 'key', 'kind', 'verb', 'target', 'from', 'until']

/** The filter in the URL. Ignores invalid values. */
function readFilter(query: URLSearchParams): Omit<AuditFilter, 'limit'> {
  const kind = query.get('kind') ?? ''
  return {
    userId: query.get('user') === COMMAND_LINE ? null : parseId(query.get('user')),
    apiKeyId: parseId(query.get('key')),
    kind: Object.hasOwn(KINDS, kind) ? kind : undefined,
    verb: verbs.find((verb) => verb === query.get('verb')),
    targetId: parseId(query.get('target')?.trim()),
    from: parseDateTimeInput(query.get('from') ?? ''),
    until: parseDateTimeInput(query.get('until') ?? ''),
  }
}

/** The filters that are set, without the cursor (`before` or `after`). */
function filtersIn(query: URLSearchParams): Record<string, string> {
  const names = FILTERS.filter((name) => query.get(name))
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']))
}

const VERB_LABELS: Record<Verb, string> = {
  created: 'Created',
  updated: 'Updated',
  deleted: 'Deleted',
  downloaded: 'Downloaded',
}

async function filters({ query, scope, now, ctx }: Visit): Promise<Html> {
  const input = filtersIn(query)
  const [users, keys] = await Promise.all([listUsers(scope), keyChoices(scope, input.key)])
  const select = (name: string, label: string, none: string, choices: Choice[]): Html =>
    selectField({ name, label, none, value: input[name] ?? '', choices })
  const text = (name: string, label: string, type: 'text' | 'datetime-local'): Html =>
    textField({ name, label, type, value: shownInInput(input[name] ?? ''), maxLength: 100 })
  const reload = replace('audit-log', { path: '/console/audit-log', trigger: 'change, submit' })
  return filterForm({
    to: '/audit-log',
    attributes: html` hx-push-url="true"${reload}`,
    fields: [
      select('user', 'Person', 'Everyone', [
        ...users.map(({ id, fullName }) => ({ value: id, label: fullName })),
        { value: COMMAND_LINE, label: 'Muster and the command line' },
      ]),
      select('kind', 'About', 'Everything', toChoices(KINDS)),
      select('verb', 'Change', 'Any', toChoices(VERB_LABELS)),
    ],
    usedCount: Object.keys(input).length,
    clear: '/audit-log',
    // Each chosen filter reloads the form, in which the user may choose the next one.
    isOpen: ctx.get('HX-Request') !== '',
    presets: {
      now,
      to: (from) => withQuery('/audit-log', { ...input, from: toLinkTime(from), until: '' }),
    },
    more: {
      isOpen: ['key', 'target', 'from', 'until'].some((name) => input[name]),
      fields: [
        select('key', 'API key', 'Any', keys),
        text('target', 'ID of a record, key, webhook or person', 'text'),
        text('from', timeLabel('From'), 'datetime-local'),
        text('until', timeLabel('Until'), 'datetime-local'),
      ],
    },
  })
}

function toChoices(labels: Record<string, string>): Choice[] {
  return Object.entries(labels).map(([value, label]) => ({ value, label }))
}

function noEntries(query: URLSearchParams): Html {
  if (query.size === 0)
    return empty(
      'No entries yet',
      'Sign-ins, changes of records, keys and access, and downloads of exports appear here.',
    )
  return empty('No matching entries', 'No entries match these filters.')
}

async function entriesTable(visit: Visit, entries: AuditEntry[]): Promise<Html> {
  const links = await loadRecordLinks(
    visit,
    entries.map(({ target }) => target),
  )
  const rows = entries.map((entry) => ({
    id: `entry-${entry.id}`,
    cells: [
      twoLines(describe(entry, links), changes(entry)),
      twoLines(entry.userName, entry.apiKey && `API key ${entry.apiKey.name}`, 'who'),
      origin(entry),
      twoLines(
        timeElement(entry.createdAt, visit.now),
        html`<span class="nowrap">${absoluteTime(entry.createdAt)}</span>`,
      ),
    ],
  }))
  return table('Audit log', ['What', 'Who', 'From', 'When'], rows, 'entries')
}

/** The IP address, and the request. */
function origin(entry: AuditEntry): Content {
  return entry.ip === null
    ? NO_VALUE
    : twoLines(html`<span class="mono">${entry.ip}</span>`, requestLink(entry))
}

/** A request with an API key links to the request log, and the change of a record to its event. */
function requestLink({ id, requestId, apiKey, isEvent, createdAt }: AuditEntry): Content {
  if (requestId === null) return false
  const text = html`<code title="${requestId}">${shortId(requestId)}</code>`
  const path = withQuery('/requests', { range: '30d', request: requestId, at: String(createdAt) })
  const link = apiKey ? html`<a href="/console${path}">${text}</a>` : text
  const event = html` · <a href="/console/events/${id}">Event</a>`
  return html`<span class="nowrap">Request ${link}${isEvent && event}</span>`
}
