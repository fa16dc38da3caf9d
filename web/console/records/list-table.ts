/** The table of a list: its columns, their order, and the selection of rows. */
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { countReferring } from '../../../records/references.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { count } from '../format.ts'
import type { Visit } from '../page.ts'
import { buttonLink, type Column, type ColumnOptions, numberColumn, table } from '../ui.ts'
import { shownName } from './amounts.ts'
import { cell, isTable } from './cells.ts'
import { canViewExported, isFileReady } from './export-file.ts'
import { plural } from './labels.ts'
import {
  filterParameter,
  filtersIn,
  type Pairs,
  queryText,
  queryValue,
  withValue,
} from './list-query.ts'
import {
  isCurrencyOfAmount,
  type KnownRecords,
  newestFirst,
  recordTitle,
  titleFields,
} from './references.ts'
import {
  canViewResource,
  fieldLabel,
  findResource,
  type Item,
  nameField,
  optionOf,
  recordFields,
  recordLink,
  resourcePath,
} from './resources.ts'
import { canSelect, SELECTION_FORM, selectionBox } from './selection.ts'

export interface ListTable {
  visit: Visit
  resource: Resource
  pairs: Pairs
  known: KnownRecords
  counts: CountColumn[]
}

export interface CountColumn {
  other: Resource
  reference: string
  /** By the ID of the record. */
  counts: Map<string, number>
}

/** How many records of other resources refer to each of the items. */
export async function countColumns(
  { scope, user }: Visit,
  { counted }: Resource,
  items: Item[],
): Promise<CountColumn[]> {
  if (items.length === 0) return []
  const columns = counted.flatMap(({ slug, reference }) => {
    const other = findResource(slug)
    return other && canViewResource(user, other) ? [{ other, reference }] : []
  })
  const ids = items.map(({ id }) => id)
  return Promise.all(
    columns.map(async ({ other, reference }) => ({
      other,
      reference,
      counts: await countReferring(scope, { table: optionOf(other), column: reference }, ids),
    })),
  )
}

function countLink({ other, reference, counts }: CountColumn, { id }: Item): Content {
  const path = `/console${resourcePath(other)}${queryText([[filterParameter(reference), id]])}`
  return html`<a href="${path}">${count(counts.get(id) ?? 0)}</a>`
}

export function recordTable(list: ListTable, items: Item[]): Html {
  const { resource, visit, known } = list
  const linkFields = linkedFields(resource)
  const fields = listColumns(list).filter(([field]) => !linkFields.includes(field))
  const context = { now: visit.now, known }
  const hasFile = resource.operations.file !== null
  const isSelectable = canSelect(visit.user, resource)
  const columns: Column[] = [
    ...(isSelectable ? [{ label: selectAllBox(resource) }] : []),
    linkHead(list, linkFields),
    ...fields.map(([field, schema]) => columnHead(list, field, schema)),
    ...list.counts.map(({ other }) => numberColumn(plural(other))),
    ...(hasFile ? [{ label: 'File', isHidden: true }] : []),
  ]
  const rows = items.map((item) => {
    const title = recordTitle(resource, item, known, linkFields)
    return {
      cells: [
        ...(isSelectable ? [selectionBox(item.id, title)] : []),
        recordLink(resource, item.id, title, 'clip'),
        ...fields.map(([field, schema]) => cell(field, schema, item[field], { ...context, item })),
        ...list.counts.map((column) => countLink(column, item)),
        ...(hasFile ? [fileLink(list, item)] : []),
      ],
    }
  })
  return table(plural(resource), columns, rows)
}

/** Shown by script only: console.js selects the boxes of the rows. */
function selectAllBox(resource: Resource): Html {
  const name = `Select all ${plural(resource).toLowerCase()} on this page`
  return html`<input type="checkbox" form="${SELECTION_FORM}" data-select-all aria-label="${name}">`
}

/** The fields in the link to a record. People look for a participant, so the other fields of an
 *  application or a payment have columns of their own. So has a field to sort by: its head can sort. */
function linkedFields(resource: Resource): string[] {
  const { sorts }: OperationRow = operations[resource.operations.list]
  const fields = titleFields(resource)
  if (nameField(resource) !== undefined) return fields
  if (fields.includes('participant_id')) return ['participant_id']
  return fields.filter((field) => !sorts.includes(field))
}

/** Narrow screens show the link as the title of the row, without a label. */
function linkHead(list: ListTable, fields: string[]): ColumnOptions {
  const [first = 'id', ...others] = fields
  if (others.length === 0) return { ...columnHead(list, first, {}), name: '', isText: true }
  const name = [fieldLabel(first), ...others.map((field) => fieldLabel(field).toLowerCase())]
  return { label: name.join(', '), name: '', isText: true }
}

function fileLink({ resource, visit }: ListTable, item: Item): Content {
  return (
    isFileReady(resource, item, visit.now) &&
    canViewExported(visit.user, item) &&
    buttonLink(resourcePath(resource, item.id, 'file'), 'Download')
  )
}

/** A text field that permits more characters has no column. */
const MAX_COLUMN_CHARACTERS = 500
/** More would not fit beside the navigation on a screen of 1,280 pixels. */
const MAX_COLUMNS = 8

/** Columns that the list shows only if it is filtered or sorted by them. */
const HIDDEN_COLUMNS = ['external_id', 'updated_at']
const HIDDEN_COLUMNS_OF: Record<string, string[]> = {
  exports: ['columns', 'byte_size'],
  imports: ['format', 'created_count', 'updated_count', 'unchanged_count', 'byte_size'],
}

/** The status comes first, because people look for it first. */
function listColumns({ resource, pairs }: ListTable): [string, Schema][] {
  const { creation, change, slug } = resource
  const { sorts, filters }: OperationRow = operations[resource.operations.list]
  const writable = { ...creation?.properties, ...change?.properties }
  const order = sortOf(resource, pairs)
  const isUsed = (name: string): boolean =>
    order === name || order === `-${name}` || name in filtersIn(pairs)
  const isHidden = (name: string): boolean =>
    HIDDEN_COLUMNS.includes(name) ||
    HIDDEN_COLUMNS_OF[slug]?.includes(name) ||
    isCurrencyOfAmount(resource, name)
  const columns = recordFields(resource).filter(([name, schema]) => {
    if (name === 'id' || schema.properties || schema.additionalProperties) return false
    if (isHidden(name)) return isUsed(name)
    if (name in writable) return (writable[name]?.maxLength ?? 0) <= MAX_COLUMN_CHARACTERS
    const isListed = sorts.includes(name) || name in filters
    return isListed || schema.type === 'integer' || schema.enum !== undefined
  })
  return columns
    .sort(([one], [other]) => Number(other === 'status') - Number(one === 'status'))
    .slice(0, MAX_COLUMNS)
}

/** The order of the list: the chosen one, or the newest first. Empty if it cannot be sorted. */
export function sortOf(resource: Resource, pairs: Pairs): string {
  return queryValue(pairs, 'sort') || (newestFirst(resource).sort?.[0] ?? '')
}

/** Texts with fewer characters are not cut off. A part of a phone number is of no use. */
const MAX_SHORT_CHARACTERS = 50

function columnHead({ resource, pairs }: ListTable, name: string, schema: Schema): ColumnOptions {
  const { maxLength } = resource.creation?.properties?.[name] ?? {}
  const isShort = maxLength !== undefined && maxLength <= MAX_SHORT_CHARACTERS
  const { sorts }: OperationRow = operations[resource.operations.list]
  const text = fieldLabel(shownName(name, schema))
  const column = {
    name: text,
    isNumber: schema.type === 'integer' || schema.type === 'number' || isTable(schema),
    isText: schema.type === 'string' && !schema.enum && schema.format !== 'date-time' && !isShort,
  }
  if (!sorts.includes(name)) return { ...column, label: text }
  const order = sortOf(resource, pairs)
  const [isAscending, isDescending] = [order === name, order === `-${name}`]
  const isDefault = isDescending && sortOf(resource, []) === order
  // Clicking cycles through ascending, descending and the default order.
  const next = isAscending ? `-${name}` : isDescending && !isDefault ? undefined : name
  const to = `/console${resourcePath(resource)}${queryText(withValue(pairs, 'sort', next))}`
  return {
    ...column,
    label: html`<a class="sort" href="${to}">${text}</a>`,
    ...(isAscending && { sort: 'ascending' }),
    ...(isDescending && { sort: 'descending' }),
  }
}
