/** Oracle: an operation emits the declared events once, about the right records, and no others. */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type EventList, findEventList, listOwnEvents } from '../../words/events.ts'
import { findIdempotencyKey } from '../../words/idempotency.ts'
import { readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { failuresOf, show } from '../contract-broken.ts'
import { findItemOperation, idIn } from '../record-kinds.ts'
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
import { jsonBytes, limitValues } from '../values/limit-values.ts'

const broken = failuresOf('emitted_events')

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

export function* eventChecks(run: Run, operation: Operation): Generator<Check> {
  const list = findEventList(run.contract)
  if (list === undefined) return
  const schema = requestSchema(run.contract, operation)
  const bodies = operation.body ? limitValues(schema).map(({ value }) => value) : [undefined]
  for (const body of bodies) {
    if (run.coverage.hasSeenAllEvents(operation)) break
    const perform = () => assertEmits(run, operation, list, body as Input['body'])
    yield { what: 'its events', perform }
  }
  for (const { what, prepare } of listSilentRequests(run, operation))
    yield {
      what: `no event for ${what}`,
      async perform() {
        const request = await prepare(await run.records.newPath(operation))
        const { emitted } = await sendAndListen(run, operation, request)
        assertEmitted(request, emitted, [])
      },
    }
}

/** A request that must not emit an event. */
interface SilentRequest {
  what: string
  isPossible: boolean
  /** `path` is the operation's path with the IDs of new records. */
  prepare(path: string): Promise<Request>
}

function listSilentRequests(run: Run, operation: Operation): SilentRequest[] {
  const { restrictedKey = null } = run.target
  const key = findIdempotencyKey(operation)
  const prepare = (path: string, input: Input = {}) => prepareRequest(run, operation, input, path)
  const requests: SilentRequest[] = [
    {
      what: 'a refused request',
      isPossible: true,
      prepare: async (path) => withUnknownName(operation, await prepare(path)),
    },
    {
      what: 'an unknown record',
      isPossible: operation.path.includes('{'),
      prepare: (path) => prepare(withId(operation, path, UNKNOWN_ID)),
    },
    {
      what: 'a request without the permission',
      isPossible:
        restrictedKey !== null && operation.responses.some(({ status }) => status === 403),
      prepare: async (path) => ({ ...(await prepare(path)), key: restrictedKey }),
    },
    {
      what: 'an update that changes nothing',
      isPossible: operation.method === 'patch',
      prepare: (path) => prepare(path, { body: {} }),
    },
    {
      what: 'a repeated request',
      isPossible: key !== undefined,
      async prepare(path) {
        const request = await prepare(path, { headers: { [key?.name ?? '']: randomUUID() } })
        await run.send(operation, request)
        return request
      },
    },
  ]
  return requests.filter(({ isPossible }) => isPossible)
}

/** Adds an unknown field to a JSON body, or an unknown parameter to another request. */
function withUnknownName({ body }: Operation, request: Request): Request {
  const separator = request.path.includes('?') ? '&' : '?'
  return body === null || request.body === undefined
    ? { ...request, path: `${request.path}${separator}not_a_parameter=1` }
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
  const deleted = operation.method === 'delete' ? (before as JsonObject) : undefined
  const { response, emitted } = await sendAndListen(run, operation, request, deleted)
  for (const { type } of emitted)
    if (operation.emits.includes(type)) run.tested(operation.id, 'x-emits', type)
  const isDone = response.status === operation.success.status
  const after = (response.json ?? {}) as JsonObject
  const change: Change = {
    before: operation.method === 'patch' ? (before as JsonObject) : undefined,
    after,
    id: String(after.id ?? id),
    dependents,
  }
  assertEmitted(request, emitted, isDone ? listExpected(run, operation, change) : [])
  for (const event of emitted) await assertChanges(run, operation, list, { request, event, change })
  for (const { type } of emitted) run.tested(operation.id, 'x-emits-when', type)
  if (emitted.length > 0) run.tested(list.operation.id, 'x-event-list')
}

/** The changes of an update must be the fields that differ. If the event is about another record, they
 *  must be its reference to the deleted record. Other events must have no changes. */
async function assertChanges(
  run: Run,
  operation: Operation,
  list: EventList,
  { request, event, change }: { request: Request; event: ListedEvent; change: Change },
): Promise<void> {
  const { id, type, resource } = event
  const { before, after, id: changedId } = change
  const get = findItemOperation(run.contract, 'get', list.operation.path)
  if (get === undefined || list.changes === undefined) return
  const { json } = await run.send(get, newRequest(run, get, `${list.operation.path}/${id}`))
  const changes = (readPointer(json, list.changes) ?? []) as JsonObject[]
  const { updated } = readRecordWords(run.contract, operation)
  const { max_value_bytes: maxBytes = Number.POSITIVE_INFINITY } = list
  const isLarge = (value: unknown) => jsonBytes(value) > maxBytes
  const differing = Object.keys(after)
    .filter((field) => field !== updated && !isDeepStrictEqual(before?.[field], after[field]))
    .map((field) => ({ field, before: before?.[field], after: after[field] }))
    .map((one) => (isLarge(one.before) || isLarge(one.after) ? { field: one.field } : one))
  const expected =
    resource === changedId ? differing : [{ ...changes[0], before: changedId, after: null }]
  if (!isDeepStrictEqual(changes, type.endsWith('.updated') ? expected : []))
    throw broken(
      request,
      `emitted ${type} with the changes ${show(changes)}, not ${show(expected)}`,
    )
}

/** The time must be that of the request. The data must have the values of the record's fields with
 *  the same names. */
function findProblem(
  { contract }: Run,
  { event }: ListedEvent,
  sentAt: number,
  record: JsonObject,
): string | undefined {
  const { time, data } = findEventList(contract) ?? {}
  const text = time && readPointer(event, time)
  const at = Date.parse(String(text))
  // An invalid time is NaN.
  const isDuringRequest = at > sentAt - CLOCK_TOLERANCE_MS && at < Date.now() + CLOCK_TOLERANCE_MS
  if (time && !isDuringRequest) return `time is ${show(text)}, not that of the request`
  const fields = Object(data && readPointer(event, data)) as JsonObject
  const name = Object.keys(fields).find(
    (field) => field in record && !isDeepStrictEqual(fields[field], record[field]),
  )
  return name && `data has ${name}: ${show(fields[name])}, but the record has ${show(record[name])}`
}

export interface Call {
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
  const id = idIn(path)
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  const dependents =
    operation.method === 'delete' && kind !== undefined
      ? await run.records.addDependents(kind, id)
      : []
  return { request: await prepareRequest(run, operation, { body }, path), path, id, dependents }
}

/** Sends the request. Returns the new events, without the types in `emittedBySystem`, which no
 *  request causes. Without a list of events, returns none. Throws if the events have another time, or
 *  other data than the record: `deleted`, or that of the response. */
export async function sendAndListen(
  run: Run,
  operation: Operation,
  request: Request,
  deleted?: JsonObject,
): Promise<{ response: ReceivedResponse; emitted: ListedEvent[] }> {
  const oldIds = new Set((await readEvents(run)).map(({ id }) => id))
  const sentAt = Date.now()
  const response = await run.send(operation, request)
  const { emittedBySystem } = run.contract
  const emitted = (await readEvents(run)).filter(
    ({ id, type }) => !oldIds.has(id) && !emittedBySystem.includes(type),
  )
  const record = deleted ?? ((response.json ?? {}) as JsonObject)
  for (const event of emitted) {
    const problem = findProblem(run, event, sentAt, event.resource === record.id ? record : {})
    if (problem !== undefined) throw broken(request, `emitted ${event.type}, whose ${problem}`)
  }
  return { response, emitted }
}

/** A page of the newest events, the newest first. */
export async function readEvents(run: Run, page = 1): Promise<ListedEvent[]> {
  const list = findEventList(run.contract)
  const words = readListWords(run.contract)
  if (list === undefined || words === undefined) return []
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

export function assertEmitted(
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
