/** The records of a mock with state. The contract says which operations create, list, change and
 *  delete them. */
import { posix } from 'node:path'
import { StatusError } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { readDefault } from '../model/schema.ts'
import { isObject } from '../model/source.ts'
import { applyFilter, applySort } from '../words/list-model.ts'
import { type Filter, listFilters, readListWords } from '../words/lists.ts'
import { readPointer } from '../words/read.ts'
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

/** The operations that create and get the records of a path. `#readKind` makes a `Kind` of them if
 *  the records have an ID. */
interface Candidate {
  /** The last path parameter. */
  idParameter: string
  create: Operation
  get: Operation
}

interface Kind extends RecordRules {
  get: Operation
}

/** Returns an example of the operation's success body. The discriminators of `like` choose the
 *  alternatives in the body. */
type ExampleOf = (operation: Operation, like?: Json) => unknown

export class MockRecords {
  readonly #contract: Contract
  readonly #exampleOf: ExampleOf
  /** By the path template of a collection. */
  readonly #collections = new Map<string, Candidate>()
  /** By the path template of a record. */
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
    for (const one of contract.operations) {
      const [, collection = '', idParameter = ''] = /^(.*)\/\{([^/}]+)\}$/.exec(one.path) ?? []
      const create = creations.get(collection)
      if (one.method !== 'get' || !create) continue
      const candidate = { idParameter, create, get: one }
      this.#collections.set(collection, candidate)
      this.#items.set(one.path, candidate)
    }
  }

  /** Reads a kind only when a request needs the kind: a large document has many. */
  #kindAt(candidates: Map<string, Candidate>, template: string): Kind | undefined {
    const candidate = candidates.get(template)
    if (candidate === undefined) return undefined
    if (!this.#kinds.has(candidate)) this.#kinds.set(candidate, this.#readKind(candidate))
    return this.#kinds.get(candidate)
  }

  #readKind({ idParameter, create, get }: Candidate): Kind | undefined {
    const example = this.#exampleOf(get)
    if (!isObject(example)) return undefined
    const idField = ['id', idParameter].find((field) => field in example)
    if (idField === undefined) return undefined
    return { get, ...readRules(this.#contract, { idField, create, get }) }
  }

  /** Throws `StatusError` 404 if a record in the path does not exist. */
  assertFound(operation: Operation, path: Json): void {
    const steps = operation.path.split('/')
    const templates = steps.map((_, index) => steps.slice(0, index + 1).join('/'))
    for (const template of templates)
      if (this.#kindAt(this.#items, template) && !this.#records.has(fillTemplate(template, path)))
        throw new StatusError(404, 'There is no such record.')
  }

  find(operation: Operation, path: Json): Json | undefined {
    return this.#records.get(fillTemplate(operation.path, path))
  }

  /** Undefined if the path names neither a list of records nor a stored record, or if the mock does
   *  not know the method. */
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
    const exampleLike = (record: Json) => this.#exampleOf(kind.get, record)
    const after = updatedRecord(kind, before, { ...call, exampleLike })
    this.#records.set(key, after)
    return { body: this.#bodyOf(kind, operation, after), change: { before, after } }
  }

  #create(kind: Kind, { operation, path, sent }: RecordCall): Outcome {
    const ofCreate = this.#exampleOf(operation, sent)
    const ofGet = this.#exampleOf(kind.get, sent) as Json
    const record = newRecord(kind, isRecord(kind, ofCreate) ? ofCreate : ofGet, sent)
    const id = record[kind.idField]
    const key = `${fillTemplate(operation.path, path)}/${id}`
    // The service finishes a record with `finished_when` in the background, for example an export.
    // The mock responds with the unfinished record, and stores the finished one at once.
    const stored = kind.words.finished_when
      ? newFinishedRecord(kind, ofGet, { ...sent, [kind.idField]: id })
      : record
    this.#records.set(key, stored)
    const change = { before: undefined, after: record }
    return { body: this.#bodyOf(kind, operation, record), change }
  }

  /** The record. Undefined if the operation returns something else: then the body is an example. */
  #bodyOf(kind: Kind, operation: Operation, record: Json): unknown {
    return isRecord(kind, this.#exampleOf(operation)) ? record : undefined
  }

  #list({ operation, path, query }: RecordCall): Outcome {
    const collection = fillTemplate(operation.path, path)
    let records: unknown[] = [...this.#records]
      .filter(([key]) => posix.dirname(key) === collection)
      .map(([, record]) => record)
    const words = readListWords(this.#contract)
    const body = structuredClone(this.#exampleOf(operation))
    if (!words) return { body: replaceList(body, records) }
    for (const filter of listFilters(operation))
      records = filterBy(records, filter, query[filter.parameter.name])
    const readParameter = (name: string): unknown => query[name] ?? this.#defaultOf(operation, name)
    const sorts = (readParameter(words.sort.parameter) ?? []) as string[]
    const sorted = applySort(records, words.sort, sorts)
    const page = Number(readParameter(words.page.parameter))
    const size = Number(readParameter(words.page.size))
    const total = sorted.length
    writeAt(body, words.items, sorted.slice((page - 1) * size, page * size))
    writeAt(body, words.meta.page, page)
    writeAt(body, words.meta.size, size)
    writeAt(body, words.meta.total, total)
    writeAt(body, words.meta.last_page, Math.max(1, Math.ceil(total / size)))
    return { body }
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

function fillTemplate(template: string, values: Json): string {
  return template.replace(/\{(.*?)\}/g, (_, name) => String(values[name] ?? ''))
}

function filterBy(records: unknown[], filter: Filter, value: unknown): unknown[] {
  return value === undefined ? records : applyFilter(records, filter, [value].flat().map(String))
}

/** The example with the records in place of its only list. An object without a list, or with
 *  several, stays unchanged. An example that is no object is replaced by the records. */
function replaceList(example: unknown, records: unknown[]): unknown {
  if (!isObject(example) || Array.isArray(example)) return records
  const lists = Object.keys(example).filter((name) => Array.isArray(example[name]))
  return lists.length === 1 ? { ...example, [lists[0] ?? '']: records } : example
}

/** Without a pointer, writes nothing: the contract does not say where the value is. */
function writeAt(target: unknown, pointer: string | undefined, value: unknown): void {
  if (pointer === undefined) return
  const parent = readPointer(target, posix.dirname(pointer)) ?? target
  Object.assign(parent as Json, { [posix.basename(pointer)]: value })
}
