/** The page that lists the records of a resource. */
import { validate as isUuid } from 'uuid'
import { InvalidInput } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { isStorable } from '../../../operations/storable.ts'
import { apiCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { count, counted } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import type { ConsolePage, PageResult, Visit } from '../page.ts'
import { buttonLink, codeBlock, empty, note, pager, withCode } from '../ui.ts'
import { EXPORT_REFRESH_SECONDS, isExportRunning } from './export-file.ts'
import { canImport } from './imports.ts'
import { noun, plural } from './labels.ts'
import { FIND, type FilterContext, filterChips, recordFilters } from './list-filters.ts'
import {
  convertQuery,
  filterParameter,
  filtersIn,
  normalizeQuery,
  type Pairs,
  queryText,
  withValue,
} from './list-query.ts'
import { type CountColumn, countColumns, recordTable, sortOf } from './list-table.ts'
import { withOwnCurrencies } from './own-currencies.ts'
import { paymentSums } from './payment-sums.ts'
import {
  listRecords,
  loadReferences,
  newestFirst,
  type Records,
  type SearchResult,
  searchRecords,
} from './references.ts'
import {
  canExport,
  canPerform,
  canViewResource,
  referencedResource,
  resourcePath,
} from './resources.ts'
import { canSelect, selectionBar } from './selection.ts'

interface List extends FilterContext {
  visit: Visit
  operation: OperationRow
  /** Undefined if the query is invalid. */
  found?: Records
  sums?: Content
  counts: CountColumn[]
}

export async function recordListPage(visit: Visit, resource: Resource): Promise<PageResult> {
  const operation: OperationRow = operations[resource.operations.list]
  const searched = visit.query.get(FIND)
  if (searched !== null) return searchPage(visit, resource, searched)
  const rawPairs: Pairs = [...visit.query]
  const pairs = normalizeQuery(resource, rawPairs)
  if (JSON.stringify(pairs) !== JSON.stringify(rawPairs))
    return { to: `${resourcePath(resource)}${queryText(pairs)}` }
  const filters = filtersIn(pairs)
  const available = await withOwnCurrencies(visit, resource.filters)
  const { user, now } = visit
  const list = { counts: [], visit, user, now, resource, operation, pairs, available }
  try {
    const query = { ...newestFirst(resource), ...convertQuery(operation, pairs) }
    const found = await listRecords(visit, resource, query)
    const known = await loadReferences(visit, [...found.data, filters])
    const sums = await paymentSums(visit, resource, query, found.meta.total)
    const counts = await countColumns(visit, resource, found.data)
    return listContent({ ...list, found, known, sums, counts, errors: {} })
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const { errors } = error
    const known = await loadReferences(visit, [filters])
    const suggestions = await suggestFilterRecords(visit, filters)
    return { ...listContent({ ...list, known, errors, suggestions }), status: 422 }
  }
}

/** The filters with the search results for the text of one of them, which replace its list. */
async function searchPage(visit: Visit, resource: Resource, name: string): Promise<ConsolePage> {
  const text = visit.query.get(filterParameter(name)) ?? ''
  const { user, now } = visit
  const context = { user, now, resource, available: [...resource.filters], pairs: [] }
  const suggestions = await suggestFilterRecords(visit, { [name]: text })
  return {
    title: plural(resource),
    body: recordFilters({ ...context, known: new Map(), errors: {}, suggestions }),
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
      ${filterChips(list)}
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
    ${data.length > 0 && listBar(list, meta.total)}
    ${data.length === 0 ? emptyList(list, meta) : recordTable(list, data)}
    ${recordPager(list, meta)}
  </section>`
}

/** The number of records, or the buttons for the selected rows, and the export. */
function listBar({ resource, visit: { user }, pairs, sums }: List, total: number): Html {
  const filters = pairs.filter(([name]) => name.startsWith('filter['))
  const exportPath = `${resourcePath(resource)}/export${queryText(filters)}`
  return html`<header class="card-head">
    <p class="total">${counted(total, noun(resource), plural(resource).toLowerCase())}${sums}</p>
    ${canSelect(user, resource) && selectionBar(user, resource)}
    ${canExport(user, resource) && buttonLink(exportPath, 'Export these')}
  </header>`
}

function emptyList({ resource, visit, pairs }: List, { total, last_page }: Records['meta']): Html {
  const nouns = plural(resource).toLowerCase()
  if (total > 0)
    return empty('This page is empty', `There are ${counted(last_page, 'page')} of ${nouns}.`)
  if (Object.keys(filtersIn(pairs)).length > 0)
    return empty('Nothing matches', `No ${noun(resource)} matches all of these filters.`)
  const create = canCreate(visit, resource)
  return empty(
    `No ${nouns} yet`,
    create && 'Create the first one here or with the API.',
    create && creationLink(resource),
  )
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

function apiRequest({ visit, resource, operation, pairs }: List): Html {
  const order = sortOf(resource, pairs) || undefined
  const command = apiCurlCommand({
    method: 'GET',
    url: visit.config.baseUrl + operation.path,
    query: withValue(pairs, 'sort', order),
  })
  return html`<details class="same-by-api">
    <summary>Show as API request</summary>
    ${codeBlock(command, 'request')}
  </details>`
}
