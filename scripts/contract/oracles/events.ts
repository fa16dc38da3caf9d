/** Oracle: an operation emits the declared events once, about the right records, and no others. */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Operation } from '../../model/operations.ts'
import { type EventList, findEventList, isEmitted, readEmitConditions } from '../../words/events.ts'
import { findIdempotencyKey, type IdempotencyKey } from '../../words/idempotency.ts'
import { readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords } from '../../words/records.ts'
import { UNKNOWN_ID } from '../access-checks.ts'
import { ContractBroken } from '../checks.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  buildRequest,
  type Check,
  type Input,
  newRequest,
  type Run,
  validBody,
  withId,
} from '../test-run.ts'
import { limits } from '../value-limits.ts'

type Json = Record<string, unknown>

/** More events than one operation emits. */
const EVENT_PAGE_SIZE = 50

/** An event of the list. */
export interface ListedEvent {
  id: string
  type: string
  /** The ID of the record that it is about. */
  resource: string
  event: Json
}

/** Calls the operation with each input until all its events have occurred. */
export async function* eventChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const list = findEventList(run.contract)
  if (list === undefined) return
  const schema = run.records.inlineSchema(operation)
  const inputs =
    schema === null ? [undefined] : limits(schema).map(({ value }) => value as Input['body'])
  for (const body of inputs) {
    if (run.coverage.hasSeenEvents(operation)) break
    yield { what: 'its events', perform: () => assertEmits(run, operation, list, body) }
  }
  yield {
    what: 'no event for a refused request',
    perform: () => assertSilent(run, operation, list, refusedRequest),
  }
  if (operation.path.includes('{'))
    yield {
      what: 'no event for an unknown record',
      perform: () =>
        assertSilent(run, operation, list, async (path) => {
          const body = await validBody(run, operation)
          return newRequest(run, operation, withId(operation, path, UNKNOWN_ID), { body })
        }),
    }
  const { restrictedKey } = run.target
  if (restrictedKey !== undefined && operation.responses.some(({ status }) => status === 403))
    yield {
      what: 'no event for a request without the permission',
      perform: () =>
        assertSilent(run, operation, list, async (path) => ({
          ...(await buildRequest(run, operation, { body: await validBody(run, operation) }, path)),
          key: restrictedKey,
        })),
    }
  if (operation.method === 'patch')
    yield {
      what: 'no event for an update that changes nothing',
      perform: () =>
        assertSilent(run, operation, list, async (path) =>
          buildRequest(run, operation, { body: {} }, path),
        ),
    }
  const key = findIdempotencyKey(operation)
  if (key)
    yield {
      what: 'no event for a repeated request',
      perform: () => assertRepeatSilent(run, operation, list, key),
    }
}

/** The newest events, the newest first. */
export async function readEvents(run: Run, list: EventList): Promise<ListedEvent[]> {
  const words = readListWords(run.contract)
  if (words === undefined) return []
  const maxSize = readMaxPageSize(run.contract, list.operation, words)
  const size = Math.min(EVENT_PAGE_SIZE, maxSize)
  const query = { [words.sort.parameter]: list.newest_first, [words.page.size]: size }
  const request = newRequest(run, list.operation, list.operation.path, { query })
  const { json } = await run.plain(request)
  const events = (readPointer(json, words.items) ?? []) as Json[]
  return events.map((event) => ({
    id: String(readPointer(event, list.id)),
    type: String(readPointer(event, list.type)),
    resource: String(readPointer(event, list.resource)),
    event,
  }))
}

/** The events that `work` causes, without those that the service itself emits at any time. */
export async function listenDuring(
  run: Run,
  list: EventList,
  work: () => Promise<void>,
): Promise<ListedEvent[]> {
  const known = new Set((await readEvents(run, list)).map(({ id }) => id))
  await work()
  const { emittedBySystem } = run.contract
  return (await readEvents(run, list)).filter(
    ({ id, type }) => !known.has(id) && !emittedBySystem.includes(type),
  )
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('emitted_events', request, message)
}

async function assertEmits(
  run: Run,
  operation: Operation,
  list: EventList,
  body: Input['body'],
): Promise<void> {
  const call = await prepareCall(run, operation, body)
  const before = (await run.plain(call.read)).json as Json | undefined
  let response: ReceivedResponse | undefined
  const emitted = await listenDuring(run, list, async () => {
    response = await run.send(operation.id, call.request)
  })
  if (response === undefined) return
  const id = operation.id
  for (const { type } of emitted)
    if (run.options.ids.includes(id) && operation.emits.includes(type))
      run.coverage.sawEvent(id, type)
  const after = (response.json ?? {}) as Json
  const isDone = response.status === operation.success.status
  const own = String(after.id ?? call.id)
  const expected = isDone ? listExpected(run, operation, { before, after, own, ...call }) : []
  assertSame(call.request, emitted, expected)
}

export interface Call {
  request: Request
  /** A GET of the record. */
  read: Request
  /** The ID of the record that the path names. */
  id: string
  /** IDs of the records that refer to it. */
  dependents: string[]
}

export async function prepareCall(
  run: Run,
  operation: Operation,
  body: Input['body'],
): Promise<Call> {
  const { records, target } = run
  const path = await records.newPath(operation)
  const id = path.split('/').at(-1) ?? ''
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  const dependents =
    operation.method === 'delete' && kind !== undefined ? await records.addDependents(kind, id) : []
  const request = await buildRequest(run, operation, { body }, path)
  return { request, read: { method: 'GET', path, headers: {}, key: target.key }, id, dependents }
}

interface Change {
  before: Json | undefined
  after: Json
  /** The ID of the changed record. */
  own: string
  dependents: string[]
}

/** Types and IDs of records. The first declared type is about the record itself, and so are those
 *  with the same resource. The others are about the records that refer to it. */
export function listExpected(run: Run, operation: Operation, change: Change): [string, string][] {
  const { events } = run.contract
  const resourceOf = (type: string) => events.find((event) => event.type === type)?.resourceType
  const conditions = readEmitConditions(operation)
  const isUpdate = operation.method === 'patch'
  if (isUpdate && !hasChanged(run, operation, change)) return []
  return operation.emits.flatMap((type): [string, string][] => {
    if (resourceOf(type) !== resourceOf(operation.emits[0] ?? ''))
      return change.dependents.map((id) => [type, id])
    return isEmitted(conditions[type], change.before ?? {}, change.after)
      ? [[type, change.own]]
      : []
  })
}

function hasChanged(
  { contract }: Run,
  operation: Operation,
  { before = {}, after }: Change,
): boolean {
  const { updated } = readRecordWords(contract, operation)
  return Object.keys(after).some(
    (name) => name !== updated && !isDeepStrictEqual(before[name], after[name]),
  )
}

function assertSame(request: Request, emitted: ListedEvent[], expected: [string, string][]): void {
  const left = emitted.map(({ type, resource }) => `${type} of ${resource}`)
  for (const [type, id] of expected) {
    const index = left.indexOf(`${type} of ${id}`)
    if (index === -1)
      throw broken(request, `did not emit ${type} of ${id}, but ${left.join(', ') || 'nothing'}`)
    left.splice(index, 1)
  }
  if (left.length > 0)
    throw broken(request, `emitted ${left.join(', ')}, which it does not declare for this`)
}

async function assertSilent(
  run: Run,
  operation: Operation,
  list: EventList,
  build: (path: string, run: Run, operation: Operation) => Promise<Request>,
): Promise<void> {
  const path = await run.records.newPath(operation)
  const request = await build(path, run, operation)
  const emitted = await listenDuring(run, list, async () => {
    await run.send(operation.id, request)
  })
  assertSame(request, emitted, [])
}

/** The body has an unknown field, or the request an unknown parameter. */
async function refusedRequest(path: string, run: Run, operation: Operation): Promise<Request> {
  const request = await buildRequest(run, operation, {}, path)
  return operation.body === null
    ? { ...request, path: `${path}?not_a_parameter=1` }
    : { ...request, body: JSON.stringify({ ...JSON.parse(request.body ?? '{}'), not_a_field: 1 }) }
}

async function assertRepeatSilent(
  run: Run,
  operation: Operation,
  list: EventList,
  { name }: IdempotencyKey,
): Promise<void> {
  const body = (await run.records.bodyFor(operation)) as Input['body']
  const request = await buildRequest(run, operation, { body })
  const keyed = {
    ...request,
    headers: { ...request.headers, [name]: randomUUID() },
  }
  await run.send(operation.id, keyed)
  const emitted = await listenDuring(run, list, async () => {
    await run.send(operation.id, keyed)
  })
  assertSame(keyed, emitted, [])
}
