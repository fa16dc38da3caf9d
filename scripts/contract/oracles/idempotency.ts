/** Oracle: requests with the same idempotency key have one effect, and a refused request leaves its
 *  key free. */
import { randomUUID } from 'node:crypto'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { isObject } from '../../model/source.ts'
import { findIdempotencyKey, type IdempotencyKey } from '../../words/idempotency.ts'
import { asShownLater, listShownOnce } from '../../words/records.ts'
import { assertStatus, failuresOf } from '../contract-broken.ts'
import { readUntil } from '../poll.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, prepareRequest, type Run } from '../run.ts'

const broken = failuresOf('idempotency')

const SIMULTANEOUS_REQUESTS = 4
const MAX_WAIT_MS = 20_000
const POLL_MS = 250
/** A timer may end this much too early. */
const TIMER_TOLERANCE_MS = 50

export function* idempotencyChecks(run: Run, operation: Operation): Generator<Check> {
  const key = findIdempotencyKey(operation)
  if (key === undefined) return
  yield { what: 'the same request again', perform: () => assertRepeated(run, operation, key) }
  yield {
    what: 'the key of a refused request',
    perform: () => assertFreeAfterError(run, operation, key),
  }
  yield {
    what: 'the key of another operation',
    perform: () => assertBoundToOperation(run, operation, key),
  }
  yield { what: 'the same request at once', perform: () => assertOneEffect(run, operation, key) }
}

/** A valid request with an unused key. */
function newKeyedRequest(
  run: Run,
  operation: Operation,
  { name }: IdempotencyKey,
): Promise<Request> {
  return prepareRequest(run, operation, { headers: { [name]: randomUUID() } })
}

async function assertRepeated(run: Run, operation: Operation, key: IdempotencyKey): Promise<void> {
  const request = await newKeyedRequest(run, operation, key)
  // The service may refuse it while it still works on the record. A refused request leaves its key
  // free.
  const first = await readUntil(
    () => run.send(operation, request),
    ({ status }) => status < 300,
    MAX_WAIT_MS,
    POLL_MS,
  )
  const again = await run.send(operation, { ...request, body: spellOtherwise(request.body) })
  if (again.status !== first.status || again.text !== textOfRepeat(run, operation, first))
    throw broken(
      request,
      again.status === first.status
        ? 'the same request returned another body the second time'
        : `the same request returned ${again.status} the second time`,
    )
  assertMarked(run, operation, request, key, { first, again })
  for (const name of ['location', 'etag', 'content-type'])
    if (again.headers.get(name) !== first.headers.get(name))
      throw broken(request, `the replayed response has another ${name}`)
  noteShownOnce(run, operation, first)
  run.tested(operation.id, 'x-idempotency-key', key.name)
  if (request.body === undefined) return
  const other = { ...request, body: withOtherValue(request.body) }
  const { status } = await run.send(operation, other)
  assertStatus(other, status, {
    check: 'idempotency',
    expected: 422,
    what: `another request with a used ${key.name}`,
  })
}

/** The same JSON value in other bytes: with spaces, and the fields in the reverse order. */
function spellOtherwise(body: string | undefined): string | undefined {
  const fields = fieldsOf(body)
  return fields ? JSON.stringify(Object.fromEntries(fields.reverse()), null, 1) : body
}

/** The body with another value of a number or, if it has none, of a text. */
function withOtherValue(body: string): string {
  const fields = fieldsOf(body)
  if (fields === undefined) return `${body} `
  const find = (type: string) => fields.find(([, value]) => typeof value === type)
  const [name, value] = find('number') ?? find('string') ?? ['other', 'value']
  const other = typeof value === 'number' ? value + 1 : `${value}x`
  return JSON.stringify({ ...Object.fromEntries(fields), [name]: other })
}

/** Undefined for a body that is no JSON object. */
function fieldsOf(body: string | undefined): [string, unknown][] | undefined {
  const value = parseJson(body ?? '')
  return isObject(value) ? Object.entries(value) : undefined
}

/** The body of a repeated response. */
function textOfRepeat(
  { contract }: Run,
  operation: Operation,
  { text, json }: ReceivedResponse,
): string {
  if (listShownOnce(contract, operation).length === 0) return text
  return JSON.stringify(asShownLater(contract, operation, (json ?? {}) as object))
}

function noteShownOnce(run: Run, operation: Operation, { json }: ReceivedResponse): void {
  for (const name of listShownOnce(run.contract, operation))
    if ((json as JsonObject)[name] !== null) run.tested(operation.id, 'x-shown-once', name)
}

/** Throws unless only the second response has the header of repeated responses. */
function assertMarked(
  run: Run,
  operation: Operation,
  request: Request,
  { replayed }: IdempotencyKey,
  { first, again }: Record<'first' | 'again', ReceivedResponse>,
): void {
  if (replayed === undefined) return
  if (again.headers.get(replayed) !== 'true')
    throw broken(request, `the replayed response has no ${replayed}: true`)
  if (first.headers.get(replayed) !== null)
    throw broken(request, `the first response has ${replayed}`)
  run.tested(operation.id, 'header idempotent-replayed', replayed)
}

async function assertFreeAfterError(
  run: Run,
  operation: Operation,
  key: IdempotencyKey,
): Promise<void> {
  const request = await newKeyedRequest(run, operation, key)
  const refused = await run.send(operation, { ...request, body: '{"not_a_field":1}' })
  if (refused.status === operation.success.status) return
  const { status } = await run.send(operation, request)
  assertStatus(request, status, {
    check: 'idempotency',
    expected: operation.success.status,
    what: 'the key of a refused request',
  })
}

/** Throws unless other operations refuse the request, although its key and body are the same. */
async function assertBoundToOperation(
  run: Run,
  operation: Operation,
  key: IdempotencyKey,
): Promise<void> {
  const request = await newKeyedRequest(run, operation, key)
  await run.send(operation, request)
  const others = run.contract.operations.filter(
    (other) =>
      other !== operation &&
      findIdempotencyKey(other)?.name === key.name &&
      // A body of another type is refused first.
      (other.body === null) === (operation.body === null),
  )
  for (const other of others) {
    const method = other.method.toUpperCase()
    const path = await run.records.sharedPath(other)
    const probe =
      request.body === undefined
        ? await prepareRequest(run, other, { headers: request.headers }, path)
        : { ...request, method, path }
    const { status } = await run.sendUnchecked(probe)
    const what = `the ${key.name} of ${operation.id}`
    assertStatus(probe, status, { check: 'idempotency', expected: 422, what })
  }
}

/** Throws unless each of several simultaneous requests gets the same response, or 409 while the
 *  first request is in progress. */
async function assertOneEffect(run: Run, operation: Operation, key: IdempotencyKey): Promise<void> {
  const request = await newKeyedRequest(run, operation, key)
  const startedAt = performance.now()
  const responses = await Promise.all(
    Array.from({ length: SIMULTANEOUS_REQUESTS }, () => run.send(operation, request)),
  )
  const tookMs = performance.now() - startedAt
  const { waits_seconds: waitsSeconds } = key
  if (
    waitsSeconds !== undefined &&
    tookMs < waitsSeconds * 1000 - TIMER_TOLERANCE_MS &&
    responses.some(({ status }) => status === 409)
  )
    throw broken(request, `409 came after ${Math.round(tookMs)} ms, before ${waitsSeconds} s`)
  const done = responses.filter(({ status }) => status === operation.success.status)
  const bodies = new Set(done.map((response) => textOfRepeat(run, operation, response)))
  if (bodies.size !== 1)
    throw broken(
      request,
      `${SIMULTANEOUS_REQUESTS} simultaneous requests created ${bodies.size} records`,
    )
  const other = responses.find(
    ({ status }) => status !== operation.success.status && status !== 409,
  )
  if (other) throw broken(request, `a simultaneous request returned ${other.status} instead of 409`)
}
