/** Oracle: every filter, sort and page of a list returns what a model (words/list-model.ts)
 *  computes from all its records. Some of the records were updated, and one was deleted. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findItemSchema, type ListWords, readSort } from '../../words/lists.ts'
import { readField } from '../../words/read.ts'
import { requestSchema } from '../../words/records.ts'
import { listCrudKinds } from '../record-kinds.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { variant } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import {
  chooseFilterings,
  chooseTogether,
  describeFiltering,
  type Filtering,
} from './lists/list-filter-values.ts'
import { createSeeds } from './lists/list-seeds.ts'
import { ListUnderTest, MAX_PAGES, type PageOptions } from './lists/list-under-test.ts'

export async function* listContentChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  if (findItemSchema(run.contract, operation) === undefined) return
  const path = await run.records.sharedPath(operation)
  const { ids, deletedIds, earlier } = await createSeeds(run, operation, path)
  const list = new ListUnderTest(run, operation, path)
  await list.limitToNewest()
  const records = await list.readAll()
  yield { what: 'the new records', perform: () => list.assertListed(ids, true) }
  yield { what: 'a deleted record', perform: () => list.assertListed(deletedIds, false) }
  if (operation.path.includes('{'))
    yield {
      what: 'the records of another list',
      perform: async () => {
        const otherPath = await run.records.newPath(operation)
        const others = await createSeeds(run, operation, otherPath)
        await list.assertListed(others.ids, false)
      },
    }
  const tried = chooseFilterings(list, records, earlier)
  yield* pageChecks(list, records.length)
  yield* tried.flatMap((filtering) => filterChecks(list, filtering))
  yield* combinedChecks(list, records, tried)
  yield* sortChecks(list, records)
  if (list.words.page.after !== undefined && records.length > 1) yield* walkChecks(list, tried)
  if (records.length > 0)
    yield { what: 'an entry and the record', perform: () => list.assertSameAsRecords() }
  if (list.words.complete_until !== undefined)
    yield {
      what: 'a record that is created after the list was complete',
      perform: () =>
        list.assertCompleteUntil(() => createSeeds(run, operation, path, { count: 1 })),
    }
  yield* largeListChecks(run, operation)
}

function pageChecks(list: ListUnderTest, count: number): Check[] {
  const { maxSize } = list
  const sorts = list.sortOptions().slice(0, 1)
  const full = [
    list.pageCheck('one page that has all records', {}, { size: count }),
    list.pageCheck('the page after a full last page', {}, { number: 2, size: count }),
  ]
  const byDefault = list.pageCheck(
    'the page without parameters',
    {},
    { omitted: ['number', 'size'] },
  )
  const afterLast = { number: Math.ceil(count / maxSize) + 1 }
  return [
    ...(list.defaultSize() === undefined ? [] : [byDefault]),
    ...[1, 2, 3].map((number) => list.pageCheck(`page ${number}`, {}, { number, size: 2 })),
    ...[1, 2].map((number) =>
      list.pageCheck(`page ${number}, sorted`, { sorts }, { number, size: 2 }),
    ),
    ...(count > 0 && count <= maxSize ? full : []),
    list.pageCheck('a page after the last one', {}, afterLast),
    list.pageCheck('the order without sort', { sorts: [] }),
  ]
}

function filterChecks(list: ListUnderTest, filtering: Filtering): Check[] {
  const what = describeFiltering(filtering)
  const selection = { filterings: [filtering] }
  const checks = [list.pageCheck(what, selection)]
  if (filtering.values.some((value) => value.includes(' ')))
    checks.push(list.pageCheck(`${what}, with + for a space`, selection, { space: '+' }))
  return checks
}

/** All filters that match one record together, with a sort. Then again, each time with one filter
 *  that does not match the record. */
function combinedChecks(list: ListUnderTest, records: unknown[], tried: Filtering[]): Check[] {
  const sorts = list.sortOptions().slice(-1)
  const { matching = [], others = [] } = chooseTogether(records, tried) ?? {}
  if (matching.length < 2) return []
  return [
    list.pageCheck('all filters', { filterings: matching, sorts }),
    ...others.map((other) => {
      const rest = matching.filter(({ filter }) => filter !== other.filter)
      const what = `all filters, ${other.filter.parameter.name} with another value`
      return list.pageCheck(what, { filterings: [...rest, other], sorts })
    }),
  ]
}

function sortChecks(list: ListUnderTest, records: unknown[]): Check[] {
  const options = list.sortOptions()
  const pairs = listPairs(options, records, list.words.sort)
  return [...options.map((option) => [option]), ...pairs].map((sorts) =>
    list.pageCheck(`sort: ${sorts.join(',')}`, { sorts }),
  )
}

function walkChecks(list: ListUnderTest, tried: Filtering[]): Check[] {
  const options = list.sortOptions()
  const filterings = tried.slice(0, 1)
  const pair = options.filter((_, index) => index % 3 === 0).slice(0, 2)
  return [
    list.walkCheck('the order without sort', {}),
    ...options.map((option) => list.walkCheck(option, { sorts: [option] })),
    ...(pair.length > 1 ? [list.walkCheck(`a filter, ${pair}`, { filterings, sorts: pair })] : []),
    { what: 'cursors that are refused', perform: () => list.assertCursorsRefused() },
  ]
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

/** Pages of a list that has more records than the largest page. One list is enough for most faults of
 *  pages, and each of its records costs two requests. */
async function* largeListChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const cheapest = findCheapest(run)
  if (cheapest === undefined || cheapest.list !== operation) return
  const list = new ListUnderTest(run, operation)
  const { maxSize } = list
  const { length: count } = await list.readAll()
  if (count >= MAX_PAGES * maxSize) return
  const { create } = cheapest
  const schema = requestSchema(run.contract, create)
  for (let index = count; index <= maxSize; index += 1) {
    const body = variant(schema, index) as JsonObject
    const { status } = await run.send(create, newRequest(run, create, create.path, { body }))
    // For example because a text must be unique.
    if (status !== create.success.status) break
  }
  const { length: total } = await list.readAll()
  const sorts = list.sortOptions().slice(-1)
  const pages: PageOptions[] = [
    { size: Math.floor(maxSize / 2) + 1 },
    { number: 1 },
    { number: Math.ceil(total / maxSize) },
    { number: Math.ceil(total / maxSize) + 1 },
    { number: total, size: 1 },
    { number: total + 1, size: 1 },
    { number: 2, omitted: ['size'] },
    { omitted: ['number', 'size'] },
  ]
  const numbers = list.schemaOf(list.words.page.parameter) ?? {}
  for (const page of pages.filter(({ number = 1 }) => isValid(numbers, number)))
    if (!page.omitted || list.defaultSize() !== undefined)
      yield list.pageCheck(`a large list: ${JSON.stringify(page)}`, { sorts }, page)
}

/** The kind whose records need no other record, and the fewest fields. */
function findCheapest({ contract, records }: Run) {
  const candidates = listCrudKinds(contract).flatMap((kind) => {
    const { properties = {}, required = [] } = requestSchema(contract, kind.create)
    const { list } = kind
    const isAlone = required.every((name) => records.kindOf(name) === undefined)
    if (!list || !isAlone || !findItemSchema(contract, list)) return []
    return [{ create: kind.create, list, fields: Object.keys(properties).length }]
  })
  return candidates.toSorted((a, b) => a.fields - b.fields)[0]
}
