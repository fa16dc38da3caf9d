/** The page of a record: its fields, the records that refer to it, and its history. */
import { type Resource, resources } from '../../../generated/resources.ts'
import type { AuditEntry } from '../../../records/audit-log.ts'
import { listTrail } from '../../../records/trail.ts'
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { absoluteTime, capital, count } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import { type ConsolePage, isOwner, isOwnerOrAdmin, type Visit } from '../page.ts'
import { changedField, describeActor, describeChange } from '../people/audit-entry.ts'
import { buttonLink, card, empty, type Fact, facts, table, timeElement, twoLines } from '../ui.ts'
import { shownName } from './amounts.ts'
import { cell, fullValue, isTable, type ValueContext, valueTable } from './cells.ts'
import {
  canViewExported,
  EXPORT_REFRESH_SECONDS,
  exportedPart,
  exportProgress,
  fileOutcome,
  filtersOf,
  isExportRunning,
  isFileReady,
} from './export-file.ts'
import { canImport, importRowsLink } from './imports.ts'
import { keyLabels } from './keyed-fields.ts'
import { noun, plural } from './labels.ts'
import { filterParameter, queryText } from './list-query.ts'
import {
  isCurrencyOfAmount,
  type KnownRecords,
  listRecords,
  loadReferences,
  newestFirst,
  recordTitle,
  titleFields,
} from './references.ts'
import {
  canPerform,
  canViewResource,
  fieldLabel,
  type Item,
  nameField,
  recordCrumbs,
  recordFields,
  recordLink,
  referencedResource,
  resourcePath,
} from './resources.ts'
import { statusButtons } from './set-status.ts'

export async function recordPage(
  visit: Visit,
  resource: Resource,
  item: Item,
): Promise<ConsolePage> {
  const known = await loadReferences(visit, [item, filtersOf(item)])
  const related = await Promise.all(
    listReferringResources(resource)
      .filter((other) => canViewResource(visit.user, other))
      .map((other) => relatedCard(visit, resource, other, item.id)),
  )
  return {
    title: recordTitle(resource, item, known),
    lead: item.status !== undefined && statusInHead(visit, resource, item, known),
    crumbs: recordCrumbs(resource),
    actions: recordActions(visit, resource, item, known),
    body: html`
      ${await recordCard(visit, resource, item, known)}
      ${related}
      ${await historyCard(visit, resource, item)}`,
  }
}

const STATUS_ID = 'record-status'
const FILE_ID = 'record-file'

function statusInHead(
  { now }: Visit,
  { record }: Resource,
  { status }: Item,
  known: KnownRecords,
): Html {
  const shown = cell('status', record.properties?.status ?? {}, status, { now, known })
  return html`<span id="${STATUS_ID}">${shown}</span>`
}

function recordActions(
  { user, now }: Visit,
  resource: Resource,
  item: Item,
  known: KnownRecords,
): Content {
  const buttons = statusButtons(user, resource, item, recordTitle(resource, item, known))
  return [
    resource.operations.file !== null &&
      html`<span class="actions" id="${FILE_ID}">${fileLinks(user, resource, item, now)}</span>`,
    buttons.length > 0 && html`<div class="actions">${buttons}</div>`,
    html`<div class="actions tools">
      ${
        canPerform(user, resource, 'update') &&
        buttonLink(resourcePath(resource, item.id, 'edit'), 'Edit')
      }
      ${
        canPerform(user, resource, 'delete') &&
        canViewExported(user, item) &&
        buttonLink(resourcePath(resource, item.id, 'delete'), 'Delete', 'danger')
      }
    </div>`,
  ]
}

function fileLinks(user: User, resource: Resource, item: Item, now: Date): Content {
  if (!isFileReady(resource, item, now) || !canViewExported(user, item)) return false
  const isTried = item.dry_run === true && canImport(user)
  const label = 'refused_count' in item ? 'Download refused rows' : 'Download'
  return [
    buttonLink(resourcePath(resource, item.id, 'file'), label, isTried ? '' : 'primary'),
    isTried && buttonLink(importRowsLink(item), 'Import the rows', 'primary'),
  ]
}

/** Reloads while the record is an export in progress. */
async function recordCard(
  visit: Visit,
  resource: Resource,
  item: Item,
  known: KnownRecords,
): Promise<Html> {
  const fields = idLast(recordFields(resource))
  const tableFields = fields.filter(
    ([name, schema]) => isTable(schema) && Array.isArray(item[name]) && item[name].length > 0,
  )
  const context = { now: visit.now, known, item }
  const rows = fields
    .filter((field) => !tableFields.includes(field) && !isNeedless(resource, item, field[0]))
    .map(
      ([name, schema]): Fact => [
        fieldLabel(shownName(name, schema)),
        exportedPart(name, item, known) ??
          fullValue(name, schema, item[name], {
            ...context,
            keyLabels: keyLabels(schema, item, known),
          }),
      ],
    )
  const attributes =
    isExportRunning(resource, item) &&
    reloadEvery(
      EXPORT_REFRESH_SECONDS,
      `/console${resourcePath(resource, item.id)}`,
      'record',
      [STATUS_ID, FILE_ID].map((id) => `#${id}:outerMorph`).join(),
    )
  return html`<div id="record"${attributes}>
    ${attributes ? await exportProgress(visit, item) : fileOutcome(resource, item, visit.now)}
    ${card('Details', facts(rows))}
    ${tableFields.map(([name, schema]) =>
      valuesCard(name, schema, item[name] as unknown[], context),
    )}
  </div>`
}

/** Programs need the ID. People look for the other fields first. */
function idLast(fields: [name: string, schema: Schema][]): [name: string, schema: Schema][] {
  return fields.toSorted(([one], [other]) => Number(one === 'id') - Number(other === 'id'))
}

/** Whether the head of the page shows the field, or only the service sets it and has not done so. */
function isNeedless(resource: Resource, item: Item, name: string): boolean {
  const { creation, change } = resource
  const isInHead = name === 'status' || name === nameField(resource)
  const isSetByUsers = [creation, change].some((schema) => name in (schema?.properties ?? {}))
  return isInHead || (item[name] === null && !isSetByUsers)
}

function valuesCard(name: string, schema: Schema, values: unknown[], context: ValueContext): Html {
  return card(
    html`${fieldLabel(name)} <span class="muted">${count(values.length)}</span>`,
    valueTable(name, schema, values, context),
  )
}

/** The resources whose lists can be filtered by a reference to this resource. */
function listReferringResources({ type }: Resource): Resource[] {
  return resources.filter(({ filters }) => filters.some(({ name }) => name === `${type}_id`))
}

const MAX_RELATED_RECORDS = 5

async function relatedCard(
  visit: Visit,
  resource: Resource,
  other: Resource,
  id: string,
): Promise<Html> {
  const reference = `${resource.type}_id`
  const { data, meta } = await listRecords(visit, other, {
    [filterParameter(reference)]: id,
    ...newestFirst(other),
    'page[size]': MAX_RELATED_RECORDS,
  })
  const title = html`${plural(other)} <span class="muted">${count(meta.total)}</span>`
  const allPath = `${resourcePath(other)}${queryText([[filterParameter(reference), id]])}`
  const actions = [
    meta.total > data.length && buttonLink(allPath, 'See all', 'quiet'),
    canPerform(visit.user, other, 'create') &&
      isCreationField(other, reference) &&
      buttonLink(`${resourcePath(other)}/new?${reference}=${id}`, `New ${noun(other)}`),
  ]
  const body =
    data.length > 0
      ? await relatedTable(visit, other, data, reference)
      : html`<p class="muted">None.</p>`
  return card(title, body, actions)
}

function isCreationField({ creation }: Resource, field: string): boolean {
  return field in (creation?.properties ?? {})
}

async function relatedTable(
  visit: Visit,
  other: Resource,
  items: Item[],
  reference: string,
): Promise<Html> {
  const known = await loadReferences(visit, items)
  const context = { now: visit.now, known }
  // The page is about the record in `reference`, so its name is not repeated in each row.
  const linkFields = titleFields(other).filter((name) => name !== reference)
  const columns = recordFields(other).filter(
    ([name, schema]) =>
      (schema.enum || name === 'created_at' || referencedResource(name)) &&
      name !== reference &&
      !linkFields.includes(name) &&
      !isCurrencyOfAmount(other, name),
  )
  const labels = columns.map(([name]) => fieldLabel(name))
  const rows = items.map((item) => ({
    cells: [
      recordLink(other, item.id, recordTitle(other, item, known, linkFields)),
      ...columns.map(([name, schema]) => cell(name, schema, item[name], context)),
    ],
  }))
  return table(plural(other), [linkLabel(other, linkFields), ...labels], rows)
}

/** For example `Participant`, if the links to job applications show only that field. */
function linkLabel(other: Resource, [first = '', ...others]: string[]): string {
  if (nameField(other) !== undefined || others.length > 0) return capital(noun(other))
  return fieldLabel(shownName(first, other.record.properties?.[first] ?? {}))
}

const MAX_ENTRIES = 10

function eventCell({ user }: Visit, { id, action }: AuditEntry): Html {
  return isOwnerOrAdmin(user)
    ? html`<a class="mono" href="/console/events/${id}">${action}</a>`
    : html`<code>${action}</code>`
}

/** The entries of the record in the audit log. */
async function historyCard(visit: Visit, resource: Resource, item: Item): Promise<Html> {
  const found = await listTrail(visit.scope, { targetId: item.id, limit: MAX_ENTRIES + 1 })
  const versions = versionsOf(item, found.slice(0, MAX_ENTRIES))
  const known = await loadReferences(
    visit,
    versions.flatMap(({ before, after }) => [before, after]),
  )
  const rows = versions.map(({ entry, before, after }) => ({
    cells: [
      twoLines(
        describeChange(entry),
        entry.changes.map(({ field, ...values }) => {
          const schema = resource.record.properties?.[field] ?? {}
          const label = fieldLabel(shownName(field, schema))
          if (!('after' in values) || !isShort(schema)) return changedField(label)
          const show = (version: Version): Content => {
            const value = version[field]
            if (typeof value === 'string' && schema.format === 'date-time')
              return absoluteTime(Date.parse(value))
            // A cell leaves out all but the first values of a list.
            const write = Array.isArray(value) ? fullValue : cell
            return write(field, schema, value, { now: visit.now, known, item: version })
          }
          return changedField(label, { from: show(before), to: show(after) })
        }),
      ),
      describeActor(entry),
      entry.isEvent && eventCell(visit, entry),
      timeElement(entry.createdAt, visit.now),
    ],
  }))
  const body =
    rows.length > 0
      ? table('History', ['What', 'Who', 'Event', 'When'], rows, 'entries')
      : empty('No history', 'An entry appears here when this record changes.')
  const allPath = `/audit-log?target=${item.id}`
  return card('History', body, [
    isOwner(visit.user) && found.length > 0 && buttonLink(allPath, 'See all', 'quiet'),
  ])
}

type Version = Readonly<Record<string, unknown>>

/** The record before and after each change. `entries` are the newest ones, newest first. Takes both values of
 *  a changed field from its entry: a later entry may be without values, because they are large. */
function versionsOf(
  item: Item,
  entries: AuditEntry[],
): { entry: AuditEntry; before: Version; after: Version }[] {
  let later: Version = item
  return entries.map((entry) => {
    const changed = (value: 'before' | 'after'): Version =>
      Object.fromEntries(entry.changes.map((change) => [change.field, change[value]]))
    const after = { ...later, ...changed('after') }
    const before = { ...after, ...changed('before') }
    later = before
    return { entry, before, after }
  })
}

/** Whether a cell shows the whole value, at least nearly always. */
function isShort({ type, properties, items }: Schema): boolean {
  return type !== 'object' && properties === undefined && items?.properties === undefined
}
