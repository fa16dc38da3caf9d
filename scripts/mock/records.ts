/** The records of a mock with state. The contract says which operations create, list, change and
 *  delete them. */
import { posix } from 'node:path'
import { StatusError } from '../../errors.ts'
import { type Filter, listFilters, readListWords, readPointer } from '../contract/list-words.ts'
import { applyFilter, applySort } from '../contract/oracles/list-model.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { readDefault } from '../model/schema.ts'
import { isObject } from '../model/source.ts'
import { type Json, newRecord, type RecordRules, readRules, updatedRecord } from './values.ts'

export interface RecordCall {
  operation: Operation
  /** The values of the path parameters. */
  path: Json
  query: Json
  sent: Json
  /** RFC 7396: null removes a part of a field. */
  isMergePatch: boolean
}

/** Undefined: the record did not exist, or does not exist any longer. */
export interface Change {
  before: Json | undefined
  after: Json | undefined
}

export interface Outcome {
  /** Undefined: the response is that of the contract's example. */
  body: unknown
  change?: Change
}

/** Operations that may be about one kind of record. */
interface Candidate {
  /** The last path parameter. */
  name: string
  create: Operation
  get: Operation
}

interface Kind extends RecordRules {
  get: Operation
}

type ExampleOf = (operation: Operation) => unknown

export class MockRecords {
  readonly #contract: Contract
  readonly #exampleOf: ExampleOf
  /** By the path templates of a collection and of its records. */
  readonly #collections = new Map<string, Candidate>()
  readonly #items = new Map<string, Candidate>()
  /** Undefined: the records have no ID. */
  readonly #kinds = new Map<Candidate, Kind | undefined>()
  /** By path, in the order of their creation. */
  readonly #records = new Map<string, Json>()

  constructor(contract: Contract, exampleOf: ExampleOf = exampleOfContract) {
    this.#contract = contract
    this.#exampleOf = exampleOf
    const creations = new Map(
      contract.operations.filter(({ method }) => method === 'post').map((one) => [one.path, one]),
    )
    for (const get of contract.operations) {
      const [, collection = '', name = ''] = /^(.*)\/\{([^/}]+)\}$/.exec(get.path) ?? []
      const create = creations.get(collection)
      if (get.method !== 'get' || !create) continue
      const candidate = { name, create, get }
      this.#collections.set(collection, candidate)
      this.#items.set(get.path, candidate)
    }
  }

  /** Reads a kind when a request needs it: a large document has many. */
  #kindAt(candidates: Map<string, Candidate>, template: string): Kind | undefined {
    const candidate = candidates.get(template)
    if (candidate === undefined) return undefined
    if (!this.#kinds.has(candidate)) this.#kinds.set(candidate, this.#readKind(candidate))
    return this.#kinds.get(candidate)
  }

  #readKind({ name, create, get }: Candidate): Kind | undefined {
    const example = this.#exampleOf(get)
    const idField = isObject(example) ? ['id', name].find((field) => field in example) : undefined
    if (idField === undefined) return undefined
    return { get, ...readRules(this.#contract, { idField, create, get }) }
  }

  /** Throws 404 if a record in the path does not exist. */
  assertFound(operation: Operation, path: Json): void {
    const steps = operation.path.split('/')
    const templates = steps.map((_, index) => steps.slice(0, index + 1).join('/'))
    for (const template of templates)
      if (this.#kindAt(this.#items, template) && !this.#records.has(fillTemplate(template, path)))
        throw new StatusError(404, 'There is no such record.')
  }

  /** The record at the path. */
  find(operation: Operation, path: Json): Json | undefined {
    return this.#records.get(fillTemplate(operation.path, path))
  }

  /** Undefined: the operation is not about records. */
  perform(call: RecordCall): Outcome | undefined {
    const { operation, path } = call
    const collection = this.#kindAt(this.#collections, operation.path)
    if (collection && operation.method === 'post') return this.#create(collection, call)
    if (collection && operation.method === 'get') return this.#list(call)
    const kind = this.#kindAt(this.#items, operation.path)
    const key = fillTemplate(operation.path, path)
    const before = this.#records.get(key)
    if (kind === undefined || before === undefined) return undefined
    if (operation.method === 'get') return { body: before }
    if (operation.method === 'delete') {
      this.#records.delete(key)
      return { body: undefined, change: { before, after: undefined } }
    }
    if (operation.method !== 'patch' && operation.method !== 'put') return undefined
    const after = updatedRecord(kind, before, call)
    this.#records.set(key, after)
    return { body: this.#bodyOf(kind, operation, after), change: { before, after } }
  }

  #create(kind: Kind, { operation, path, sent }: RecordCall): Outcome {
    const created = this.#exampleOf(operation)
    const current = this.#exampleOf(kind.get) as Json
    const record = newRecord(kind, isRecord(kind, created) ? created : current, sent)
    const id = { [kind.idField]: record[kind.idField] }
    // The service itself finishes such a record. Here, that takes no time.
    const stored = kind.words.finished_when
      ? newRecord(kind, current, { ...sent, ...id }, true)
      : record
    const key = `${fillTemplate(operation.path, path)}/${record[kind.idField]}`
    this.#records.set(key, stored)
    const change = { before: undefined, after: record }
    return { body: this.#bodyOf(kind, operation, record), change }
  }

  /** An operation that does not return the record responds with its example. */
  #bodyOf(kind: Kind, operation: Operation, record: Json): unknown {
    return isRecord(kind, this.#exampleOf(operation)) ? record : undefined
  }

  #list({ operation, path, query }: RecordCall): Outcome {
    const collection = fillTemplate(operation.path, path)
    const records = [...this.#records]
      .filter(([key]) => posix.dirname(key) === collection)
      .map(([, record]) => record)
    const words = readListWords(this.#contract)
    const example = structuredClone(this.#exampleOf(operation))
    if (!words) return { body: replaceList(example, records) }
    const option = (name: string): unknown => query[name] ?? this.#defaultOf(operation, name)
    const found = listFilters(operation).reduce<unknown[]>(
      (rest, filter) => filterBy(rest, filter, query[filter.parameter.name]),
      records,
    )
    const { page, sort, meta, items } = words
    const sorted = applySort(found, sort, (option(sort.parameter) ?? []) as string[])
    const [number, size] = [Number(option(page.parameter)), Number(option(page.size))]
    write(example, items, sorted.slice((number - 1) * size, number * size))
    const total = sorted.length
    const lastPage = Math.max(1, Math.ceil(total / size))
    for (const [name, value] of Object.entries({ page: number, size, total, last_page: lastPage }))
      write(example, meta[name as keyof typeof meta], value)
    return { body: example }
  }

  #defaultOf({ parameters }: Operation, name: string): unknown {
    const schema = parameters.find((parameter) => parameter.name === name)?.schema
    return schema && readDefault(inlineReferences(this.#contract.sources, schema))
  }
}

function exampleOfContract({ success }: Operation): unknown {
  return success.content['application/json']?.example
}

function isRecord({ idField }: Kind, example: unknown): example is Json {
  return isObject(example) && idField in example
}

export function fillTemplate(template: string, values: Json): string {
  return template.replace(/\{(.*?)\}/g, (_, name) => String(values[name] ?? ''))
}

function filterBy(records: unknown[], filter: Filter, value: unknown): unknown[] {
  return value === undefined ? records : applyFilter(records, filter, [value].flat().map(String))
}

/** The example with the records in the place of its only list. */
function replaceList(example: unknown, records: Json[]): unknown {
  if (!isObject(example) || Array.isArray(example)) return records
  const lists = Object.keys(example).filter((name) => Array.isArray(example[name]))
  return lists.length === 1 ? { ...example, [lists[0] ?? '']: records } : example
}

function write(target: unknown, pointer: string | undefined, value: unknown): void {
  if (pointer === undefined) return
  const parent = readPointer(target, posix.dirname(pointer)) ?? target
  Object.assign(parent as Json, { [posix.basename(pointer)]: value })
}
