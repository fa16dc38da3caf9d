/** Faults of filters, sorts and pages. */
import type { Contract } from '../../../model/contract.ts'
import type { Operation } from '../../../model/operations.ts'
import {
  type Filter,
  type FilterParameter,
  type ListWords,
  listFilters,
  readListWords,
} from '../../../words/lists.ts'
import { readField, readPointer } from '../../../words/read.ts'
import {
  firstResource,
  isFor,
  listResources,
  onBody,
  onQuery,
  type SeededFault,
} from '../seeded-fault.ts'

interface ListFilter {
  list: Operation
  filter: FilterParameter
}

export function listFaults(contract: Contract): SeededFault[] {
  const words = readListWords(contract)
  const lists = listResources(contract).map(({ list }) => list)
  if (!words) return []
  return [
    ...filterFaults(lists, words),
    ...sortFaults(lists, words),
    ...pageFaults(firstResource(contract).list, words),
  ]
}

function newFault(what: string, operation: Operation, by: SeededFault['by']): SeededFault {
  return { category: 'lists', what, operation, by }
}

type Page = Record<string, unknown[]>

function filterFaults(lists: Operation[], words: ListWords): SeededFault[] {
  const items = words.items.slice(1)
  const all = lists.flatMap((list) =>
    listFilters(list).map((filter): ListFilter => ({ list, filter })),
  )
  const faultFor = (
    what: string,
    fits: (filter: Filter, isArray: boolean) => boolean,
    by: (found: ListFilter) => SeededFault['by'],
  ): SeededFault[] => {
    const found = all.find(({ filter }) =>
      fits(filter, filter.parameter.schema.value.type === 'array'),
    )
    return found ? [newFault(what, found.list, by(found))] : []
  }
  const ignore = ({ list, filter }: ListFilter) =>
    onQuery(list, (query) => query.delete(filter.parameter.name))
  /** Keeps the records for which `keeps` is true of the field and the value of the filter. */
  const narrow =
    (keeps: (field: string, value: string) => boolean) =>
    ({ list, filter }: ListFilter) =>
      onBody(list, (page: Page, { path }) => {
        const value = new URLSearchParams(path.split('?')[1] ?? '').get(filter.parameter.name)
        if (value === null) return page
        const kept = (page[items] ?? []).filter((record) =>
          filter.fields.some((field) => keeps(String(readField(record, field)), value)),
        )
        return { ...page, [items]: kept }
      })
  return [
    ...faultFor(
      'ignores a filter by options',
      ({ match }, isArray) => match === 'equals' && isArray,
      ignore,
    ),
    ...faultFor(
      'uses the first of several options only',
      ({ match }, isArray) => match === 'equals' && isArray,
      ({ list, filter }) =>
        onQuery(list, (query) => {
          const [first] = (query.get(filter.parameter.name) ?? '').split(',')
          if (first) query.set(filter.parameter.name, first)
        }),
    ),
    ...faultFor(
      'ignores a filter by text',
      ({ match }, isArray) => match === 'equals' && !isArray,
      ignore,
    ),
    ...faultFor('ignores a filter by an entry', ({ match }) => match === 'has', ignore),
    ...faultFor('ignores a search', ({ match }) => match === 'contains', ignore),
    ...faultFor(
      'searches with respect to case',
      ({ match, ignore_case }) => match === 'contains' && ignore_case === true,
      narrow((field, value) => field.includes(value)),
    ),
    ...faultFor(
      'searches the beginning of a text only',
      ({ match }) => match === 'contains',
      narrow((field, value) => field.toLowerCase().startsWith(value.toLowerCase())),
    ),
    ...faultFor(
      'searches one of two fields only',
      ({ match, fields }) => match === 'contains' && fields.length > 1,
      ({ list, filter }) =>
        narrow((field, value) => field.toLowerCase().includes(value.toLowerCase()))({
          list,
          filter: { ...filter, fields: filter.fields.slice(0, 1) },
        }),
    ),
    ...faultFor('ignores a filter by the earliest time', ({ match }) => match === 'after', ignore),
    ...faultFor(
      'includes the time of a filter',
      ({ match }) => match === 'after',
      ({ list, filter }) =>
        onQuery(list, (query) => {
          const time = Date.parse(query.get(filter.parameter.name) ?? '')
          if (!Number.isNaN(time))
            query.set(filter.parameter.name, new Date(time - 1).toISOString())
        }),
    ),
    ...faultFor('ignores a filter by the latest time', ({ match }) => match === 'before', ignore),
    ...faultFor(
      'ignores the second of two filters',
      ({ match }, isArray) => match === 'equals' && isArray,
      ({ list }) =>
        onQuery(list, (query) => {
          const names = [...query.keys()].filter((name) => name.startsWith('filter'))
          for (const name of names.slice(1)) query.delete(name)
        }),
    ),
  ]
}

function sortFaults(lists: Operation[], { sort, items }: ListWords): SeededFault[] {
  const [list] = lists as [Operation]
  const nullable = lists.find(({ id }) => id === 'listTasks') ?? list
  const change = (edit: (value: string) => string | undefined) => (operation: Operation) =>
    onQuery(operation, (query) => {
      const edited = edit(query.get(sort.parameter) ?? '')
      if (query.has(sort.parameter) && edited !== undefined) query.set(sort.parameter, edited)
    })
  const reorder = (compare: (a: unknown, b: unknown) => number) => (operation: Operation) =>
    onBody(operation, (page: Page, { path }) =>
      new URLSearchParams(path.split('?')[1] ?? '').has(sort.parameter)
        ? { ...page, [items.slice(1)]: (page[items.slice(1)] ?? []).toSorted(compare) }
        : page,
    )
  const hasNull = (record: unknown) => Number(Object.values(record as object).includes(null))
  return [
    newFault(
      'ignores sort',
      list,
      onQuery(list, (query) => query.delete(sort.parameter)),
    ),
    newFault(
      'ignores the descending order',
      list,
      change((value) => value.replaceAll(sort.descending, ''))(list),
    ),
    newFault('sorts by the first field only', list, change((value) => value.split(',')[0])(list)),
    newFault(
      'lists records without a value first',
      nullable,
      reorder((a, b) => hasNull(b) - hasNull(a))(nullable),
    ),
    newFault('orders records with equal values by chance', list, {
      answer: ({ body, status }, { path, method }) =>
        status === 200 && isFor(list, { path, method }) && path.includes('sort=')
          ? { body: reverseTies(body, items.slice(1)) }
          : {},
    }),
    newFault(
      'lists the newest records first',
      list,
      onBody(list, (page: Page, { path }) =>
        path.includes('sort=')
          ? page
          : { ...page, [items.slice(1)]: (page[items.slice(1)] ?? []).toReversed() },
      ),
    ),
  ]
}

/** Exchanges neighbours that were created one after the other. */
function reverseTies(body: string, items: string): string {
  const page = JSON.parse(body)
  const records = page[items]
  for (let index = 0; index + 1 < records.length; index += 2)
    [records[index], records[index + 1]] = [records[index + 1], records[index]]
  return JSON.stringify(page)
}

function pageFaults(list: Operation, { page, meta, items }: ListWords): SeededFault[] {
  const setMeta = (
    pointer: string | undefined,
    change: (value: unknown, body: unknown) => unknown,
  ) =>
    onBody(list, (body) => {
      const [, parent = '', name = ''] = (pointer ?? '').split('/')
      const value = readPointer(body, pointer ?? '')
      return { ...body, [parent]: { ...body[parent], [name]: change(value, body) } }
    })
  const number = (change: (value: number) => number) =>
    onQuery(list, (query) => {
      const value = Number(query.get(page.parameter))
      if (value > 0 && value < 1000) query.set(page.parameter, String(change(value)))
    })
  return [
    newFault(
      'ignores the size of the page',
      list,
      onQuery(list, (query) => {
        if (Number(query.get(page.size)) >= 1) query.delete(page.size)
      }),
    ),
    newFault(
      'ignores the number of the page',
      list,
      number(() => 1),
    ),
    newFault(
      'counts pages from zero',
      list,
      number((value) => value + 1),
    ),
    newFault(
      'repeats the last record on the next page',
      list,
      onBody(list, (body) => ({
        ...body,
        [items.slice(1)]: body[items.slice(1)]
          .toSpliced(-1, 1, body[items.slice(1)][0])
          .filter(Boolean),
      })),
    ),
    newFault(
      'counts one page too many',
      list,
      setMeta(meta.last_page, (value) => Number(value) + 1),
    ),
    newFault(
      'counts the records of the page only',
      list,
      setMeta(meta.total, (_, body) => (readPointer(body, items) as unknown[]).length),
    ),
    newFault(
      'reports a constant page size',
      list,
      setMeta(meta.size, () => 25),
    ),
    newFault(
      'reports a constant page',
      list,
      setMeta(meta.page, () => 1),
    ),
    newFault(
      'reports too few sorts',
      list,
      setMeta(meta.sorts, (value) => (value as unknown[]).slice(1)),
    ),
    newFault(
      'leaves out the newest record',
      list,
      onBody(list, (body) => {
        const rest = body[items.slice(1)].slice(0, -1)
        return { ...body, [items.slice(1)]: rest }
      }),
    ),
    newFault(
      'lists records with a field missing from their values',
      list,
      onBody(list, (body) => ({
        ...body,
        [items.slice(1)]: body[items.slice(1)].map((record: object) =>
          Object.fromEntries(
            Object.entries(record).map(([name, value]) => [
              name,
              Array.isArray(value) ? [] : value,
            ]),
          ),
        ),
      })),
    ),
  ]
}
