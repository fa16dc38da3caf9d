/** Oracle: every filter, sort and page of a list returns what a model (words/list-model.ts) computes
 *  from all its records. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Operation } from '../../model/operations.ts'
import { inlineReferences } from '../../model/references.ts'
import type { Schema } from '../../model/schema.ts'
import { applyFilter, applySort } from '../../words/list-model.ts'
import {
  type FilterParameter,
  findItemSchema,
  type ListWords,
  listFilters,
  readListWords,
  readMaxPageSize,
} from '../../words/lists.ts'
import { readField, readPointer } from '../../words/read.ts'
import { readRecordWords } from '../../words/records.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { findItemOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, MAX_TRIES, newRequest, RETRY_DELAY_MS, type Run } from '../run.ts'
import { chooseFilterValues } from './list-filter-values.ts'
import { createSeeds } from './list-seeds.ts'
import { assertRules } from './stored-values.ts'

type Query = Record<string, unknown>

/** A longer list is narrowed to its newest records. */
const MAX_RECORDS = 150
const MAX_PAGES = 20

export async function* listContentChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const words = readListWords(run.contract)
  if (words === undefined || findItemSchema(run.contract, operation) === undefined) return
  const path = await run.records.sharedPath(operation)
  const ids = await createSeeds(run, operation, path)
  const list = new TestedList(run, { operation, path, words })
  await list.narrow()
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

/** A list, with the query that narrows it. */
class TestedList {
  readonly operation: Operation
  readonly words: ListWords
  /** The most records of a page. */
  readonly maxSize: number
  readonly #path: string
  readonly #run: Run
  #base: Query = {}

  constructor(
    run: Run,
    { operation, path, words }: { operation: Operation; path: string; words: ListWords },
  ) {
    this.#run = run
    this.operation = operation
    this.#path = path
    this.words = words
    this.maxSize = readMaxPageSize(run.contract, operation, words)
  }

  /** The schema of a query parameter. Undefined if the list does not have it. */
  schemaOf(name: string): Schema | undefined {
    const parameter = this.operation.parameters.find((candidate) => candidate.name === name)
    return parameter && inlineReferences(this.#run.contract.sources, parameter.schema)
  }

  #request(query: Query): Request {
    const all = { ...this.#base, ...query }
    return newRequest(this.#run, this.operation, this.#path, { query: all })
  }

  async #read(
    query: Query,
  ): Promise<{ request: Request; response: ReceivedResponse; items: unknown[] }> {
    const request = this.#request(query)
    const response = await this.#run.send(this.operation, request)
    const items = readPointer(response.json, this.words.items)
    if (response.status !== this.operation.success.status || !Array.isArray(items))
      throw new ContractBroken('list_contents', request, `the list returned ${response.status}`)
    return { request, response, items }
  }

  /** All records, in the order without `sort`. */
  async readAll(): Promise<unknown[]> {
    const { page } = this.words
    const all: unknown[] = []
    for (let number = 1; number <= MAX_PAGES; number += 1) {
      const { response, items } = await this.#read({
        [page.size]: this.maxSize,
        [page.parameter]: number,
      })
      all.push(...items)
      if (items.length < this.maxSize || all.length >= this.#totalOf(response)) break
    }
    return all
  }

  /** Limits a long list to records after a time, if it has such a filter. */
  async narrow(): Promise<void> {
    const { sort, page } = this.words
    const { response } = await this.#read({})
    if (!(this.#totalOf(response) > MAX_RECORDS)) return
    const filter = listFilters(this.operation).find(({ match }) => match === 'after')
    const [field = ''] = filter?.fields ?? []
    const newestFirst = `${sort.descending}${field}`
    if (!filter || !this.sortOptions().includes(newestFirst)) return
    const { items } = await this.#read({ [sort.parameter]: newestFirst, [page.size]: this.maxSize })
    this.#base = { [filter.parameter.name]: readField(items.at(-1), field) }
  }

  /** NaN if the contract does not say where the list has its total. */
  #totalOf({ json }: ReceivedResponse): number {
    const { total } = this.words.meta
    return total === undefined ? Number.NaN : Number(readPointer(json, total))
  }

  sortOptions(): string[] {
    return (this.schemaOf(this.words.sort.parameter)?.items?.enum ?? []) as string[]
  }

  /** Throws unless the page has the records that the model computes. Tries again if the list itself
   *  changes in between. */
  async assertPage(
    query: Query,
    model: (records: unknown[]) => unknown[],
    page?: { number: number; size: number },
  ): Promise<void> {
    const { number, size } = page ?? { number: 1, size: this.maxSize }
    const { page: names } = this.words
    for (let tries = 1; ; tries += 1) {
      const records = await this.readAll()
      const { request, response, items } = await this.#read({
        ...query,
        [names.size]: size,
        [names.parameter]: number,
      })
      const expected = model(records)
      const problem =
        this.#findMetaProblem(response, { number, size, total: expected.length }) ??
        this.#findOrderProblem(items, expected.slice((number - 1) * size, number * size))
      if (problem === undefined) return
      if (tries === MAX_TRIES || isDeepStrictEqual(records, await this.readAll()))
        throw new ContractBroken('list_contents', request, problem)
      await delay(RETRY_DELAY_MS)
    }
  }

  #findMetaProblem(
    { json }: ReceivedResponse,
    { number, size, total }: { number: number; size: number; total: number },
  ): string | undefined {
    const { meta, sort } = this.words
    const fields = new Set(
      this.sortOptions().map((option) =>
        option.startsWith(sort.descending) ? option.slice(sort.descending.length) : option,
      ),
    )
    const expected: [string | undefined, unknown][] = [
      [meta.page, number],
      [meta.size, size],
      [meta.total, total],
      [meta.last_page, Math.max(1, Math.ceil(total / size))],
      [meta.sorts, [...fields]],
    ]
    for (const [pointer, value] of expected) {
      const actual = pointer === undefined ? value : readPointer(json, pointer)
      if (!isDeepStrictEqual(actual, value))
        return `${pointer} is ${show(actual)} instead of ${show(value)}`
    }
    return undefined
  }

  #findOrderProblem(items: unknown[], expected: unknown[]): string | undefined {
    if (isDeepStrictEqual(items, expected)) return undefined
    const { ties } = this.words.sort
    const idsOf = (records: unknown[]) =>
      records.map((record) => readPointer(record, ties)).join(', ')
    if (idsOf(items) === idsOf(expected))
      return 'the records have other values than without filter and sort'
    return `the page has ${items.length} records: ${idsOf(items)}; expected are ${expected.length}: ${idsOf(expected)}`
  }

  async #readIds(): Promise<unknown[]> {
    return (await this.readAll()).map((record) => readPointer(record, this.words.sort.ties))
  }

  async assertHas(ids: string[]): Promise<void> {
    const listed = await this.#readIds()
    const missing = ids.find((id) => !listed.includes(id))
    if (missing !== undefined) throw this.#broken(`the new record ${missing} is not in the list`)
  }

  async assertLacks(ids: string[]): Promise<void> {
    const listed = await this.#readIds()
    const wrong = ids.find((id) => listed.includes(id))
    if (wrong !== undefined) throw this.#broken(`the list has ${wrong}, a record of another list`)
  }

  #broken(message: string): ContractBroken {
    return new ContractBroken('list_contents', this.#request({}), message)
  }

  /** Each field of an entry is that of the record. */
  async assertSameAsRecords(): Promise<void> {
    const get = findItemOperation(this.#run.contract, 'get', this.operation.path)
    if (get === undefined) return
    const words = readRecordWords(this.#run.contract, get)
    for (const entry of (await this.readAll()).slice(-3) as Record<string, unknown>[]) {
      const path = `${this.#path}/${readPointer(entry, this.words.sort.ties)}`
      const probe = newRequest(this.#run, get, path)
      const { json, status } = await this.#run.send(get, probe)
      if (status === 404 || words.finished_when) continue
      assertRules(words, probe, entry)
      const record = json as typeof entry | undefined
      const name = Object.keys(entry).find(
        (field) => !isDeepStrictEqual(record?.[field], entry[field]),
      )
      if (name !== undefined)
        throw new ContractBroken(
          'list_contents',
          probe,
          `${name} is ${show(record?.[name])}, but ${show(entry[name])} in the list`,
        )
    }
  }
}

function* pageChecks(list: TestedList): Generator<Check> {
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

function* filterChecks(list: TestedList, records: unknown[]): Generator<Check> {
  const filters = listFilters(list.operation)
  const tried: { filter: FilterParameter; values: string[] }[] = []
  for (const filter of filters) {
    const schema = list.schemaOf(filter.parameter.name) ?? {}
    for (const values of chooseFilterValues(filter, schema, records)) {
      tried.push({ filter, values })
      yield {
        what: `${filter.parameter.name}: ${values.join(',')}`,
        perform: () =>
          list.assertPage(toQuery(filter, values), (all) => applyFilter(all, filter, values)),
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

function toQuery({ parameter }: FilterParameter, values: string[]): Query {
  return { [parameter.name]: parameter.schema.value.type === 'array' ? values : values[0] }
}

function* sortChecks(list: TestedList): Generator<Check> {
  const { sort } = list.words
  const options = list.sortOptions()
  const tried = options.map((option) => [option])
  const [first] = options
  const other = options.findLast((option) => !option.endsWith(first ?? ''))
  if (first && other) tried.push([other, first], [first, other])
  for (const fields of tried)
    yield {
      what: `${sort.parameter}: ${fields.join(',')}`,
      perform: () =>
        list.assertPage({ [sort.parameter]: fields }, (records) =>
          applySort(records, sort, fields),
        ),
    }
}
