/** Oracle: an update changes the fields that were sent, and no others; null clears a field. It emits
 *  its events. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { listOwnEvents } from '../../words/events.ts'
import { meetsCondition, readRecordWords, requestSchema } from '../../words/records.ts'
import { show } from '../contract-broken.ts'
import { findOperation } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, prepareRequest, type Run } from '../run.ts'
import { limitValues, type NamedValue } from '../values/limit-values.ts'
import { variants } from '../values/valid-values.ts'
import { assertEmitted, sendAndListen } from './events.ts'
import { mergePatchChecks } from './merge-patch.ts'
import { assertLater, assertStored, broken, TIME_PRECISION_MS } from './stored-values.ts'

const MAX_OPTIONS = 6

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
  const check = (name: string, what: string, value: unknown): Check => ({
    what: `${name}: ${what}`,
    perform: () => updateOne(run, { get, update: operation, path }, { [name]: value }),
  })
  for (const [name, schema] of ordered)
    for (const { what, value } of chooseValues(schema)) yield check(name, what, value)
  yield* mergePatchChecks(run, { get, update: operation, path })
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
  { get, update: operation, path }: { get: Operation; update: Operation; path: string },
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
  const resource = path.split('/').at(-1) ?? ''
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
