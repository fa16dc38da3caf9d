/** Checks of the pages of one list that has more records than the largest page. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { applySort } from '../../words/list-model.ts'
import { findItemSchema, type ListWords } from '../../words/lists.ts'
import { requestSchema } from '../../words/records.ts'
import { listCrudKinds } from '../record-kinds.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { variant } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { ListUnderTest, MAX_PAGES } from './list-under-test.ts'

interface TestedList {
  operation: Operation
  path: string
  words: ListWords
}

/** One list is enough for most faults of pages, and each of its records costs two requests. */
export async function* largeListChecks(run: Run, tested: TestedList): AsyncGenerator<Check> {
  const { operation, words } = tested
  const cheapest = findCheapest(run)
  if (cheapest === undefined || cheapest.list !== operation) return
  const list = new ListUnderTest(run, tested)
  const { maxSize } = list
  const { length: count } = await list.readAll()
  if (count >= MAX_PAGES * maxSize) return
  await createRecords(run, cheapest.create, maxSize + 1 - count)
  const { length: total } = await list.readAll()
  const [sort] = list.sortOptions().slice(-1)
  const query = sort === undefined ? {} : { [words.sort.parameter]: [sort] }
  const model = (records: unknown[]) =>
    sort === undefined ? records : applySort(records, words.sort, [sort])
  const pages = [
    { number: 1, size: Math.floor(maxSize / 2) + 1 },
    { number: 1 },
    { number: Math.ceil(total / maxSize) },
    { number: Math.ceil(total / maxSize) + 1 },
    { number: total, size: 1 },
    { number: total + 1, size: 1 },
  ]
  const numbers = list.schemaOf(words.page.parameter) ?? {}
  for (const page of pages.filter(({ number }) => isValid(numbers, number)))
    yield {
      what: `page ${page.number} of ${page.size ?? maxSize} records each`,
      perform: () => list.assertPage(query, model, page),
    }
  if (list.defaultSize() === undefined) return
  yield {
    what: 'a page without parameters',
    perform: () => list.assertPage({}, (all) => all, { omitted: ['number', 'size'] }),
  }
  yield {
    what: 'the second page of the default size',
    perform: () => list.assertPage(query, model, { number: 2, omitted: ['size'] }),
  }
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

/** Ends when the service refuses a record, for example because a text must be unique. */
async function createRecords(run: Run, create: Operation, count: number): Promise<void> {
  const schema = requestSchema(run.contract, create)
  for (let index = 0; index < count; index += 1) {
    const body = variant(schema, index) as JsonObject
    const { status } = await run.send(create, newRequest(run, create, create.path, { body }))
    if (status !== create.success.status) return
  }
}
