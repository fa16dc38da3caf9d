/** Oracle: an operation emits the declared events once, about the right records, and no others. */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type EventList, findEventList, listOwnEvents } from '../../words/events.ts'
import { findIdempotencyKey, type IdempotencyKey } from '../../words/idempotency.ts'
import { readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { requestSchema } from '../../words/records.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  type Check,
  type Input,
  newRequest,
  prepareRequest,
  type Run,
  UNKNOWN_ID,
  withId,
} from '../run.ts'
import { limitValues } from '../values/limit-values.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'

/** The clocks of the service and of this computer may differ by this much. */
export const CLOCK_TOLERANCE_MS = 60_000
/** More events than one operation emits. */
export const EVENT_PAGE_SIZE = 50

/** An event as the list of events (`x-event-list`) has it. */
export interface ListedEvent {
  id: string
  type: string
  /** The ID of the record that the event is about. */
  resource: string
  event: JsonObject
}

export async function* eventChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const list = findEventList(run.contract)
  if (list === undefined) return
  const schema = requestSchema(run.contract, operation)
  const bodies = operation.body ? limitValues(schema).map(({ value }) => value) : [undefined]
  for (const body of bodies) {
    if (run.coverage.hasSeenAllEvents(operation)) break
    const perform = () => assertEmits(run, operation, list, body as Input['body'])
    yield { what: 'its events', perform }
  }
  if (operation.method === 'patch') yield* listFieldChecks(run, operation, list)
  for (const { what, prepare } of listSilentRequests(run, operation))
    yield {
      what: `no event for ${what}`,
      perform: () => assertSilent(run, operation, list, prepare),
    }
  const key = findIdempotencyKey(operation)
  if (key)
    yield {
      what: 'no event for a repeated request',
      perform: () => assertRepeatSilent(run, operation, list, key),
    }
}

/** A request that must not emit an event. */
interface SilentRequest {
  what: string
  /** `path` is the operation's path with the IDs of new records. */
  prepare(path: string): Promise<Request>
}

function listSilentRequests(run: Run, operation: Operation): SilentRequest[] {
  const { restrictedKey } = run.target
  const prepare = (path: string, input: Input = {}) => prepareRequest(run, operation, input, path)
  const requests: SilentRequest[] = [
    {
      what: 'a refused request',
      prepare: async (path) => withUnknownName(await prepare(path)),
    },
  ]
  if (operation.path.includes('{'))
    requests.push({
      what: 'an unknown record',
      prepare: (path) => prepare(withId(operation, path, UNKNOWN_ID)),
    })
  if (restrictedKey !== undefined && operation.responses.some(({ status }) => status === 403))
    requests.push({
      what: 'a request without the permission',
      prepare: async (path) => ({ ...(await prepare(path)), key: restrictedKey }),
    })
  if (operation.method === 'patch')
    requests.push({
      what: 'an update that changes nothing',
      prepare: (path) => prepare(path, { body: {} }),
    })
  return requests
}

/** Updates one field after the other. Enumerations come last: one of their options may be a final
 *  state, after which other fields cannot change. */
async function* listFieldChecks(
  run: Run,
  operation: Operation,
  list: EventList,
): AsyncGenerator<Check> {
  const { properties = {} } = requestSchema(run.contract, operation)
  const path = await run.records.newPath(operation)
  const ordered = Object.entries(properties).sort(
    ([, a], [, b]) => Number(a.enum !== undefined) - Number(b.enum !== undefined),
  )
  for (const [name, schema] of ordered) {
    const values = schema.enum
      ? limitValues({ ...schema, nullable: false }).map(({ value }) => value)
      : variants(schema, 2).filter((value) => isValid(schema, value))
    for (const value of [...values, ...(schema.nullable ? [null] : [])])
      yield {
        what: `its events if only ${name} is sent: ${show(value)}`,
        perform: () => assertEmitsOnce(run, operation, list, { path, body: { [name]: value } }),
      }
  }
}

/** Sends the update twice. The second update changes nothing, so it emits nothing. */
async function assertEmitsOnce(
  run: Run,
  operation: Operation,
  list: EventList,
  { path, body }: { path: string; body: JsonObject },
): Promise<void> {
  const request = await prepareRequest(run, operation, { body }, path)
  const id = path.split('/').at(-1) ?? ''
  const read = { method: 'GET', path, headers: {}, key: run.target.key }
  let { json: before } = await run.sendUnchecked(read)
  const expected: ExpectedEvent[] = []
  const update = async (): Promise<ReceivedResponse> => {
    const response = await run.send(operation, request)
    if (response.status === operation.success.status) {
      const change = { before: before as JsonObject, after: response.json as JsonObject }
      const events = listOwnEvents(run.contract, operation, change)
      expected.push(...events.map(({ type }) => ({ type, resource: id })))
      before = response.json
    }
    return response
  }
  const { emitted } = await listen(run, list, async () => {
    await update()
    return update()
  })
  assertSame(request, emitted, expected)
}

/** Adds an unknown field to the body, or an unknown parameter to a request without a body. */
function withUnknownName(request: Request): Request {
  return request.body === undefined
    ? { ...request, path: `${request.path}?not_a_parameter=1` }
    : { ...request, body: JSON.stringify({ ...JSON.parse(request.body), not_a_field: 1 }) }
}

async function assertEmits(
  run: Run,
  operation: Operation,
  list: EventList,
  body: Input['body'],
): Promise<void> {
  const { request, path, id, dependents } = await prepareCall(run, operation, body)
  const read = { method: 'GET', path, headers: {}, key: run.target.key }
  const { json: before } = await run.sendUnchecked(read)
  const sentAt = Date.now()
  const { response, emitted } = await sendAndListen(run, list, operation, request)
  for (const { type } of emitted)
    if (operation.emits.includes(type)) run.tested(operation.id, 'x-emits', type)
  const isDone = response.status === operation.success.status
  const after = (response.json ?? {}) as JsonObject
  const record = operation.method === 'delete' ? (before as JsonObject) : after
  const change = {
    before: operation.method === 'patch' ? (before as JsonObject) : undefined,
    after,
    id: String(after.id ?? id),
    dependents,
  }
  assertSame(request, emitted, isDone ? listExpected(run, operation, change) : [])
  for (const event of emitted) {
    const problem =
      findTimeProblem(list, event, sentAt) ??
      (event.resource === change.id ? findDataProblem(list, event, record) : undefined)
    if (problem !== undefined) throw broken(request, `emitted ${event.type}, whose ${problem}`)
  }
  for (const { type } of emitted) run.tested(operation.id, 'x-emits-when', type)
  if (emitted.length > 0) run.tested(list.operation.id, 'x-event-list')
}

function findTimeProblem(
  { time }: EventList,
  { event }: ListedEvent,
  sentAt: number,
): string | undefined {
  if (time === undefined) return undefined
  const text = readPointer(event, time)
  const at = Date.parse(String(text))
  // An invalid time is NaN.
  const isDuringRequest = at > sentAt - CLOCK_TOLERANCE_MS && at < Date.now() + CLOCK_TOLERANCE_MS
  return isDuringRequest ? undefined : `time is ${show(text)}, not that of the request`
}

/** Compares the data with the fields of the record that have the same names. */
function findDataProblem(
  { data }: EventList,
  { event }: ListedEvent,
  record: JsonObject,
): string | undefined {
  const fields = Object.entries(data === undefined ? {} : Object(readPointer(event, data)))
  const wrong = fields.find(
    ([name, value]) => name in record && !isDeepStrictEqual(value, record[name]),
  )
  if (wrong === undefined) return undefined
  const [name, value] = wrong
  return `data has ${name}: ${show(value)}, but the record has ${show(record[name])}`
}

async function assertSilent(
  run: Run,
  operation: Operation,
  list: EventList,
  prepare: SilentRequest['prepare'],
): Promise<void> {
  const request = await prepare(await run.records.newPath(operation))
  const { emitted } = await sendAndListen(run, list, operation, request)
  assertSame(request, emitted, [])
}

async function assertRepeatSilent(
  run: Run,
  operation: Operation,
  list: EventList,
  { name }: IdempotencyKey,
): Promise<void> {
  const request = await prepareRequest(run, operation, { headers: { [name]: randomUUID() } })
  await run.send(operation, request)
  const { emitted } = await sendAndListen(run, list, operation, request)
  assertSame(request, emitted, [])
}

interface Call {
  request: Request
  path: string
  /** The last segment of the path: the ID of the record, unless the operation creates one. */
  id: string
  /** IDs of the records that refer to the record. */
  dependents: string[]
}

/** Prepares a request whose path has the IDs of new records. For a deletion, also creates records
 *  that refer to the record to delete. */
export async function prepareCall(
  run: Run,
  operation: Operation,
  body: Input['body'],
): Promise<Call> {
  const path = await run.records.newPath(operation)
  const id = path.split('/').at(-1) ?? ''
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  const dependents =
    operation.method === 'delete' && kind !== undefined
      ? await run.records.addDependents(kind, id)
      : []
  return { request: await prepareRequest(run, operation, { body }, path), path, id, dependents }
}

/** Sends the request. Returns the new events, without the types in `emittedBySystem`, which no
 *  request causes. */
export function sendAndListen(
  run: Run,
  list: EventList,
  operation: Operation,
  request: Request,
): Promise<Heard> {
  return listen(run, list, () => run.send(operation, request))
}

interface Heard {
  response: ReceivedResponse
  emitted: ListedEvent[]
}

async function listen(
  run: Run,
  list: EventList,
  send: () => Promise<ReceivedResponse>,
): Promise<Heard> {
  const oldIds = new Set((await readEvents(run, list)).map(({ id }) => id))
  const response = await send()
  const { emittedBySystem } = run.contract
  const emitted = (await readEvents(run, list)).filter(
    ({ id, type }) => !oldIds.has(id) && !emittedBySystem.includes(type),
  )
  return { response, emitted }
}

/** A page of the newest events, the newest first. */
export async function readEvents(run: Run, list: EventList, page = 1): Promise<ListedEvent[]> {
  const words = readListWords(run.contract)
  if (words === undefined) return []
  const maxSize = readMaxPageSize(run.contract, list.operation, words)
  const size = Math.min(EVENT_PAGE_SIZE, maxSize)
  const query = {
    [words.sort.parameter]: list.newest_first,
    [words.page.size]: size,
    [words.page.parameter]: page,
  }
  const request = newRequest(run, list.operation, list.operation.path, { query })
  const { json } = await run.send(list.operation, request)
  const events = (readPointer(json, words.items) ?? []) as JsonObject[]
  return events.map((event) => ({
    id: String(readPointer(event, list.id)),
    type: String(readPointer(event, list.type)),
    resource: String(readPointer(event, list.resource)),
    event,
  }))
}

interface Change {
  /** The record before an update. Undefined for other operations. */
  before: JsonObject | undefined
  after: JsonObject
  /** The ID of the changed record. */
  id: string
  /** IDs of the records that refer to the changed record. */
  dependents: string[]
}

export interface ExpectedEvent {
  type: string
  /** The ID of the record. */
  resource: string
}

/** The events about the changed record. For each record that refers to it, also the operation's
 *  events of other resource types. */
function listExpected(
  { contract }: Run,
  operation: Operation,
  { id, dependents, ...change }: Change,
): ExpectedEvent[] {
  const resourceTypeOf = (type = '') =>
    contract.events.find((event) => event.type === type)?.resourceType
  const isOther = (type: string) => resourceTypeOf(type) !== resourceTypeOf(operation.emits[0])
  return [
    ...listOwnEvents(contract, operation, change).map(({ type }) => ({ type, resource: id })),
    ...operation.emits
      .filter(isOther)
      .flatMap((type) => dependents.map((resource) => ({ type, resource }))),
  ]
}

export function assertSame(
  request: Request,
  emitted: ListedEvent[],
  expected: ExpectedEvent[],
): void {
  const describe = ({ type, resource }: ExpectedEvent): string => `${type} of ${resource}`
  const unexpected = emitted.map(describe)
  for (const event of expected.map(describe)) {
    const index = unexpected.indexOf(event)
    if (index === -1)
      throw broken(
        request,
        `did not emit ${event}. Other events emitted: ${unexpected.join(', ') || 'none'}`,
      )
    unexpected.splice(index, 1)
  }
  if (unexpected.length > 0)
    throw broken(request, `emitted ${unexpected.join(', ')}, which it must not emit`)
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('emitted_events', request, message)
}
