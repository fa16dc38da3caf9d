/** Oracle: every filter, sort and page of a list returns what a model (words/list-model.ts)
 *  computes from all its records. Some of the records were updated, and one was deleted. */
import type { Operation } from '../../model/operations.ts'
import { applySort } from '../../words/list-model.ts'
import { findItemSchema, type ListWords, readListWords, readSort } from '../../words/lists.ts'
import { readField } from '../../words/read.ts'
import type { Check, Run } from '../run.ts'
import { chooseFilterings, chooseTogether, type Filtering } from './filterings.ts'
import { largeListChecks } from './large-lists.ts'
import { createSeeds } from './list-seeds.ts'
import { ListUnderTest } from './list-under-test.ts'

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
  yield* pageChecks(list, records.length)
  const tried = chooseFilterings(list, records, earlier)
  yield* filterChecks(list, tried)
  yield* combinationChecks(list, records, tried)
  yield* sortChecks(list, records)
  if (records.length > 0)
    yield { what: 'an entry and the record', perform: () => list.assertSameAsRecords() }
  yield* largeListChecks(run, { operation, path, words })
}

function* pageChecks(list: ListUnderTest, count: number): Generator<Check> {
  const { words, maxSize } = list
  const [sort] = list.sortOptions()
  const page = (what: string, options: Parameters<ListUnderTest['assertPage']>[2]): Check => ({
    what,
    perform: () => list.assertPage({}, (records) => records, options),
  })
  for (const number of sort === undefined ? [] : [1, 2])
    yield {
      what: `page ${number}, sorted`,
      perform: () =>
        list.assertPage(
          { [words.sort.parameter]: sort },
          (records) => applySort(records, words.sort, [String(sort)]),
          { number, size: 2 },
        ),
    }
  for (const number of [1, 2, 3]) yield page(`page ${number}`, { number, size: 2 })
  if (count > 0 && count <= maxSize) {
    yield page('one page that has all records', { size: count })
    yield page('the page after a full last page', { number: 2, size: count })
  }
  yield page('a page after the last one', { number: Math.ceil(count / maxSize) + 1 })
  yield {
    what: 'the order without sort',
    perform: () =>
      list.assertPage({}, (records) =>
        sort === undefined ? records : applySort(records, words.sort, []),
      ),
  }
}

function* filterChecks(list: ListUnderTest, tried: Filtering[]): Generator<Check> {
  for (const filtering of tried) {
    const { filter, values, query } = filtering
    const what = `${filter.parameter.name}: ${values.join(',')}`
    const model = (records: unknown[]) => filtering.apply(records)
    yield { what, perform: () => list.assertPage(query, model) }
    if (values.some((value) => value.includes(' ')))
      yield {
        what: `${what}, with + for a space`,
        perform: () => list.assertPage(query, model, { space: '+' }),
      }
  }
}

/** All filters that match one record together, with a sort. Then again, each time with one filter
 *  that does not match the record. */
function* combinationChecks(
  list: ListUnderTest,
  records: unknown[],
  tried: Filtering[],
): Generator<Check> {
  const { sort } = list.words
  const sorts = list.sortOptions().slice(-1)
  const sortQuery = sorts.length > 0 ? { [sort.parameter]: sorts } : {}
  const check = (what: string, filterings: Filtering[]): Check => ({
    what,
    perform: () => {
      const query = Object.assign({}, sortQuery, ...filterings.map((one) => one.query))
      return list.assertPage(query, (all) => {
        const found = filterings.reduce((left, filtering) => filtering.apply(left), all)
        return sorts.length > 0 ? applySort(found, sort, sorts) : found
      })
    },
  })
  const { matching, other: others } = chooseTogether(records, tried)
  if (matching.length > 0) yield check('all filters', matching)
  if (matching.length > 1)
    for (const other of others)
      yield check(`all filters, ${other.filter.parameter.name} with another value`, [
        ...matching.filter(({ filter }) => filter !== other.filter),
        other,
      ])
}

function* sortChecks(list: ListUnderTest, records: unknown[]): Generator<Check> {
  const { sort } = list.words
  const options = list.sortOptions()
  const [first, ...rest] = options
  const last = rest.findLast((option) => !isSameField(option, first ?? '', sort))
  const always = first && last ? [[last, first]] : []
  const combinations = [
    ...options.map((option) => [option]),
    ...always,
    ...listTellingPairs(options, records, sort),
  ]
  for (const sorts of combinations)
    yield {
      what: `${sort.parameter}: ${sorts.join(',')}`,
      perform: () =>
        list.assertPage({ [sort.parameter]: sorts }, (all) => applySort(all, sort, sorts)),
    }
}

/** The pairs of options whose second option orders records with an equal value of the first. */
function listTellingPairs(
  options: string[],
  records: unknown[],
  sort: ListWords['sort'],
): [string, string][] {
  const fieldOf = (record: unknown, option: string): unknown =>
    readField(record, readSort(option, sort).field) ?? null
  return options.flatMap((first) => {
    const groups = [...Map.groupBy(records, (record) => fieldOf(record, first)).values()]
    const isTelling = (second: string): boolean =>
      !isSameField(first, second, sort) &&
      groups.some((group) => new Set(group.map((record) => fieldOf(record, second))).size > 1)
    return options.filter(isTelling).map((second): [string, string] => [first, second])
  })
}

function isSameField(option: string, other: string, sort: ListWords['sort']): boolean {
  return readSort(option, sort).field === readSort(other, sort).field
}
