/** Assertions that several oracles share: a write stores what was sent, and later reads return what
 *  is stored. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readDefault, type Schema } from '../../model/schema.ts'
import { isObject } from '../../model/source.ts'
import {
  asShownLater,
  meetsCondition,
  readRecordWords,
  requestSchema,
  responseSchema,
} from '../../words/records.ts'
import { assertStatus, failuresOf, show } from '../contract-broken.ts'
import { findItemOperation, findOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { newRequest, type Run, readRecord, waitUntilFinished } from '../run.ts'
import { isValid } from '../values/validity.ts'
import { assertAccepted } from './refused.ts'

export const broken = failuresOf('stored_values')

/** The largest accepted difference between `Date` of a response and the times of its new record. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000
/** The precision of stored times: a stored time may differ by this from the time that was sent. */
export const TIME_PRECISION_MS = 1

/** Throws unless the response to a write, and a GET of the record, have what the request sent. */
export async function assertStored(
  run: Run,
  operation: Operation,
  request: Request,
  response: ReceivedResponse,
): Promise<void> {
  const record = response.json
  const isWrite = operation.body !== null || operation.success.status === 201
  if (!isWrite || !isJsonObject(record)) return
  const sent = operation.body === null ? {} : (JSON.parse(request.body ?? '{}') as JsonObject)
  assertReturned(run, operation, { request, sent, record })
  assertRules(run, operation, request, record)
  if (operation.method === 'post') assertNew(run, operation, { request, sent, response })
  await assertReadable(run, operation, request, response)
  noteTested(run, operation, sent, record)
}

/** Counts the promises that `assertStored` tests. */
function noteTested(run: Run, operation: Operation, sent: JsonObject, record: JsonObject): void {
  const { id } = operation
  const { properties = {} } = requestSchema(run.contract, operation)
  for (const [name, schema] of Object.entries(properties)) {
    if (sent[name] === null) run.tested(id, 'body nullable', name)
    for (const at of listAdded(sent[name], record[name], name)) run.tested(id, 'body default', at)
    if (name in sent) continue
    run.tested(id, 'body optional', name)
    if (operation.method === 'post' && name in record && readDefault(schema) !== undefined)
      run.tested(id, 'body default', name)
  }
  if (operation.method !== 'post') return
  for (const word of ['created', 'updated']) run.tested(id, `x-record.${word}`)
  const { initial = {} } = readRecordWords(run.contract, operation)
  for (const name of Object.keys(initial))
    if (!(name in sent)) run.tested(id, 'x-record.initial', name)
}

interface Write {
  request: Request
  sent: JsonObject
  record: JsonObject
}

function assertReturned(
  { contract }: Run,
  operation: Operation,
  { request, sent, record }: Write,
): void {
  const { properties = {} } = requestSchema(contract, operation)
  const returned = responseSchema(contract, operation).properties ?? {}
  for (const [name, value] of Object.entries(sent)) {
    if (!(name in returned)) continue
    const difference = findDifference(properties[name] ?? {}, value, record[name], name)
    if (difference !== undefined) throw broken(request, `in the response, ${difference}`)
  }
}

/** A field in `set_when` must have a value if the record meets its condition, and null if not.
 *  Throws otherwise. */
export function assertRules(
  run: Run,
  operation: Operation,
  request: Request,
  record: JsonObject,
): void {
  const { set_when = {} } = readRecordWords(run.contract, operation)
  for (const [name, condition] of Object.entries(set_when)) {
    const isSet = record[name] !== null
    if (isSet !== meetsCondition(record, condition))
      throw broken(
        request,
        `${name} is ${show(record[name])}, but it must have a value exactly if ${show(condition)}`,
      )
    if (isSet) run.tested(operation.id, 'x-record.set_when', name)
  }
}

/** Creates a record, and waits until the service has finished it. */
export async function createFinished(
  run: Run,
  create: Operation,
  request: Request,
): Promise<{ path: string; record: JsonObject }> {
  const { headers } = await assertAccepted(run, create, request, 'the create')
  const path = headers.get('location') ?? ''
  const get = findItemOperation(run.contract, 'get', create.path)
  if (get === undefined) throw new Error(`no operation returns the records of ${create.path}`)
  await waitUntilFinished(run, get, path)
  const record = await readRecord(run, get, path)
  assertRules(run, get, request, record)
  run.tested(get.id, 'x-record.finished_when')
  return { path, record }
}

/** Throws unless the fields that were not sent have their defaults, and the times of creation and
 *  update are now. */
function assertNew(
  { contract }: Run,
  operation: Operation,
  { request, sent, response }: { request: Request; sent: JsonObject; response: ReceivedResponse },
): void {
  const record = response.json as JsonObject
  const returned = responseSchema(contract, operation).properties ?? {}
  const { initial = {}, created, updated } = readRecordWords(contract, operation)
  const { properties = {} } = requestSchema(contract, operation)
  const defaults = Object.entries(properties).flatMap(([name, schema]): [string, unknown][] => {
    const value = readDefault(schema)
    if (value !== undefined) return [[name, value]]
    return schema.nullable ? [[name, null]] : []
  })
  for (const [name, value] of [...defaults, ...Object.entries(initial)])
    if (!(name in sent) && name in returned && !isDeepStrictEqual(record[name], value))
      throw broken(
        request,
        `${name} is ${show(record[name])} instead of its default ${show(value)}`,
      )
  for (const name of [created, updated].filter((field) => field !== undefined))
    assertSetNow(request, response, name)
}

/** Throws unless the time in the field is later after a change than before. */
export function assertLater(
  request: Request,
  name: string,
  before: JsonObject,
  after: JsonObject,
): void {
  const [old, present] = [before, after].map((record) => Date.parse(String(record[name])))
  if (!(Number(present) > Number(old)))
    throw broken(
      request,
      `${name} is ${show(after[name])}, not later than before, but the record changed`,
    )
}

/** Throws unless the field has the time of the response. */
export function assertSetNow(
  request: Request,
  { headers, json }: ReceivedResponse,
  name: string,
): void {
  const now = Date.parse(headers.get('date') ?? '')
  const value = (json as JsonObject)[name]
  if (Number.isNaN(now)) return
  if (!(Math.abs(Date.parse(String(value)) - now) <= MAX_CLOCK_DIFFERENCE_MS))
    throw broken(request, `${name} is ${show(value)}, but the service has just set it`)
}

/** Throws unless a GET returns the same record with the same ETag. If the service has not finished
 *  the record, only the fields that were sent must be the same. */
async function assertReadable(
  run: Run,
  operation: Operation,
  request: Request,
  response: ReceivedResponse,
): Promise<void> {
  const record = asShownLater(run.contract, operation, response.json as JsonObject)
  const found = findReader(run, operation, request, response)
  if (found === undefined) return
  const { get, path } = found
  const probe = newRequest(run, get, path)
  const read = await run.send(get, probe)
  assertStatus(probe, read.status, {
    check: 'ensure_resource_availability',
    expected: get.success.status,
    what: 'GET of the written record',
  })
  if (operation.method === 'post') run.tested(operation.id, 'header location', 'Location')
  const stored = read.json as JsonObject
  const { finished_when } = readRecordWords(run.contract, operation)
  if (finished_when && !meetsCondition(record, finished_when)) {
    const sent = operation.body === null ? {} : JSON.parse(request.body ?? '{}')
    assertReturned(run, operation, { request: probe, sent, record: stored })
    return
  }
  const name = Object.keys(record).find((field) => !isDeepStrictEqual(stored[field], record[field]))
  if (name !== undefined)
    throw broken(
      probe,
      `GET returned ${name} ${show(stored[name])}, but the write ${show(record[name])}`,
    )
  const [written, current] = [response, read].map(({ headers }) => headers.get('etag'))
  if (written !== current && operation.success.headers.etag && get.success.headers.etag)
    throw broken(probe, `GET returned the ETag ${current}, but the write ${written}`)
  if (written !== null && current !== null)
    for (const { id } of [operation, get]) run.tested(id, 'header etag', 'ETag')
}

/** The GET of the written record, and its path. */
function findReader(
  { contract }: Run,
  { path: template, method }: Operation,
  request: Request,
  { headers }: ReceivedResponse,
): { get: Operation; path: string } | undefined {
  const isNew = method === 'post'
  const get = (isNew ? findItemOperation : findOperation)(contract, 'get', template)
  const path = isNew ? headers.get('location') : request.path.split('?')[0]
  return get && path ? { get, path } : undefined
}

/** Where the stored value differs from the sent one. Undefined: they are the same. */
export function findDifference(
  schema: Schema,
  sent: unknown,
  stored: unknown,
  place = '',
): string | undefined {
  const differs = `${place} is ${show(stored)} instead of ${show(sent)}`
  if (schema.oneOf) {
    const chosen = schema.oneOf.find((alternative) =>
      isValid(alternative, withDefaults(alternative, sent)),
    )
    return findDifference(chosen ?? {}, sent, stored, place)
  }
  if (schema.format === 'date-time' && sent !== null && stored !== null) {
    const difference = Math.abs(Date.parse(String(sent)) - Date.parse(String(stored)))
    return difference <= TIME_PRECISION_MS ? undefined : differs
  }
  if (schema.format === 'uuid' && typeof sent === 'string')
    return sent.toLowerCase() === stored ? undefined : differs
  if (Array.isArray(sent) && Array.isArray(stored) && sent.length === stored.length) {
    const { items = {} } = schema
    return firstOf(sent, (entry, index) =>
      findDifference(items, entry, stored[index], `${place}.${index}`),
    )
  }
  if (isJsonObject(sent) && isJsonObject(stored))
    return findFieldDifference(schema, sent, stored, place)
  return sent === stored ? undefined : differs
}

/** A schema without `properties` is a map: the service must not add entries to it. To an object
 *  with `properties`, the service may add fields. */
function findFieldDifference(
  { properties, additionalProperties }: Schema,
  sent: JsonObject,
  stored: JsonObject,
  place: string,
): string | undefined {
  const added = Object.keys(stored).find((name) => !Object.hasOwn(sent, name))
  if (properties === undefined && added !== undefined)
    return `${place}.${added} is ${show(stored[added])}, but was not sent`
  const others = typeof additionalProperties === 'object' ? additionalProperties : {}
  const expected = withDefaults({ properties }, sent) as JsonObject
  const compared = Object.keys(expected).filter((name) => name in sent || name in stored)
  return firstOf(compared, (name) =>
    findDifference(properties?.[name] ?? others, expected[name], stored[name], `${place}.${name}`),
  )
}

/** An object with the defaults of the fields that it lacks. Another value stays as it is. */
function withDefaults({ properties = {} }: Schema, value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const defaults = Object.entries(properties)
    .map(([name, property]) => [name, readDefault(property)])
    .filter(([, standard]) => standard !== undefined)
  return { ...Object.fromEntries(defaults), ...value }
}

/** The names of nested fields that were not sent, for example `questions.*.operator`. */
function listAdded(sent: unknown, stored: unknown, place: string): string[] {
  if (!isObject(sent) || !isObject(stored)) return []
  return Object.keys(stored).flatMap((name) => {
    const at = `${place}.${Array.isArray(stored) ? '*' : name}`
    return name in sent ? listAdded(sent[name], stored[name], at) : [at]
  })
}

function firstOf<T>(
  values: T[],
  find: (value: T, index: number) => string | undefined,
): string | undefined {
  for (const [index, value] of values.entries()) {
    const found = find(value, index)
    if (found !== undefined) return found
  }
  return undefined
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
