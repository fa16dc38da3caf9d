/** The records of a mock with state. The contract says which operations create, list, change and
 *  delete them. */
import { posix } from 'node:path'
import { StatusError } from '../../errors.ts'
import { type OperationId, type OperationRow, operations } from '../../generated/operations.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { readDefault } from '../model/schema.ts'
import { isObject } from '../model/source.ts'
import { applyFilter, applySort, recordOrder } from '../words/list-model.ts'
import { type Filter, listFilters, readIncluded, readListWords, readSort } from '../words/lists.ts'
import { readField, readPointer } from '../words/read.ts'
import { asShownLater, type Counted } from '../words/records.ts'
import {
  type Json,
  newFinishedRecord,
  newRecord,
  type RecordRules,
  readRules,
  updatedRecord,
} from './values.ts'

export interface RecordCall {
  operation: Operation
  /** The values of the path parameters. */
  path: Json
  query: Json
  sent: Json
  /** Whether `sent` is a JSON Merge Patch (RFC 7396): null removes a property inside a field, never
   *  the field. */
  isMergePatch: boolean
}

/** A created, updated or deleted record. */
export interface Change {
  /** Undefined: the record is new. */
  before: Json | undefined
  /** Undefined: the record was deleted. */
  after: Json | undefined
}

interface Outcome {
  /** Undefined: the response has the body of the example. */
  body: unknown
  change?: Change
}

interface Kind extends RecordRules {
  get: Operation
}

/** The cursors of the service. */
export interface Cursors {
  /** `after` has the values of the sorts, and the ID, of the last record of the page before. Throws
   *  the errors of the service for a cursor of another list. */
  readPageStart(
    operation: OperationRow,
    query: Json,
  ): { number: number; after: { values: unknown[]; id: string } | undefined }
  writeCursor(
    operation: OperationRow,
    query: Json,
    position: { page: number; values: unknown[]; id: string },
  ): string
}

export class MockRecords {
  readonly #contract: Contract
  readonly #cursors: Cursors
  /** By the path template of a collection. */
  readonly #collections = new Map<string, Kind>()
  /** By the path template of a record. */
  readonly #items = new Map<string, Kind>()
  /** By path, in the order of their creation. */
  readonly #records = new Map<string, Json>()

  constructor(contract: Contract, cursors: Cursors) {
    this.#contract = contract
    this.#cursors = cursors
    const creations = new Map(
      contract.operations.filter(({ method }) => method === 'post').map((one) => [one.path, one]),
    )
    for (const one of contract.operations) {
      const [, collection = ''] = /^(.*)\/\{[^/}]+\}$/.exec(one.path) ?? []
      const create = creations.get(collection)
      if (one.method !== 'get' || !create) continue
      const kind = { get: one, ...readRules(contract, { create, get: one }) }
      this.#collections.set(collection, kind)
      this.#items.set(one.path, kind)
    }
  }

  /** Throws `StatusError` 404 if a record in the path does not exist. */
  assertFound(operation: Operation, path: Json): void {
    const steps = operation.path.split('/')
    const templates = steps.map((_, index) => steps.slice(0, index + 1).join('/'))
    for (const template of templates)
      if (this.#items.has(template) && !this.#records.has(fillTemplate(template, path)))
        throw new StatusError(404, 'There is no such record.')
  }

  /** The record of the path, with the embedded ones for which the query asks. */
  find(call: RecordCall): Json | undefined {
    const { operation, path } = call
    const record = this.#records.get(fillTemplate(operation.path, path))
    return record && this.#embed(record, this.#items.get(operation.path), call)
  }

  /** The IDs of the records of a collection by the value of a field. */
  idsBy(collection: string, field: string): Map<string, string> {
    const own = [...this.#records].filter(([key]) => posix.dirname(key) === collection)
    return new Map(own.map(([, record]) => [String(record[field]), String(record.id)]))
  }

  /** Runs `work`, and undoes its changes when it throws. */
  undoOnError<T>(work: () => T): T {
    const before = new Map(this.#records)
    try {
      return work()
    } catch (error) {
      this.#records.clear()
      for (const [key, record] of before) this.#records.set(key, record)
      throw error
    }
  }

  /** Undefined if the path names neither a list of records nor a stored record, or if the mock does
   *  not know the method. */
  perform(call: RecordCall): Outcome | undefined {
    const { operation, path } = call
    const collection = this.#collections.get(operation.path)
    if (collection && operation.method === 'post') return this.#create(collection, call)
    if (collection && operation.method === 'get') return this.#list(collection, call)
    const kind = this.#items.get(operation.path)
    const key = fillTemplate(operation.path, path)
    const before = this.#records.get(key)
    if (kind === undefined || before === undefined) return undefined
    if (operation.method === 'get') return { body: this.#embed(before, kind, call) }
    if (operation.method === 'delete') {
      this.#records.delete(key)
      return { body: undefined, change: { before, after: undefined } }
    }
    if (operation.method !== 'patch') return undefined
    const after = updatedRecord(kind, before, call)
    this.#records.set(key, after)
    return { body: bodyOf(operation, after), change: { before, after } }
  }

  #create(kind: Kind, { operation, path, sent }: RecordCall): Outcome {
    const [ofCreate, ofGet] = [exampleOf(operation), exampleOf(kind.get) as Json]
    const record = newRecord(kind, isRecord(ofCreate) ? ofCreate : ofGet, sent)
    const { id } = record
    const key = `${fillTemplate(operation.path, path)}/${id}`
    // The service finishes a record with `finished_when` in the background, for example an export.
    // The mock responds with the unfinished record, and stores the finished one at once.
    const stored = kind.words.finished_when
      ? newFinishedRecord(kind, ofGet, { ...sent, id })
      : record
    this.#records.set(key, asShownLater(this.#contract, operation, stored))
    const change = { before: undefined, after: record }
    return { body: bodyOf(operation, record), change }
  }

  #list(kind: Kind, call: RecordCall): Outcome {
    const { operation, path, query } = call
    const collection = fillTemplate(operation.path, path)
    let records: unknown[] = [...this.#records]
      .filter(([key]) => posix.dirname(key) === collection)
      .map(([, record]) => record)
    const words = readListWords(this.#contract)
    const body = structuredClone(exampleOf(operation))
    if (!words) return { body }
    for (const filter of listFilters(operation))
      records = filterBy(records, filter, query[filter.parameter.name])
    const readParameter = (name: string): unknown => query[name] ?? this.#defaultOf(operation, name)
    const sorts = (readParameter(words.sort.parameter) ?? []) as string[]
    const sorted = applySort(records, words.sort, sorts)
    const size = Number(readParameter(words.page.size))
    const row = operations[operation.id as OperationId]
    const fields = sorts.map((option) => readSort(option, words.sort).field)
    const { number, after } = this.#cursors.readPageStart(row, query)
    const isAfter = (record: unknown): boolean => {
      const values = fields.map((field, index) => [field, after?.values[index]])
      const last = { ...Object.fromEntries(values), id: after?.id }
      return recordOrder(words.sort, sorts)(record, last) > 0
    }
    const rest = after ? sorted.filter(isAfter) : sorted.slice((number - 1) * size)
    const data = rest.slice(0, size) as Json[]
    const last = rest.length > size ? data.at(-1) : undefined
    const position = last && {
      page: number,
      values: fields.map((field) => readField(last, field)),
      id: String(last.id),
    }
    const total = sorted.length
    writeAt(
      body,
      words.items,
      data.map((record) => this.#embed(record, kind, call)),
    )
    writeAt(body, words.meta.page, number)
    writeAt(body, words.meta.size, size)
    writeAt(body, words.meta.total, total)
    writeAt(body, words.meta.last_page, Math.max(1, Math.ceil(total / size)))
    const cursor = position ? this.#cursors.writeCursor(row, query, position) : null
    writeAt(body, words.meta.next_cursor, cursor)
    return { body }
  }

  #embed(record: Json, kind: Kind | undefined, { query }: RecordCall): Json {
    const { include = {} } = kind?.words ?? {}
    const embedded = readIncluded(this.#contract, query).flatMap((name): [string, unknown][] => {
      const source = include[name] ?? {}
      if (typeof source !== 'string') {
        const { properties = {} } = kind?.record.properties?.[name] ?? {}
        const counts = Object.entries(source).map(([key, counted]) => {
          const values = Object.keys(properties[key]?.properties ?? {})
          return [key, this.#countBy(values, counted, record)]
        })
        return [[name, Object.fromEntries(counts)]]
      }
      const found = [...this.#records.values()].find(({ id }) => id === record[source])
      return found === undefined ? [] : [[name, found]]
    })
    return { ...record, ...Object.fromEntries(embedded) }
  }

  #countBy(values: string[], { list, reference, by }: Counted, { id }: Json): Json {
    const collection = this.#contract.operations.find((one) => one.id === list)?.path
    const referring = [...this.#records]
      .filter(([key, record]) => posix.dirname(key) === collection && record[reference] === id)
      .map(([, record]) => record[by])
    return Object.fromEntries(
      values.map((value) => [value, referring.filter((other) => other === value).length]),
    )
  }

  #defaultOf({ parameters }: Operation, name: string): unknown {
    const schema = parameters.find((parameter) => parameter.name === name)?.schema
    return schema && readDefault(inlineReferences(this.#contract.sources, schema))
  }
}

function exampleOf({ success }: Operation): unknown {
  return success.content['application/json']?.example
}

/** The record. Undefined if the operation returns something else: then the body is an example. */
function bodyOf(operation: Operation, record: Json): unknown {
  return isRecord(exampleOf(operation)) ? record : undefined
}

function isRecord(example: unknown): example is Json {
  return isObject(example) && 'id' in example
}

function fillTemplate(template: string, values: Json): string {
  return template.replace(/\{(.*?)\}/g, (_, name) => String(values[name] ?? ''))
}

function filterBy(records: unknown[], filter: Filter, value: unknown): unknown[] {
  return value === undefined ? records : applyFilter(records, filter, [value].flat().map(String))
}

/** Without a pointer, writes nothing: the contract does not say where the value is. */
function writeAt(target: unknown, pointer: string | undefined, value: unknown): void {
  if (pointer === undefined) return
  const parent = readPointer(target, posix.dirname(pointer)) ?? target
  Object.assign(parent as Json, { [posix.basename(pointer)]: value })
}
