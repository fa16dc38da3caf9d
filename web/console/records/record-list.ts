/** The page that lists the records of a resource. */
import { validate as isUuid } from 'uuid'
import { InvalidInput } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { isStorable } from '../../../operations/storable.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { apiCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { count, counted } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import type { ConsolePage, PageResult, Visit } from '../page.ts'
import {
  buttonLink,
  type Column,
  codeBlock,
  empty,
  note,
  pager,
  shortId,
  table,
  withCode,
} from '../ui.ts'
import { shownName } from './amounts.ts'
import { cell } from './cells.ts'
import {
  canViewExported,
  EXPORT_REFRESH_SECONDS,
  isExportRunning,
  isFileReady,
} from './export-file.ts'
import { canImport } from './imports.ts'
import { noun, plural } from './labels.ts'
import { type FilterContext, recordFilters } from './list-filters.ts'
import {
  convertQuery,
  filterParameter,
  filtersIn,
  normalizeQuery,
  type Pairs,
  queryText,
  queryValue,
  withValue,
} from './list-query.ts'
import { withOwnCurrencies } from './own-currencies.ts'
import {
  listRecords,
  loadReferences,
  type Records,
  type SearchResult,
  searchRecords,
} from './references.ts'
import {
  canPerform,
  canViewResource,
  fieldLabel,
  type Item,
  nameField,
  recordFields,
  referencedResource,
  resourcePath,
} from './resources.ts'

interface List extends FilterContext {
  visit: Visit
  operation: OperationRow
  /** Undefined if the query is invalid. */
  found?: Records
}

export async function recordListPage(visit: Visit, resource: Resource): Promise<PageResult> {
  const operation: OperationRow = operations[resource.operations.list]
  const rawPairs: Pairs = [...visit.query]
  const pairs = normalizeQuery(resource, rawPairs)
  if (JSON.stringify(pairs) !== JSON.stringify(rawPairs))
    return { to: `${resourcePath(resource)}${queryText(pairs)}` }
  const filters = filtersIn(pairs)
  const available = await withOwnCurrencies(visit, resource.filters)
  const list = { visit, resource, operation, pairs, available }
  try {
    const found = await listRecords(visit, resource, convertQuery(operation, pairs))
    const known = await loadReferences(visit, [...found.data, filters])
    return listContent({ ...list, found, known, errors: {} })
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const { errors } = error
    const known = await loadReferences(visit, [filters])
    const suggestions = await suggestFilterRecords(visit, filters)
    return { ...listContent({ ...list, known, errors, suggestions }), status: 422 }
  }
}

/** Search results for filters that hold a name instead of an ID. */
async function suggestFilterRecords(
  visit: Visit,
  filters: Record<string, string>,
): Promise<Record<string, SearchResult>> {
  const suggestions: Record<string, SearchResult> = {}
  for (const [name, text] of Object.entries(filters)) {
    const resource = referencedResource(name)
    if (resource && !isUuid(text) && isStorable(text) && canViewResource(visit.user, resource))
      suggestions[name] = await searchRecords(visit, resource, text, {})
  }
  return suggestions
}

function listContent(list: List): ConsolePage {
  const { visit, resource, found } = list
  return {
    title: plural(resource),
    lead: withCode(resource.description),
    actions: canCreate(visit, resource) && creationLink(resource),
    listId: 'list',
    body: html`
      ${errorNote(list)}
      ${recordFilters(list)}
      <div id="list">${found && records(list, found)}</div>
      ${apiRequest(list)}`,
  }
}

function canCreate({ user }: Visit, resource: Resource): boolean {
  return resource.slug === 'imports' ? canImport(user) : canPerform(user, resource, 'create')
}

function creationLink(resource: Resource): Html {
  return buttonLink(`${resourcePath(resource)}/new`, `New ${noun(resource)}`, 'primary')
}

/** Names the errors that no field of the filter form shows. If there are none, points to the
 *  fields. */
function errorNote({ resource, errors }: List): Content {
  if (Object.keys(errors).length === 0) return false
  const shown = resource.filters.map(({ name }) => filterParameter(name))
  const unshown = Object.entries(errors).filter(([name]) => !shown.includes(name))
  if (unshown.length === 0) return note('bad', 'Please fix the filters marked below.')
  return note('bad', unshown.map(([name, messages]) => `${name} ${messages.join(' ')}`).join(' '))
}

function records(list: List, { data, meta }: Records): Html {
  const { resource, pairs } = list
  const isLive = data.some((item) => isExportRunning(resource, item))
  const path = `/console${resourcePath(resource)}${queryText(pairs)}`
  const attributes = isLive && reloadEvery(EXPORT_REFRESH_SECONDS, path, 'records')
  return html`<section class="card records" id="records"${attributes}>
    ${data.length === 0 ? emptyList(list, meta) : recordTable(list, data)}
    ${recordPager(list, meta)}
  </section>`
}

function emptyList({ resource, visit, pairs }: List, { total, last_page }: Records['meta']): Html {
  const nouns = plural(resource).toLowerCase()
  if (total > 0)
    return empty('This page is empty', `There are ${counted(last_page, 'page')} of ${nouns}.`)
  if (Object.keys(filtersIn(pairs)).length > 0)
    return empty(
      'Nothing matches',
      `No ${noun(resource)} matches all of these filters.`,
      buttonLink(resourcePath(resource), 'Clear filters'),
    )
  const create = canCreate(visit, resource)
  return empty(
    `No ${nouns} yet`,
    `${resource.description}${create ? ' Create the first one here or with the API.' : ''}`,
    create && creationLink(resource),
  )
}

function recordTable(list: List, items: Item[]): Html {
  const { resource, visit, known } = list
  const name = nameField(resource)
  const fields = listColumns(list).filter(([field]) => field !== name)
  const context = { now: visit.now, known }
  const hasFile = resource.operations.file !== null
  const columns: Column[] = [
    name === undefined ? 'ID' : columnHead(list, name, {}),
    ...fields.map(([field, schema]) => columnHead(list, field, schema)),
    ...(hasFile ? [{ label: 'File', isHidden: true }] : []),
  ]
  const rows = items.map((item) => ({
    cells: [
      recordLink(resource, item, name),
      ...fields.map(([field, schema]) => cell(field, schema, item[field], { ...context, item })),
      ...(hasFile ? [fileLink(list, item)] : []),
    ],
  }))
  return table(plural(resource), columns, rows)
}

function recordLink(resource: Resource, item: Item, name: string | undefined): Html {
  const text =
    name === undefined
      ? html`<code>${shortId(item.id)}</code>`
      : html`<span class="clip">${String(item[name])}</span>`
  return html`<a href="/console${resourcePath(resource, item.id)}">${text}</a>`
}

function fileLink({ resource, visit }: List, item: Item): Content {
  return (
    isFileReady(resource, item, visit.now) &&
    canViewExported(visit.user, item) &&
    buttonLink(resourcePath(resource, item.id, 'file'), 'Download')
  )
}

/** A text field that permits more characters has no column. */
const MAX_COLUMN_CHARACTERS = 500

/** Columns that would make the table wider than the page. */
const HIDDEN_COLUMNS: Record<string, string[]> = {
  imports: ['format', 'created_count', 'updated_count', 'unchanged_count', 'byte_size'],
}

function listColumns({ resource, operation: { sorts, filters } }: List): [string, Schema][] {
  const { creation, change } = resource
  const writable = { ...creation?.properties, ...change?.properties }
  const isInQuery = (name: string): boolean => sorts.includes(name) || name in filters
  return recordFields(resource).filter(([name, schema]) => {
    if (name === 'id' || schema.properties || schema.additionalProperties) return false
    if (HIDDEN_COLUMNS[resource.slug]?.includes(name)) return false
    if (name in writable) return (writable[name]?.maxLength ?? 0) <= MAX_COLUMN_CHARACTERS
    return isInQuery(name) || schema.type === 'integer' || schema.enum !== undefined
  })
}

function columnHead({ resource, operation, pairs }: List, name: string, schema: Schema): Column {
  const text = fieldLabel(shownName(name, schema))
  const column = { name: text, isNumber: schema.type === 'integer' || schema.type === 'number' }
  if (!operation.sorts.includes(name)) return { ...column, label: text }
  const sort = queryValue(pairs, 'sort')
  const isAscending = sort === name
  const isDescending = sort === `-${name}`
  // Clicking cycles through ascending, descending and the default order.
  const next = isAscending ? `-${name}` : isDescending ? undefined : name
  const to = `/console${resourcePath(resource)}${queryText(withValue(pairs, 'sort', next))}`
  const order = isAscending ? 'ascending' : isDescending ? 'descending' : undefined
  return { ...column, label: html`<a class="sort" href="${to}">${text}</a>`, sort: order }
}

function recordPager(
  { resource, pairs }: List,
  { current_page, last_page, per_page, total }: Records['meta'],
): Content {
  if (total === 0) return undefined
  const to = (number: number): string => {
    const value = number === 1 ? undefined : String(number)
    return `${resourcePath(resource)}${queryText(withValue(pairs, 'page[number]', value))}`
  }
  const first = (current_page - 1) * per_page + 1
  const shown =
    first > total ? 'None' : `${count(first)} to ${count(Math.min(total, first + per_page - 1))}`
  const sizeLinks = total > SMALLEST_PAGE && pageSizeLinks(resource, pairs, per_page)
  return pager({
    previous: current_page > 1 ? to(Math.min(current_page - 1, last_page)) : undefined,
    next: current_page < last_page ? to(current_page + 1) : undefined,
    note: html`${shown} of ${count(total)}${sizeLinks}`,
  })
}

const SMALLEST_PAGE = 25
const PAGE_SIZES = [SMALLEST_PAGE, 50, 100]

function pageSizeLinks(resource: Resource, pairs: Pairs, current: number): Html {
  const link = (size: number): Html => {
    if (size === current) return html` <strong>${size}</strong>`
    const query = normalizeQuery(resource, withValue(pairs, 'page[size]', String(size)))
    return html` <a href="/console${resourcePath(resource)}${queryText(query)}">${size}</a>`
  }
  return html` · Rows per page: ${PAGE_SIZES.map(link)}`
}

function apiRequest({ visit, operation, pairs }: List): Html {
  const command = apiCurlCommand({
    method: 'GET',
    url: visit.config.baseUrl + operation.path,
    query: pairs,
  })
  return html`<details class="same-by-api">
    <summary>Show as API request</summary>
    ${codeBlock(command, 'request')}
  </details>`
}
