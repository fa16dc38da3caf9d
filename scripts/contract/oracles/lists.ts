/** Oracle: every filter, sort and page of a list returns what a model (words/list-model.ts)
 *  computes from all its records. Some of the records were updated, and one was deleted. */
import type { Operation } from '../../model/operations.ts'
import { findItemSchema, type ListWords, readListWords, readSort } from '../../words/lists.ts'
import { readField } from '../../words/read.ts'
import type { Check, Run } from '../run.ts'
import { largeListChecks } from './large-lists.ts'
import { chooseFilterings, chooseTogether, type Filtering } from './list-filter-values.ts'
import { createSeeds } from './list-seeds.ts'
import { ListUnderTest, type PageOptions, type TestedPage, toCheck } from './list-under-test.ts'

export async function* listContentChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const words = readListWords(run.contract)
  if (words === undefined || findItemSchema(run.contract, operation) === undefined) return
  const path = await run.records.sharedPath(operation)
  const { ids, deletedIds, earlier } = await createSeeds(run, operation, path)
  const list = new ListUnderTest(run, { operation, path, words })
  await list.limitToNewest()
  const records = await list.readAll()
  yield { what: 'the new records', perform: () => list.assertHas(ids) }
  yield {
    what: 'a deleted record',
    perform: () => list.assertLacks(deletedIds, 'a deleted record'),
  }
  if (operation.path.includes('{'))
    yield {
      what: 'the records of another list',
      perform: async () => {
        const otherPath = await run.records.newPath(operation)
        const others = await createSeeds(run, operation, otherPath)
        await list.assertLacks(others.ids, 'a record of another list')
      },
    }
  const tried = chooseFilterings(list, records, earlier)
  const pages = [
    ...listPages(list, records.length),
    ...listFiltered(tried),
    ...listCombined(list, records, tried),
    ...listSorted(list, records),
  ]
  yield* pages.map((page) => toCheck(list, page))
  if (records.length > 0)
    yield { what: 'an entry and the record', perform: () => list.assertSameAsRecords() }
  yield* largeListChecks(run, { operation, path, words })
}

function listPages(list: ListUnderTest, count: number): TestedPage[] {
  const { maxSize } = list
  const sorts = list.sortOptions().slice(0, 1)
  const page = (what: string, options: PageOptions): TestedPage => [what, {}, options]
  const full = [
    page('one page that has all records', { size: count }),
    page('the page after a full last page', { number: 2, size: count }),
  ]
  const byDefault = page('the page without parameters', { omitted: ['number', 'size'] })
  return [
    ...(list.defaultSize() === undefined ? [] : [byDefault]),
    ...[1, 2, 3].map((number) => page(`page ${number}`, { number, size: 2 })),
    ...[1, 2].map(
      (number): TestedPage => [`page ${number}, sorted`, { sorts }, { number, size: 2 }],
    ),
    ...(count > 0 && count <= maxSize ? full : []),
    page('a page after the last one', { number: Math.ceil(count / maxSize) + 1 }),
    ['the order without sort', { sorts: [] }],
  ]
}

function listFiltered(tried: Filtering[]): TestedPage[] {
  return tried.flatMap((filtering): TestedPage[] => {
    const { filter, values } = filtering
    const what = `${filter.parameter.name}: ${values.join(',')}`
    const selection = { filterings: [filtering] }
    const hasSpace = values.some((value) => value.includes(' '))
    return [
      [what, selection],
      ...(hasSpace
        ? [[`${what}, with + for a space`, selection, { space: '+' }] satisfies TestedPage]
        : []),
    ]
  })
}

/** All filters that match one record together, with a sort. Then again, each time with one filter
 *  that does not match the record. */
function listCombined(list: ListUnderTest, records: unknown[], tried: Filtering[]): TestedPage[] {
  const sorts = list.sortOptions().slice(-1)
  const { matching = [], others = [] } = chooseTogether(records, tried) ?? {}
  if (matching.length < 2) return []
  return [
    ['all filters', { filterings: matching, sorts }],
    ...others.map((other): TestedPage => {
      const rest = matching.filter(({ filter }) => filter !== other.filter)
      const what = `all filters, ${other.filter.parameter.name} with another value`
      return [what, { filterings: [...rest, other], sorts }]
    }),
  ]
}

function listSorted(list: ListUnderTest, records: unknown[]): TestedPage[] {
  const options = list.sortOptions()
  const combinations = [
    ...options.map((option) => [option]),
    ...listPairs(options, records, list.words.sort),
  ]
  return combinations.map((sorts) => [`sort: ${sorts.join(',')}`, { sorts }])
}

/** The pairs of options whose second option orders records with an equal value of the first, and
 *  one pair of other options. */
function listPairs(
  options: string[],
  records: unknown[],
  sort: ListWords['sort'],
): [string, string][] {
  const fieldOf = (option: string): string => readSort(option, sort).field
  const pairs = options.flatMap((first) =>
    options
      .filter((second) => fieldOf(first) !== fieldOf(second))
      .map((second): [string, string] => [first, second]),
  )
  const isTelling = ([first, second]: [string, string]): boolean => {
    const groups = Map.groupBy(records, (record) => readField(record, fieldOf(first)) ?? null)
    return [...groups.values()].some(
      (group) => new Set(group.map((record) => readField(record, fieldOf(second)))).size > 1,
    )
  }
  return pairs.filter((pair, index) => isTelling(pair) || index === pairs.length - 1)
}
