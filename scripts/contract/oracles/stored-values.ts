/** Oracle: a write stores what was sent, and every later read returns it. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Contract } from '../../model/contract.ts'
import type { Operation } from '../../model/operations.ts'
import { readDefault, type Schema } from '../../model/schema.ts'
import {
  meetsCondition,
  type RecordWords,
  readRecordWords,
  requestSchema,
  responseSchema,
} from '../../words/records.ts'
import { assertStatus, ContractBroken, shorten } from '../checks.ts'
import { findOperation } from '../record-operations.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { buildRequest, type Check, newRequest, type Run } from '../test-run.ts'
import { variant } from '../valid-values.ts'
import { isValid } from '../validity.ts'
import { limits } from '../value-limits.ts'

type Json = Record<string, unknown>

/** The largest difference between the service's clock in `Date` and the time that it stores. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000
/** The precision of stored times. */
const TIME_PRECISION_MS = 1

const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Where the two values differ. Undefined: what was stored is what was sent. */
export function findDifference(
  schema: Schema,
  sent: unknown,
  stored: unknown,
  place = '',
): string | undefined {
  const differs = `${place} is ${show(stored)} instead of ${show(sent)}`
  if (schema.oneOf) {
    const chosen = schema.oneOf.find((alternative) => isValid(alternative, sent))
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
  if (isJson(sent) && isJson(stored)) return findFieldDifference(schema, sent, stored, place)
  return sent === stored ? undefined : differs
}

/** A map has no other entries. An object may have fields that were not sent. */
function findFieldDifference(
  { properties, additionalProperties }: Schema,
  sent: Json,
  stored: Json,
  place: string,
): string | undefined {
  const added = Object.keys(stored).find((name) => !Object.hasOwn(sent, name))
  if (properties === undefined && added !== undefined)
    return `${place}.${added} is ${show(stored[added])}, but was not sent`
  const others = typeof additionalProperties === 'object' ? additionalProperties : {}
  return firstOf(Object.keys(sent), (name) =>
    findDifference(properties?.[name] ?? others, sent[name], stored[name], `${place}.${name}`),
  )
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

const show = (value: unknown): string => shorten(String(JSON.stringify(value)))

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('stored_values', request, message)
}

/** Throws unless the response to a write, and a GET of the record, have what the request sent. */
export async function assertStored(
  run: Run,
  operation: Operation,
  request: Request,
  response: ReceivedResponse,
): Promise<void> {
  const record = response.json
  if (operation.body === null || !isJson(record)) return
  const sent = JSON.parse(request.body ?? '{}') as Json
  assertReturned(run, operation, { request, sent, record })
  const words = readRecordWords(run.contract, operation)
  assertRules(words, request, record)
  if (operation.method === 'post') assertNew(run, operation, { request, sent, response })
  await assertReadable(run, operation, request, response)
}

interface Write {
  request: Request
  sent: Json
  record: Json
}

function assertReturned(
  { contract }: Run,
  operation: Operation,
  { request, sent, record }: Write,
): void {
  const { properties = {} } = requestSchema(contract, operation)
  const known = responseSchema(contract, operation).properties ?? {}
  for (const [name, value] of Object.entries(sent)) {
    if (!(name in known)) continue
    const difference = findDifference(properties[name] ?? {}, value, record[name], name)
    if (difference !== undefined) throw broken(request, `in the response, ${difference}`)
  }
}

/** Throws unless the fields that the service sets itself agree with each other. */
export function assertRules({ set_when = {} }: RecordWords, request: Request, record: Json): void {
  for (const [name, options] of Object.entries(set_when)) {
    const isSet = record[name] !== null
    if (isSet !== meetsCondition(record, options))
      throw broken(
        request,
        `${name} is ${show(record[name])}, but it must have a value exactly if ${show(options)}`,
      )
  }
}

/** Throws unless the fields that were not sent have their defaults, and the times are those of
 *  now. */
function assertNew(
  { contract }: Run,
  operation: Operation,
  { request, sent, response }: { request: Request; sent: Json; response: ReceivedResponse },
): void {
  const record = response.json as Json
  const known = responseSchema(contract, operation).properties ?? {}
  const { initial = {}, created, updated } = readRecordWords(contract, operation)
  const { properties = {} } = requestSchema(contract, operation)
  const defaults = Object.entries(properties).flatMap(([name, schema]): [string, unknown][] => {
    const value = readDefault(schema)
    if (value !== undefined) return [[name, value]]
    return schema.nullable ? [[name, null]] : []
  })
  for (const [name, value] of [...defaults, ...Object.entries(initial)])
    if (!(name in sent) && name in known && !isDeepStrictEqual(record[name], value))
      throw broken(
        request,
        `${name} is ${show(record[name])} instead of its default ${show(value)}`,
      )
  const now = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(now)) return
  for (const name of [created, updated].filter((field) => field !== undefined))
    if (!(Math.abs(Date.parse(String(record[name])) - now) <= MAX_CLOCK_DIFFERENCE_MS))
      throw broken(request, `${name} of a new record is ${show(record[name])}`)
}

/** Throws unless a GET returns the same record with the same ETag. The service itself may change a
 *  record that it has not finished. */
async function assertReadable(
  run: Run,
  operation: Operation,
  request: Request,
  response: ReceivedResponse,
): Promise<void> {
  const record = response.json as Json
  const found = findReader(run, operation, request, response)
  if (found === undefined) return
  const { get, path } = found
  const probe = newRequest(run, get, path)
  const read = await run.send(get.id, probe)
  const { finished_when } = readRecordWords(run.contract, operation)
  assertStatus(probe, read.status, {
    check: 'ensure_resource_availability',
    expected: get.success.status,
    what: 'GET of the written record',
  })
  if (finished_when && !meetsCondition(record, finished_when)) {
    const sent = JSON.parse(request.body ?? '{}') as Json
    assertReturned(run, operation, { request: probe, sent, record: read.json as Json })
    return
  }
  const name = Object.keys(record).find(
    (field) => !isDeepStrictEqual((read.json as Json)[field], record[field]),
  )
  if (name !== undefined)
    throw broken(
      probe,
      `GET returned ${name} ${show((read.json as Json)[name])}, but the write ${show(record[name])}`,
    )
  const [written, current] = [response, read].map(({ headers }) => headers.get('etag'))
  if (written !== current && operation.success.headers.etag && get.success.headers.etag)
    throw broken(probe, `GET returned the ETag ${current}, but the write ${written}`)
}

/** The GET of the written record, and its path. */
export function findReader(
  { contract }: Run,
  { path: template, method }: Operation,
  request: Request,
  response: ReceivedResponse,
): { get: Operation; path: string } | undefined {
  const find = method === 'post' ? findItemOperation : findOperation
  const get = find(contract, 'get', template)
  if (get === undefined) return undefined
  const location = method === 'post' ? response.headers.get('location') : request.path.split('?')[0]
  return location ? { get, path: location } : undefined
}

/** The operation on one record of the collection. */
export function findItemOperation(
  { operations }: Contract,
  method: string,
  collection: string,
): Operation | undefined {
  return operations.find((other) => other.method === method && isItemOf(other.path, collection))
}

/** Whether the path is that of one record of the collection. */
export function isItemOf(path: string, collection: string): boolean {
  return (
    path.startsWith(`${collection}/{`) &&
    path.endsWith('}') &&
    !path.slice(collection.length + 1).includes('/')
  )
}

/** Updates one field after the other: the others keep their values, and null clears. */
export async function* updateChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { contract, records } = run
  const get = findOperation(contract, 'get', operation.path)
  if (get === undefined) return
  const { properties = {} } = requestSchema(contract, operation)
  const path = await records.newPath(operation)
  // The options may have a final state, after which other fields cannot change.
  const ordered = Object.entries(properties).sort(
    ([, a], [, b]) => Number(a.enum !== undefined) - Number(b.enum !== undefined),
  )
  const check = (name: string, what: string, value: unknown): Check => ({
    what: `${name}: ${what}`,
    perform: () => updateOne(run, { get, update: operation, path }, { [name]: value }),
  })
  for (const [name, schema] of ordered)
    for (const { what, value } of chooseValues(schema)) yield check(name, what, value)
  for (const [name, { nullable }] of ordered) if (nullable) yield check(name, 'null', null)
}

/** Two different values, or all options. */
function chooseValues(schema: Schema): { what: string; value: unknown }[] {
  const values = schema.enum
    ? schema.enum.slice(0, 6)
    : [0, 1].map((index) => variant(schema, index))
  const longest = limits(schema)
    .filter(({ value }) => value !== null)
    .at(-1)
  return [...values.map((value) => ({ what: show(value), value })), ...(longest ? [longest] : [])]
}

async function updateOne(
  run: Run,
  { get, update: operation, path }: { get: Operation; update: Operation; path: string },
  body: Json,
): Promise<void> {
  const read = newRequest(run, get, path)
  const before = (await run.send(get.id, read)).json as Json
  // The time of the update moves by at least its precision.
  await delay(2 * TIME_PRECISION_MS)
  const request = await buildRequest(run, operation, { body }, path)
  const response = await run.send(operation.id, request)
  if (response.status !== operation.success.status) return
  const after = response.json as Json
  assertOthersUnchanged(run, operation, { request, before, after })
  await assertStored(run, operation, request, response)
}

function assertOthersUnchanged(
  { contract }: Run,
  operation: Operation,
  { request, before, after }: { request: Request; before: Json; after: Json },
): void {
  const { updated, set_when = {} } = readRecordWords(contract, operation)
  const sent = Object.keys(JSON.parse(request.body ?? '{}'))
  const computed = [updated, ...Object.keys(set_when)]
  const changed = Object.keys(before).filter(
    (name) => !isDeepStrictEqual(before[name], after[name]),
  )
  const wrong = changed.find((name) => !sent.includes(name) && !computed.includes(name))
  if (wrong !== undefined)
    throw broken(
      request,
      `${wrong} changed from ${show(before[wrong])} to ${show(after[wrong])}, but was not sent`,
    )
  if (updated === undefined || changed.every((name) => name === updated)) return
  if (!(Date.parse(String(after[updated])) > Date.parse(String(before[updated]))))
    throw broken(request, `${updated} stayed ${show(after[updated])}, but the record changed`)
}
