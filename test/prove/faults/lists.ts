/** Seeded faults of filters, sorts and pages. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { JsonObject } from '../../../scripts/model/json.ts'
import type { Operation } from '../../../scripts/model/operations.ts'
import { mapValues } from '../../../scripts/model/schema.ts'
import {
  type FilterParameter,
  type ListWords,
  listFilters,
  readListWords,
} from '../../../scripts/words/lists.ts'
import { readField, readPointer } from '../../../scripts/words/read.ts'
import type { ProxyHooks, ProxyRequest } from '../faulty-proxy.ts'
import { onBody, onQuery, queryOf } from '../hooks.ts'
import {
  assertFound,
  faultFactory,
  firstResource,
  listResources,
  type SeededFault,
} from '../seeded-fault.ts'

const faults = faultFactory('lists')

export function listFaults(contract: Contract): SeededFault[] {
  const words = assertFound(readListWords(contract))
  const lists = listResources(contract).map(({ list }) => list)
  // The tests create many jobs.
  const large = assertFound(lists.find(({ id }) => id === 'listJobs'))
  return [
    ...filterFaults(lists, words),
    ...sortFaults(lists, words),
    ...pageFaults(firstResource(contract).list, words),
    ...faults(large, {
      'returns at most 50 records': onItems(large, words, (records) => records.slice(0, 50)),
    }),
  ]
}

/** Changes the records of each page. */
function onItems(
  list: Operation,
  { items }: ListWords,
  change: (records: JsonObject[], request: ProxyRequest) => unknown[],
): ProxyHooks {
  const name = items.slice(1)
  return onBody(list, (page, request) => ({ ...page, [name]: change(page[name], request) }))
}

interface ListFilter {
  list: Operation
  filter: FilterParameter
}

function filterFaults(lists: Operation[], words: ListWords): SeededFault[] {
  const all = lists.flatMap((list) =>
    listFilters(list).map((filter): ListFilter => ({ list, filter })),
  )
  /** A fault of the first filter that fits. */
  const faultIn = (
    fits: (filter: FilterParameter) => boolean,
    what: string,
    hooksFor: (found: ListFilter) => ProxyHooks,
  ): SeededFault[] => {
    const found = assertFound(all.find(({ filter }) => fits(filter)))
    return faults(found.list, { [what]: hooksFor(found) })
  }
  const ignore = ({ list, filter }: ListFilter) =>
    onQuery(list, (query) => query.delete(filter.parameter.name))
  /** Keeps a record if at least one of the filter's fields passes `keeps`. `text` is the field in
   *  the record, and `value` the filter in the query. */
  const narrow =
    (keeps: (text: string, value: string) => boolean) =>
    ({ list, filter }: ListFilter) =>
      onItems(list, words, (records, { path }) => {
        const value = queryOf(path).get(filter.parameter.name)
        if (value === null) return records
        return records.filter((record) =>
          filter.fields.some((field) => keeps(String(readField(record, field)), value)),
        )
      })
  const includes = (text: string, value: string) => text.toLowerCase().includes(value.toLowerCase())
  const isArray = ({ parameter }: FilterParameter) => parameter.schema.value.type === 'array'
  const byOptions = (filter: FilterParameter) => filter.match === 'equals' && isArray(filter)
  const byText = (filter: FilterParameter) => filter.match === 'equals' && !isArray(filter)
  const byEntry = ({ match }: FilterParameter) => match === 'has'
  const isSearch = ({ match }: FilterParameter) => match === 'contains'
  const byEarliest = ({ match }: FilterParameter) => match === 'after'
  const byLatest = ({ match }: FilterParameter) => match === 'before'
  return [
    ...faultIn(byOptions, 'ignores a filter by options', ignore),
    ...faultIn(byOptions, 'uses the first of several options only', ({ list, filter }) =>
      onQuery(list, (query) => {
        const [first] = (query.get(filter.parameter.name) ?? '').split(',')
        if (first) query.set(filter.parameter.name, first)
      }),
    ),
    ...faultIn(byText, 'ignores a filter by text', ignore),
    ...faultIn(byText, 'understands a wildcard in a filter', ({ list, filter }) =>
      onQuery(list, (query) => {
        if (query.get(filter.parameter.name) === '%') query.delete(filter.parameter.name)
      }),
    ),
    ...faultIn(byEntry, 'ignores a filter by an entry', ignore),
    ...faultIn(isSearch, 'ignores a search', ignore),
    ...faultIn(
      (filter) => isSearch(filter) && filter.ignore_case === true,
      'searches with respect to case',
      narrow((text, value) => text.includes(value)),
    ),
    ...faultIn(
      isSearch,
      'searches the beginning of a text only',
      narrow((text, value) => text.toLowerCase().startsWith(value.toLowerCase())),
    ),
    ...faultIn(
      (filter) => isSearch(filter) && filter.fields.length > 1,
      'searches one of two fields only',
      ({ list, filter }) =>
        narrow(includes)({ list, filter: { ...filter, fields: filter.fields.slice(0, 1) } }),
    ),
    ...faultIn(byEarliest, 'ignores a filter by the earliest time', ignore),
    ...faultIn(byEarliest, 'includes the time of a filter', ({ list, filter }) =>
      onQuery(list, (query) => {
        const time = Date.parse(query.get(filter.parameter.name) ?? '')
        if (!Number.isNaN(time)) query.set(filter.parameter.name, new Date(time - 1).toISOString())
      }),
    ),
    ...faultIn(byLatest, 'ignores a filter by the latest time', ignore),
    ...faultIn(byOptions, 'ignores the second of two filters', ({ list }) =>
      onQuery(list, (query) => {
        const names = [...query.keys()].filter((name) => name.startsWith('filter'))
        for (const name of names.slice(1)) query.delete(name)
      }),
    ),
  ]
}

function sortFaults(lists: Operation[], words: ListWords): SeededFault[] {
  const { sort } = words
  const [list] = lists as [Operation]
  // Tasks have fields that can be null.
  const nullable = assertFound(lists.find(({ id }) => id === 'listTasks'))
  const isSorted = ({ path }: ProxyRequest): boolean => queryOf(path).has(sort.parameter)
  const changeSort = (change: (value: string) => string): ProxyHooks =>
    onQuery(list, (query) => {
      const value = query.get(sort.parameter)
      if (value !== null) query.set(sort.parameter, change(value))
    })
  const nullRank = (record: object) => Number(Object.values(record).includes(null))
  return [
    ...faults(list, {
      'ignores sort': onQuery(list, (query) => query.delete(sort.parameter)),
      'ignores the descending order': changeSort((value) => value.replaceAll(sort.descending, '')),
      'sorts by the first field only': changeSort((value) => value.split(',')[0] ?? ''),
      'sorts by two fields in the direction of the first': changeSort((value) =>
        value.startsWith(sort.descending) ? value : value.replaceAll(sort.descending, ''),
      ),
      'orders records with equal values by chance': onItems(list, words, (records, request) =>
        isSorted(request) ? swapNeighbours(records) : records,
      ),
      'lists the newest records first': onItems(list, words, (records, request) =>
        isSorted(request) ? records : records.toReversed(),
      ),
    }),
    ...faults(nullable, {
      'lists records without a value first': onItems(nullable, words, (records, request) =>
        isSorted(request) ? records.toSorted((a, b) => nullRank(b) - nullRank(a)) : records,
      ),
    }),
  ]
}

/** Swaps the records of each pair of neighbours. In a sorted list, records with equal values are
 *  neighbours. */
function swapNeighbours<T>(records: T[]): T[] {
  return records.flatMap((record, index) => {
    if (index % 2 === 1) return []
    const next = records[index + 1]
    return next === undefined ? [record] : [next, record]
  })
}

function pageFaults(list: Operation, words: ListWords): SeededFault[] {
  const { page, meta, items } = words
  const setMeta = (pointer = '', change: (value: unknown, body: unknown) => unknown): ProxyHooks =>
    onBody(list, (body) => {
      const [, parent = '', name = ''] = pointer.split('/')
      const value = readPointer(body, pointer)
      return { ...body, [parent]: { ...body[parent], [name]: change(value, body) } }
    })
  const setNumber = (change: (value: number) => number): ProxyHooks =>
    onQuery(list, (query) => {
      const value = Number(query.get(page.parameter))
      // Page 1000 stays unchanged: the tests request it as a page after the last one.
      if (value > 0 && value < 1000) query.set(page.parameter, String(change(value)))
    })
  const emptyLists = (record: JsonObject): JsonObject =>
    mapValues(record, (value) => (Array.isArray(value) ? [] : value))
  return faults(list, {
    'ignores the size of the page': onQuery(list, (query) => {
      if (Number(query.get(page.size)) >= 1) query.delete(page.size)
    }),
    'ignores the number of the page': setNumber(() => 1),
    'counts pages from zero': setNumber((value) => value + 1),
    'ignores a cursor': onQuery(list, (query) => query.delete(page.after ?? '')),
    'skips a record after a cursor': onItems(list, words, (records, { path }) =>
      queryOf(path).has(page.after ?? '') ? records.slice(1) : records,
    ),
    'repeats a record of the page': onItems(list, words, (records) => [
      ...records.slice(0, -1),
      ...records.slice(0, 1),
    ]),
    'counts one page too many': setMeta(meta.last_page, (value) => Number(value) + 1),
    'counts the records of the page only': setMeta(
      meta.total,
      (_, body) => (readPointer(body, items) as unknown[]).length,
    ),
    'reports a constant page size': setMeta(meta.size, () => 25),
    'reports a constant page': setMeta(meta.page, () => 1),
    'reports too few sorts': setMeta(meta.sorts, (value) => (value as unknown[]).slice(1)),
    'leaves out the newest record': onItems(list, words, (records) => records.slice(0, -1)),
    'lists records with empty lists': onItems(list, words, (records) => records.map(emptyLists)),
  })
}
