/** Oracle: every filter, sort and page of a list returns what a model (words/list-model.ts)
 *  computes from all its records. */
import type { Operation } from '../../model/operations.ts'
import { applyFilter, applySort } from '../../words/list-model.ts'
import {
  type FilterParameter,
  findItemSchema,
  listFilters,
  readListWords,
  readSort,
} from '../../words/lists.ts'
import type { Check, Run } from '../run.ts'
import { chooseFilterValues } from './list-filter-values.ts'
import { createSeeds } from './list-seeds.ts'
import { ListUnderTest } from './list-under-test.ts'

export async function* listContentChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const words = readListWords(run.contract)
  if (words === undefined || findItemSchema(run.contract, operation) === undefined) return
  const path = await run.records.sharedPath(operation)
  const ids = await createSeeds(run, operation, path)
  const list = new ListUnderTest(run, { operation, path, words })
  await list.limitToNewest()
  const records = await list.readAll()
  yield { what: 'the new records', perform: () => list.assertHas(ids) }
  if (operation.path.includes('{'))
    yield {
      what: 'the records of another list',
      perform: async () => {
        const otherPath = await run.records.newPath(operation)
        await list.assertLacks(await createSeeds(run, operation, otherPath))
      },
    }
  yield* pageChecks(list)
  yield* filterChecks(list, records)
  yield* sortChecks(list)
  if (records.length > 0)
    yield { what: 'an entry and the record', perform: () => list.assertSameAsRecords() }
}

function* pageChecks(list: ListUnderTest): Generator<Check> {
  const { words } = list
  const size = 2
  const [sort] = list.sortOptions()
  for (const number of [1, 2, 3])
    yield {
      what: `page ${number}`,
      perform: () => list.assertPage({}, (records) => records, { number, size }),
    }
  if (sort !== undefined)
    for (const number of [1, 2])
      yield {
        what: `page ${number}, sorted`,
        perform: () =>
          list.assertPage(
            { [words.sort.parameter]: sort },
            (records) => applySort(records, words.sort, [sort]),
            { number, size },
          ),
      }
  yield {
    what: 'a page after the last one',
    perform: () => list.assertPage({}, (records) => records, { number: 1000, size: list.maxSize }),
  }
  yield {
    what: 'the order without sort',
    perform: () =>
      list.assertPage({}, (records) =>
        sort === undefined ? records : applySort(records, words.sort, []),
      ),
  }
}

function* filterChecks(list: ListUnderTest, records: unknown[]): Generator<Check> {
  const filters = listFilters(list.operation)
  const tried: { filter: FilterParameter; values: string[] }[] = []
  for (const filter of filters) {
    const schema = list.schemaOf(filter.parameter.name) ?? {}
    for (const values of chooseFilterValues(filter, schema, records)) {
      tried.push({ filter, values })
      const [what, query] = [
        `${filter.parameter.name}: ${values.join(',')}`,
        toQuery(filter, values),
      ]
      const model = (all: unknown[]) => applyFilter(all, filter, values)
      yield { what, perform: () => list.assertPage(query, model) }
      if (values.some((value) => value.includes(' ')))
        yield {
          what: `${what}, with + for a space`,
          perform: () => list.assertPage(query, model, { space: '+' }),
        }
    }
  }
  const [first] = tried
  const second = tried.find(({ filter }) => filter !== first?.filter)
  if (first && second)
    yield {
      what: `${first.filter.parameter.name} and ${second.filter.parameter.name}`,
      perform: () =>
        list.assertPage(
          { ...toQuery(first.filter, first.values), ...toQuery(second.filter, second.values) },
          (all) =>
            applyFilter(applyFilter(all, first.filter, first.values), second.filter, second.values),
        ),
    }
}

function toQuery({ parameter }: FilterParameter, values: string[]): Record<string, unknown> {
  return { [parameter.name]: parameter.schema.value.type === 'array' ? values : values[0] }
}

function* sortChecks(list: ListUnderTest): Generator<Check> {
  const { sort } = list.words
  const options = list.sortOptions()
  const combinations = options.map((option) => [option])
  const [first] = options
  const fieldOf = (option: string): string => readSort(option, sort).field
  const other = options.findLast((option) => fieldOf(option) !== fieldOf(first ?? ''))
  if (first && other) combinations.push([other, first], [first, other])
  for (const sorts of combinations)
    yield {
      what: `${sort.parameter}: ${sorts.join(',')}`,
      perform: () =>
        list.assertPage({ [sort.parameter]: sorts }, (records) => applySort(records, sort, sorts)),
    }
}
