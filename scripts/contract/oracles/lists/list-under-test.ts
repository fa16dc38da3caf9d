/** Reads a list, and compares it with what a model expects. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../../model/json.ts'
import type { Operation } from '../../../model/operations.ts'
import { inlineReferences } from '../../../model/references.ts'
import { mergeSchemas, type Schema } from '../../../model/schema.ts'
import { applySort } from '../../../words/list-model.ts'
import {
  findItemSchema,
  type ListWords,
  listFilters,
  readListWords,
  readMaxPageSize,
  readSort,
} from '../../../words/lists.ts'
import { readField, readPointer } from '../../../words/read.ts'
import { readRecordWords, wordsOfRecord } from '../../../words/records.ts'
import {
  assertStatus,
  type CheckName,
  ContractBroken,
  failuresOf,
  show,
} from '../../contract-broken.ts'
import { findItemOperation } from '../../record-kinds.ts'
import type { ReceivedResponse, Request } from '../../request.ts'
import { type Check, MAX_TRIES, newRequest, RETRY_DELAY_MS, type Run } from '../../run.ts'
import { assertRules } from '../stored-values.ts'
import { type Filtering, toParameter } from './list-filter-values.ts'

const broken = failuresOf('list_contents')

/** `limitToNewest` limits a list with more records to its newest ones. */
const MAX_RECORDS = 150
export const MAX_PAGES = 20

/** Filters, and options of `sort`. Without `sorts`, and in a list that cannot be sorted, the records
 *  have the order of `readAll`. */
export interface Selection {
  filterings?: Filtering[]
  sorts?: string[]
}

export interface PageOptions {
  number?: number
  size?: number
  /** What a space becomes in the URL. */
  space?: '+'
  /** Parameters that the request leaves out, so that the service uses their defaults. */
  omitted?: ('number' | 'size')[]
}

interface Page {
  request: Request
  response: ReceivedResponse
  items: unknown[]
}

/** A list, with the query that limits it. */
export class ListUnderTest {
  readonly operation: Operation
  readonly words: ListWords
  /** The most records of a page. */
  readonly maxSize: number
  readonly #path: string
  readonly #run: Run
  #limitingQuery: JsonObject = {}
  /** What `readAll` returned last for the whole list. */
  #latest: unknown[] | undefined

  /** Throws if the contract does not describe its lists. */
  constructor(run: Run, operation: Operation, path = operation.path) {
    const words = readListWords(run.contract)
    if (words === undefined) throw new Error('the contract has no x-lists')
    this.#run = run
    this.operation = operation
    this.#path = path
    this.words = words
    this.maxSize = readMaxPageSize(run.contract, operation, words)
  }

  /** The schema of a query parameter. Undefined if the list does not have the parameter. */
  schemaOf(name: string): Schema | undefined {
    const parameter = this.operation.parameters.find((candidate) => candidate.name === name)
    return parameter && inlineReferences(this.#run.contract.sources, parameter.schema)
  }

  #request(query: JsonObject, space = '%20'): Request {
    const all = { ...this.#limitingQuery, ...query }
    const request = newRequest(this.#run, this.operation, this.#path, { query: all })
    return { ...request, path: request.path.replaceAll('%20', space) }
  }

  #read(query: JsonObject, space?: string): Promise<Page> {
    return this.#send(this.#request(query, space))
  }

  async #send(request: Request): Promise<Page> {
    const response = await this.#run.send(this.operation, request)
    const items = readPointer(response.json, this.words.items)
    if (response.status !== this.operation.success.status || !Array.isArray(items))
      throw broken(request, `the list returned ${response.status}`)
    return { request, response, items }
  }

  /** The records of the list, in the order without `sort`. After `limitToNewest`, only the newest
   *  records. Reads at most `MAX_PAGES` pages. */
  async readAll(query: JsonObject = {}): Promise<unknown[]> {
    const { page } = this.words
    const all: unknown[] = []
    for (let number = 1; number <= MAX_PAGES; number += 1) {
      const { response, items } = await this.#read({
        ...query,
        [page.size]: this.maxSize,
        [page.parameter]: number,
      })
      all.push(...items)
      if (items.length < this.maxSize || all.length >= this.#totalOf(response)) break
    }
    if (Object.keys(query).length === 0) this.#latest = all
    return all
  }

  /** Limits a list of more than `MAX_RECORDS` records to fewer than `maxSize`, the newest. Does
   *  nothing if the list has no total, no `after` filter, or no sort by the filter's field. */
  async limitToNewest(): Promise<void> {
    const { sort, page } = this.words
    const { response } = await this.#read({})
    if (!(this.#totalOf(response) > MAX_RECORDS)) return
    const filters = listFilters(this.operation).filter(({ match }) => match === 'after')
    const { created = filters[0]?.fields[0] ?? '' } = readRecordWords(
      this.#run.contract,
      this.operation,
    )
    const filter = filters.find(({ fields }) => fields[0] === created)
    // IDs may sort by creation, too.
    const newestFirst = [created, sort.ties.slice(1)]
      .map((field) => `${sort.descending}${field}`)
      .find((option) => this.sortOptions().includes(option))
    if (!filter || newestFirst === undefined) return
    const { items } = await this.#read({ [sort.parameter]: newestFirst, [page.size]: this.maxSize })
    this.#limitingQuery = { [filter.parameter.name]: readField(items.at(-1), created) }
  }

  /** NaN if the contract does not say where the list has its total. */
  #totalOf({ json }: ReceivedResponse): number {
    const { total } = this.words.meta
    return total === undefined ? Number.NaN : Number(readPointer(json, total))
  }

  sortOptions(): string[] {
    return (this.schemaOf(this.words.sort.parameter)?.items?.enum ?? []) as string[]
  }

  /** `what` says what is special about the page. */
  pageCheck(what: string, selection: Selection, options?: PageOptions): Check {
    return { what, perform: () => this.#assertPage(selection, options) }
  }

  /** `what` says what is special about the order. */
  walkCheck(what: string, selection: Selection): Check {
    return { what: `a walk: ${what}`, perform: () => this.#assertWalk(selection) }
  }

  /** Throws unless the list returns the records that a model selects from all records. Compares one
   *  page only, by default the first. */
  #assertPage(
    { filterings = [], sorts }: Selection,
    { number = 1, size, space, omitted = [] }: PageOptions = {},
  ): Promise<void> {
    const { page: names } = this.words
    const usualSize = omitted.includes('size') ? this.defaultSize() : undefined
    const page = { number, size: size ?? usualSize ?? this.maxSize }
    const query = {
      ...this.#toQuery({ filterings, sorts }),
      ...(!omitted.includes('size') && { [names.size]: page.size }),
      ...(!omitted.includes('number') && { [names.parameter]: page.number }),
    }
    return this.#compare(async (records) => {
      const { request, response, items } = await this.#read(query, space)
      const expected = this.#select(records, { filterings, sorts })
      const onPage = expected.slice((page.number - 1) * page.size, page.number * page.size)
      const problem =
        this.#findMetaProblem(response, { ...page, total: expected.length }) ??
        this.#findItemsProblem(items, onPage)
      if (problem === undefined) this.#noteTested({ filterings, sorts }, query)
      return { request, problem }
    })
  }

  /** Throws unless a walk from `Link` to `Link`, over about three pages, returns the records that a
   *  model selects from all records. */
  #assertWalk(selection: Selection): Promise<void> {
    const { size: sizeName } = this.words.page
    return this.#compare(async (records) => {
      const expected = this.#select(records, selection)
      const size = Math.max(1, Math.min(this.maxSize, Math.ceil(expected.length / 3)))
      const walked: unknown[] = []
      let request = this.#request({ ...this.#toQuery(selection), [sizeName]: size })
      for (let number = 1; ; number += 1) {
        const { response, items } = await this.#send(request)
        walked.push(...items)
        const meta = { number, size, total: expected.length }
        const problem = this.#findMetaProblem(response, meta)
        if (problem !== undefined) return { request, problem }
        const link = /<(.*)>/.exec(response.headers.get('link') ?? '')?.[1]
        if (link === undefined) break
        request = { ...request, path: link }
      }
      this.#run.tested(this.operation.id, 'header link', 'Link')
      return { request, problem: this.#findItemsProblem(walked, expected) }
    })
  }

  /** Throws unless the list refuses the cursor of another sort, a cursor beside the number of a page,
   *  and other text. */
  async assertCursorsRefused(): Promise<void> {
    const { page, sort, meta } = this.words
    const { json } = (await this.#read({ [page.size]: 1 })).response
    const cursor = readPointer(json, meta.next_cursor ?? '')
    const after = page.after ?? ''
    const queries: JsonObject[] = [{ [after]: 'x' }, { [after]: cursor, [page.parameter]: 1 }]
    for (const option of this.sortOptions().slice(-1))
      queries.push({ [after]: cursor, [sort.parameter]: option })
    for (const query of queries) {
      const request = this.#request(query)
      const { status } = await this.#run.send(this.operation, request)
      assertStatus(request, status, {
        check: 'negative_data_rejection',
        expected: 422,
        what: `${Object.keys(query).join(' and ')} of another page`,
      })
    }
  }

  #toQuery({ filterings = [], sorts = [] }: Selection): JsonObject {
    return {
      ...Object.fromEntries(filterings.map(toParameter)),
      ...(sorts.length > 0 && { [this.words.sort.parameter]: sorts }),
    }
  }

  #select(records: unknown[], { filterings = [], sorts }: Selection): unknown[] {
    const found = filterings.reduce((left, { apply }) => apply(left), records)
    const isSorted = sorts !== undefined && this.sortOptions().length > 0
    return isSorted ? applySort(found, this.words.sort, sorts) : found
  }

  /** Throws if `find` finds a problem. Tries again if the list has changed between the requests. */
  async #compare(
    find: (records: unknown[]) => Promise<{ request: Request; problem: string | undefined }>,
  ): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const records = this.#latest ?? (await this.readAll())
      const { request, problem } = await find(records)
      if (problem === undefined) return
      if (tries === MAX_TRIES || isDeepStrictEqual(records, await this.readAll()))
        throw broken(request, problem)
      await delay(RETRY_DELAY_MS)
    }
  }

  /** Counts the promises that `assertPage` tests. Several filters together do not test each. */
  #noteTested({ filterings = [], sorts = [] }: Selection, query: JsonObject): void {
    const { id } = this.operation
    const { parameter, size } = this.words.page
    for (const name of [parameter, size])
      if (!(name in query)) this.#run.tested(id, 'parameter default', name)
    for (const part of ['items', 'meta', 'page', ...(sorts.length > 0 ? ['sort'] : [])])
      this.#run.tested('openapi.yaml', `x-lists.${part}`)
    for (const option of sorts) this.#run.tested(id, 'sort', option)
    const [first] = filterings
    if (!first || filterings.length > 1) return
    const { parameter: filter, without } = first.filter
    this.#run.tested(id, 'x-filter', filter.name)
    if (first.values[0] === without) this.#run.tested(id, 'parameter nullable', filter.name)
  }

  /** The size of a page without the parameter. Undefined if the contract has no default. */
  defaultSize(): number | undefined {
    const size = this.schemaOf(this.words.page.size)?.default
    return size === undefined ? undefined : Number(size)
  }

  #findMetaProblem(
    { json, headers }: ReceivedResponse,
    { number, size, total }: { number: number; size: number; total: number },
  ): string | undefined {
    const { meta, sort } = this.words
    const fields = new Set(this.sortOptions().map((option) => readSort(option, sort).field))
    const last_page = Math.max(1, Math.ceil(total / size))
    const cursor = readPointer(json, meta.next_cursor ?? '')
    const hasNext = number * size < total
    const next_cursor = hasNext ? (typeof cursor === 'string' ? cursor : 'a cursor') : null
    const values = { page: number, size, total, last_page, sorts: [...fields], next_cursor }
    const expected: JsonObject = values
    if (meta.next_cursor !== undefined && headers.has('link') !== hasNext)
      return `the header Link is ${headers.get('link')}`
    for (const [name, pointer] of Object.entries(meta)) {
      const actual = readPointer(json, pointer)
      if (!isDeepStrictEqual(actual, expected[name]))
        return `${pointer} is ${show(actual)} instead of ${show(expected[name])}`
    }
    return undefined
  }

  #findItemsProblem(items: unknown[], expected: unknown[]): string | undefined {
    if (isDeepStrictEqual(items, expected)) return undefined
    const { ties } = this.words.sort
    const idsOf = (records: unknown[]) =>
      records.map((record) => readPointer(record, ties)).join(', ')
    if (idsOf(items) === idsOf(expected))
      return 'the records have other values than without filter and sort'
    return `the page has ${items.length} records: ${idsOf(items)}; expected are ${expected.length}: ${idsOf(expected)}`
  }

  /** Throws unless the list has all of these records, or none of them. */
  async assertListed(ids: string[], isListed: boolean): Promise<void> {
    const all = (await this.readAll()).map((record) => readPointer(record, this.words.sort.ties))
    const wrong = ids.find((id) => all.includes(id) !== isListed)
    if (wrong !== undefined) throw this.broken(`the list ${isListed ? 'lacks' : 'has'} ${wrong}`)
  }

  broken(message: string, check: CheckName = 'list_contents'): ContractBroken {
    return new ContractBroken(check, this.#request({}), message)
  }

  /** Calls `create`, and throws unless the time of the new record is at or after the time until which
   *  the list was complete before. */
  async assertCompleteUntil(create: () => Promise<{ ids: string[] }>): Promise<void> {
    const { created } = wordsOfRecord(findItemSchema(this.#run.contract, this.operation))
    const { json } = (await this.#read({})).response
    const until = Date.parse(String(readPointer(json, this.words.complete_until ?? '')))
    const { ids } = await create()
    const records = (await this.readAll()) as JsonObject[]
    const record = records.find(({ id }) => ids.includes(String(id)))
    if (created === undefined || record === undefined || Number.isNaN(until)) return
    const time = String(record[created])
    if (Date.parse(time) < until || until > Date.now())
      throw this.broken(`a record of ${time} came after ${new Date(until).toISOString()}`)
    this.#run.tested('openapi.yaml', 'x-lists.complete_until')
  }

  /** Throws unless each of the last three entries of the list has the values that a GET of the
   *  record returns, and no field that only other operations return. Skips records that no longer
   *  exist, and the values of records that the service itself changes. */
  async assertSameAsRecords(): Promise<void> {
    const get = findItemOperation(this.#run.contract, 'get', this.operation.path)
    if (get === undefined) return
    const { finished_when } = readRecordWords(this.#run.contract, get)
    const schema = findItemSchema(this.#run.contract, this.operation) ?? {}
    const { properties = {} } = (schema.oneOf ?? [schema]).reduce(mergeSchemas, {})
    for (const entry of (await this.readAll()).slice(-3) as JsonObject[]) {
      const path = `${this.#path}/${readPointer(entry, this.words.sort.ties)}`
      const probe = newRequest(this.#run, get, path)
      const { json, status } = await this.#run.send(get, probe)
      if (status === 404) continue
      assertRules(this.#run, get, probe, entry)
      for (const [field, { 'x-returned-by': senders }] of Object.entries(properties)) {
        if (!Array.isArray(senders) || senders.includes(this.operation.id)) continue
        if (field in entry)
          throw this.broken(`the list has ${field}, which only ${senders} returns`)
        this.#run.tested(get.id, 'x-returned-by', field)
      }
      if (finished_when) continue
      const record = (json ?? {}) as JsonObject
      const name = Object.keys(entry).find((one) => !isDeepStrictEqual(record[one], entry[one]))
      if (name === undefined) continue
      const values = `${show(record[name])}, but ${show(entry[name])} in the list`
      throw broken(probe, `${name} is ${values}`)
    }
  }
}
