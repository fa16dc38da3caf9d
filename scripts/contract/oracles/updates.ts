/** Oracle: an update changes the fields that were sent, and no others; null clears a field. It emits
 *  its events. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { listOwnEvents } from '../../words/events.ts'
import {
  meetsCondition,
  readMergePatchType,
  readRecordWords,
  requestSchema,
} from '../../words/records.ts'
import { assertStatus, show } from '../contract-broken.ts'
import { findOperation, idIn } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, prepareRequest, type Run, readRecord } from '../run.ts'
import { limitValues, type NamedValue, toFields } from '../values/limit-values.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { assertEmitted, sendAndListen } from './events.ts'
import { assertAccepted, assertChangesNothing, assertRefused } from './refused.ts'
import { assertLater, assertStored, broken, TIME_PRECISION_MS } from './stored-values.ts'

const MAX_OPTIONS = 6

interface Updated {
  update: Operation
  get: Operation
  path: string
}

/** Updates one field after the other. */
export async function* updateChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { contract, records } = run
  const get = findOperation(contract, 'get', operation.path)
  if (get === undefined) return
  const { properties = {} } = requestSchema(contract, operation)
  const path = await records.newPath(operation)
  // Enumerations come last: one of their options may be a final state, after which other fields
  // cannot change.
  const ordered = Object.entries(properties).sort(
    ([, a], [, b]) => Number(a.enum !== undefined) - Number(b.enum !== undefined),
  )
  const updated = { get, update: operation, path }
  const check = (name: string, what: string, value: unknown): Check => ({
    what: `${name}: ${what}`,
    perform: () => updateOne(run, updated, { [name]: value }),
  })
  for (const [name, schema] of ordered)
    for (const { what, value } of chooseValues(schema)) yield check(name, what, value)
  yield* mergePatchChecks(run, updated)
  for (const [name, { nullable }] of ordered) if (nullable) yield check(name, 'null', null)
}

/** The first options of an enumeration; for any other schema, two short values. Also the last of
 *  the `limitValues` that is not null, for example the longest text or the largest number. */
function chooseValues(schema: Schema): NamedValue[] {
  const values = schema.enum ? schema.enum.slice(0, MAX_OPTIONS) : variants(schema, 2)
  const last = limitValues(schema)
    .filter(({ value }) => value !== null)
    .at(-1)
  return [...values.map((value) => ({ what: show(value), value })), ...(last ? [last] : [])]
}

async function updateOne(
  run: Run,
  { get, update: operation, path }: Updated,
  body: JsonObject,
): Promise<void> {
  const read = newRequest(run, get, path)
  const first = await run.send(get, read)
  const before = first.json as JsonObject
  // Without a delay, two updates could have the same time.
  await delay(2 * TIME_PRECISION_MS)
  const request = await prepareRequest(run, operation, { body }, path)
  const { response, emitted } = await sendAndListen(run, operation, request)
  // A rule that the schema does not express can refuse the value.
  if (response.status !== operation.success.status) return assertEmitted(request, emitted, [])
  const after = response.json as JsonObject
  const resource = idIn(path)
  const events = listOwnEvents(run.contract, operation, { before, after })
  assertEmitted(
    request,
    emitted,
    events.map(({ type }) => ({ type, resource })),
  )
  assertChanges(run, operation, { request, before, after })
  const { updated = '' } = readRecordWords(run.contract, operation)
  if (before[updated] !== after[updated]) run.tested(operation.id, 'x-record.updated')
  const [oldTag, newTag] = [first, response].map(({ headers }) => headers.get('etag'))
  if (newTag !== null && newTag === oldTag && !isDeepStrictEqual(before, after))
    throw broken(request, `the record changed, but its ETag is still ${newTag}`)
  await assertStored(run, operation, request, response)
}

function assertChanges(
  { contract }: Run,
  operation: Operation,
  { request, before, after }: { request: Request; before: JsonObject; after: JsonObject },
): void {
  const { updated, set_when = {} } = readRecordWords(contract, operation)
  const sent = Object.keys(JSON.parse(request.body ?? '{}'))
  const set = Object.entries(set_when).filter(
    ([, condition]) => meetsCondition(before, condition) !== meetsCondition(after, condition),
  )
  const computed = [updated, ...set.map(([name]) => name)]
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
  assertLater(request, updated, before, after)
}

/** Updates that change nothing, and those with a merge patch (RFC 7396), which changes single entries
 *  of maps. Each check continues with the record of the one before. */
function* mergePatchChecks(run: Run, updated: Updated): Generator<Check> {
  const { properties = {} } = requestSchema(run.contract, updated.update)
  const type = readMergePatchType(run.contract)
  yield {
    what: 'the values of the record',
    async perform() {
      const record = await readRecord(run, updated.get, updated.path)
      await assertSame(run, updated, ownValues(properties, record))
    },
  }
  if (type === undefined) return
  yield {
    what: 'an empty merge patch',
    perform: () => assertSame(run, updated, {}, type),
  }
  for (const [name, schema] of Object.entries(properties)) {
    if (typeof schema.additionalProperties !== 'object') continue
    for (const { patch, ...step } of listSteps(schema.additionalProperties))
      yield {
        what: `${name}: ${patch ? 'merge patch' : 'update'} ${show(step.value)}`,
        perform: () => assertMap(run, updated, name, { ...step, type: patch ? type : undefined }),
      }
    if (schema.maxProperties !== undefined)
      yield {
        what: `${name}: a merge patch with too many entries`,
        perform: () => assertTooMany(run, updated, name, schema, type),
      }
  }
}

/** The fields of an update that changes nothing. Times have another offset, and IDs upper case. */
function ownValues(properties: Readonly<Record<string, Schema>>, record: JsonObject): JsonObject {
  const own = Object.entries(properties).flatMap(([name, schema]) => {
    const value = record[name]
    if (!(name in record) || !isValid(schema, value)) return []
    if (typeof value !== 'string') return [[name, value]]
    if (schema.format === 'date-time') return [[name, value.replace(/Z$/, '+00:00')]]
    return [[name, schema.format === 'uuid' ? value.toUpperCase() : value]]
  })
  return Object.fromEntries(own)
}

function listSteps(schema: Schema): { patch: boolean; value: JsonObject; want: JsonObject }[] {
  const [v0, v1, v2, v3] = variants(schema, 4)
  return [
    { patch: false, value: { a: v0, b: v1 }, want: { a: v0, b: v1 } },
    { patch: true, value: { b: v2, c: v3 }, want: { a: v0, b: v2, c: v3 } },
    { patch: true, value: { a: null }, want: { b: v2, c: v3 } },
    { patch: true, value: { not_an_entry: null }, want: { b: v2, c: v3 } },
    { patch: false, value: { c: v1 }, want: { c: v1 } },
  ]
}

function requestOf(run: Run, { update, path }: Updated, body: JsonObject, type?: string): Request {
  const headers = type === undefined ? {} : { 'Content-Type': type }
  return newRequest(run, update, path, { body, headers })
}

/** Throws if the update changes a field or emits an event. */
async function assertSame(
  run: Run,
  updated: Updated,
  body: JsonObject,
  type?: string,
): Promise<void> {
  const { update: operation } = updated
  const request = requestOf(run, updated, body, type)
  const what = 'an update to the same values'
  const check = 'stored_values'
  await assertChangesNothing(run, { operation, request, check, what }, async () => {
    const { response, emitted } = await sendAndListen(run, operation, request)
    assertStatus(request, response.status, { check, expected: operation.success.status, what })
    assertEmitted(request, emitted, [])
  })
}

async function assertMap(
  run: Run,
  updated: Updated,
  name: string,
  { type, value, want }: { type: string | undefined; value: JsonObject; want: JsonObject },
): Promise<void> {
  const request = requestOf(run, updated, { [name]: value }, type)
  const { json } = await assertAccepted(run, updated.update, request, 'the update')
  for (const { [name]: map } of [json, await readRecord(run, updated.get, updated.path)])
    if (!isDeepStrictEqual(map, want))
      throw broken(request, `${name} is ${show(map)} instead of ${show(want)}`)
  if (type !== undefined) run.tested('openapi.yaml', 'x-merge-patch')
}

/** A patch is valid by itself, but not together with the entries of the record. */
async function assertTooMany(
  run: Run,
  updated: Updated,
  name: string,
  { additionalProperties, maxProperties = 0 }: Schema,
  type: string,
): Promise<void> {
  const full = toFields(additionalProperties as Schema, maxProperties)
  const fill = requestOf(run, updated, { [name]: full })
  await assertAccepted(run, updated.update, fill, `${maxProperties} entries`)
  const [value] = Object.values(full)
  const request = requestOf(run, updated, { [name]: { one_more: value } }, type)
  const why = `${name} can have ${maxProperties} entries`
  await assertRefused(run, updated.update, request, { fields: [name], why })
}
