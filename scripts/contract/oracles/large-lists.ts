/** Checks of the pages of one list that has more records than the largest page. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findItemSchema, type ListWords } from '../../words/lists.ts'
import { requestSchema } from '../../words/records.ts'
import { listCrudKinds } from '../record-kinds.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { variant } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { ListUnderTest, MAX_PAGES, type PageOptions, toCheck } from './list-under-test.ts'

/** One list is enough for most faults of pages, and each of its records costs two requests. */
export async function* largeListChecks(
  run: Run,
  tested: { operation: Operation; path: string; words: ListWords },
): AsyncGenerator<Check> {
  const { operation, words } = tested
  const cheapest = findCheapest(run)
  if (cheapest === undefined || cheapest.list !== operation) return
  const list = new ListUnderTest(run, tested)
  const { maxSize } = list
  const { length: count } = await list.readAll()
  if (count >= MAX_PAGES * maxSize) return
  await createRecords(run, cheapest.create, maxSize + 1 - count)
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
  const numbers = list.schemaOf(words.page.parameter) ?? {}
  for (const page of pages.filter(({ number = 1 }) => isValid(numbers, number)))
    if (!page.omitted || list.defaultSize() !== undefined)
      yield toCheck(list, [`a large list: ${JSON.stringify(page)}`, { sorts }, page])
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
