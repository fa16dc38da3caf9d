/** The list of a resource. */
import { validate as isUuid } from 'uuid'
import { InvalidInput } from '../../../errors.ts'
import { type Operation, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { isStorable } from '../../../operations/storable.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { apiCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { count, counted } from '../format.ts'
import type { Answer, Page, Visit } from '../page.ts'
import {
  buttonLink,
  type Column,
  codeBlock,
  empty,
  live,
  note,
  pager,
  shortId,
  table,
} from '../ui.ts'
import { cell, shownName, withCode } from './cells.ts'
import { isBeingMade, isReady, mayHave } from './export-file.ts'
import { capital, label, noun, plural } from './labels.ts'
import { type Filtering, filterForm } from './list-filters.ts'
import {
  asAsked,
  filterName,
  filtersIn,
  given,
  type Pairs,
  queryText,
  typed,
  withValue,
} from './list-query.ts'
import { type Found as Named, referredTo, search } from './references.ts'
import {
  addressOf,
  fieldsOf,
  type Item,
  mayDo,
  maySee,
  nameField,
  referencedBy,
} from './resources.ts'

interface Found {
  data: Item[]
  meta: { current_page: number; last_page: number; per_page: number; total: number }
}

interface List extends Filtering {
  visit: Visit
  operation: Operation
  /** Undefined when the query cannot be answered. */
  found?: Found
}

export async function listPage(visit: Visit, resource: Resource): Promise<Answer> {
  const operation: Operation = operations[resource.operations.list]
  const asGiven: Pairs = [...visit.query]
  const pairs = asAsked(resource, asGiven)
  if (JSON.stringify(pairs) !== JSON.stringify(asGiven))
    return { to: `${addressOf(resource)}${queryText(pairs)}` }
  const list = { visit, resource, operation, pairs, errors: {} }
  try {
    const found = (await visit.call(resource.operations.list, {
      query: typed(operation, pairs),
    })) as Found
    return page({
      ...list,
      found,
      known: await referredTo(visit, [...found.data, filtersIn(pairs)]),
    })
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const known = await referredTo(visit, [filtersIn(pairs)])
    return {
      ...page({
        ...list,
        errors: error.errors,
        known,
        meant: await meantBy(visit, filtersIn(pairs)),
      }),
      status: 422,
    }
  }
}

/** Records whose name is in a filter that wants an id. */
async function meantBy(
  visit: Visit,
  filters: Record<string, string>,
): Promise<Record<string, Named>> {
  const meant: Record<string, Named> = {}
  for (const [name, text] of Object.entries(filters)) {
    const resource = referencedBy(name)
    if (resource && !isUuid(text) && isStorable(text) && maySee(visit.user, resource))
      meant[name] = await search(visit, resource, text, {})
  }
  return meant
}

function page(list: List): Page {
  const { visit, resource, found } = list
  return {
    title: plural(resource),
    lead: withCode(resource.description),
    actions: mayDo(visit.user, resource, 'create') && creationLink(resource),
    body: html`${problems(list)}${filterForm(list)}${found && records(list, found)}${sameByApi(list)}`,
  }
}

function creationLink(resource: Resource): Html {
  return buttonLink(`${addressOf(resource)}/new`, `New ${noun(resource)}`, 'primary')
}

/** What is wrong with the query, as far as no field shows it. */
function problems({ resource, errors }: List): Content {
  const shown = new Set(resource.filters.map(({ name }) => filterName(name)))
  const all = Object.entries(errors)
  const rest = all
    .filter(([name]) => !shown.has(name))
    .map(([name, texts]) => `${name} ${texts.join(' ')}`)
  return (
    all.length > 0 &&
    note('bad', rest.length > 0 ? rest.join(' ') : 'A filter cannot be used as it is. See below.')
  )
}

/** How often a list is read again while something in it is being made. */
const LIVE_SECONDS = 2

function records(list: List, { data, meta }: Found): Html {
  const { resource, pairs } = list
  const isMoving = data.some((item) => isBeingMade(resource, item))
  const here = `/console${addressOf(resource)}${queryText(pairs)}`
  return html`<section class="card records" id="records"${isMoving && live(here, 'records', LIVE_SECONDS)}>${
    data.length === 0 ? nothingThere(list, meta) : recordTable(list, data)
  }${pages(list, meta)}</section>`
}

function nothingThere({ resource, visit, pairs }: List, { total, last_page }: Found['meta']): Html {
  const all = plural(resource).toLowerCase()
  if (total > 0)
    return empty('This page is empty', `There are ${counted(last_page, 'page')} of ${all}.`)
  if (Object.keys(filtersIn(pairs)).length > 0)
    return empty(
      'Nothing matches',
      `No ${noun(resource)} matches all of these filters.`,
      buttonLink(addressOf(resource), 'Clear filters'),
    )
  const create = mayDo(visit.user, resource, 'create')
  return empty(
    `No ${all} yet`,
    `${resource.description}${create ? ' Make the first one here, or with the API.' : ''}`,
    create && creationLink(resource),
  )
}

function recordTable(list: List, items: Item[]): Html {
  const { resource, visit, known } = list
  const name = nameField(resource)
  const fields = columnsOf(list).filter(([field]) => field !== name)
  const showing = { now: visit.now, known }
  const hasFile = resource.operations.file !== null
  const columns = [
    name === undefined ? 'ID' : head(list, name, {}),
    ...fields.map(([field, schema]) => head(list, field, schema)),
    ...(hasFile ? [{ label: 'File', isHidden: true }] : []),
  ]
  const rows = items.map((item) => ({
    cells: [
      html`<a href="/console${addressOf(resource, item.id)}">${name === undefined ? html`<code>${shortId(item.id)}</code>` : html`<span class="clip">${String(item[name])}</span>`}</a>`,
      ...fields.map(([field, schema]) => cell(field, schema, item[field], { ...showing, item })),
      ...(hasFile ? [fileLink(list, item)] : []),
    ],
  }))
  return table(columns, rows, { label: plural(resource) })
}

function fileLink({ resource, visit }: List, item: Item): Content {
  return (
    isReady(resource, item, visit.now) &&
    mayHave(visit.user, item) &&
    buttonLink(addressOf(resource, item.id, 'file'), 'Download')
  )
}

/** Longer texts are for the page of the record. */
const LONG_TEXT = 500

/** The fields that are short, and either given by somebody or of use for finding something. */
function columnsOf({ resource, operation: { sorts, filters } }: List): [string, Schema][] {
  const { creation, change } = resource
  const giveable = { ...creation?.properties, ...change?.properties }
  const isKnown = (name: string): boolean => sorts.includes(name) || name in filters
  return fieldsOf(resource).filter(([name, schema]) => {
    if (name === 'id' || schema.properties || schema.additionalProperties) return false
    if (name in giveable) return (giveable[name]?.maxLength ?? 0) <= LONG_TEXT
    return isKnown(name) || schema.type === 'integer' || schema.enum !== undefined
  })
}

function head({ resource, operation, pairs }: List, name: string, schema: Schema): Column {
  const text = referencedBy(name)
    ? capital(noun(referencedBy(name) ?? resource))
    : label(shownName(name, schema))
  const column = { name: text, isNumber: schema.type === 'integer' || schema.type === 'number' }
  if (!operation.sorts.includes(name)) return { ...column, label: text }
  const sort = given(pairs, 'sort')
  // Rising, falling, as created.
  const next = sort === name ? `-${name}` : sort === `-${name}` ? undefined : name
  const to = `/console${addressOf(resource)}${queryText(withValue(pairs, 'sort', next))}`
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined
  return { ...column, label: html`<a class="sort" href="${to}">${text}</a>`, sort: order }
}

function pages(
  { resource, pairs }: List,
  { current_page, last_page, per_page, total }: Found['meta'],
): Content {
  if (total === 0) return undefined
  const to = (number: number): string =>
    `${addressOf(resource)}${queryText(number === 1 ? withValue(pairs, 'page[number]', undefined) : withValue(pairs, 'page[number]', String(number)))}`
  const first = (current_page - 1) * per_page + 1
  const shown =
    first > total ? 'None' : `${count(first)} to ${count(Math.min(total, first + per_page - 1))}`
  return pager({
    previous: current_page > 1 ? to(Math.min(current_page - 1, last_page)) : undefined,
    next: current_page < last_page ? to(current_page + 1) : undefined,
    note: html`${shown} of ${count(total)}${total > Math.min(...SIZES) && sizes(resource, pairs, per_page)}`,
  })
}

const SIZES = [25, 50, 100]

function sizes(resource: Resource, pairs: Pairs, current: number): Html {
  const to = (size: number): string =>
    `/console${addressOf(resource)}${queryText(asAsked(resource, withValue(pairs, 'page[size]', String(size))))}`
  return html` · on a page: ${SIZES.map((size) => (size === current ? html` <strong>${size}</strong>` : html` <a href="${to(size)}">${size}</a>`))}`
}

/** The request that answers with what the page shows. */
function sameByApi({ visit, operation, pairs }: List): Html {
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
