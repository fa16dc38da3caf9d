/** Oracle: a repeated Idempotency-Key has one effect, and an error does not use it up. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import { assertStatus, ContractBroken } from '../checks.ts'
import type { Request } from '../request.ts'
import {
  type Check,
  findPath,
  newRequest,
  type Run,
  toOperationId,
  validBody,
} from '../test-run.ts'

const REPLAYED = 'idempotent-replayed'
const SIMULTANEOUS = 4

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('idempotency', request, message)
}

/** A valid request with an unused key. */
async function newKeyedRequest(run: Run, operation: Operation): Promise<Request> {
  return newRequest(run, operation, await findPath(run, operation), {
    headers: { 'Idempotency-Key': randomUUID() },
    body: await validBody(run, operation),
  })
}

export function* idempotencyChecks(run: Run, operation: Operation): Generator<Check> {
  yield { what: 'the same request again', perform: () => assertRepeated(run, operation) }
  yield {
    what: 'the key of a refused request',
    perform: () => assertFreeAfterError(run, operation),
  }
  yield { what: 'the same request at once', perform: () => assertOneEffect(run, operation) }
}

async function assertRepeated(run: Run, operation: Operation): Promise<void> {
  const id = toOperationId(operation)
  const request = await newKeyedRequest(run, operation)
  const [first, again] = [await run.send(id, request), await run.send(id, request)]
  if (again.status !== first.status || again.text !== first.text)
    throw broken(
      request,
      `the same request returned ${again.status} and another body the second time`,
    )
  if (again.headers.get(REPLAYED) !== 'true')
    throw broken(request, 'the replayed response has no Idempotent-Replayed: true')
  if (first.headers.get(REPLAYED) !== null)
    throw broken(request, 'the first response has Idempotent-Replayed')
  for (const name of ['location', 'etag', 'content-type'])
    if (again.headers.get(name) !== first.headers.get(name))
      throw broken(request, `the replayed response has another ${name}`)
  const other = { ...request, body: `${request.body} ` }
  const { status } = await run.send(id, other)
  assertStatus(other, status, {
    check: 'idempotency',
    expected: 422,
    what: 'another request with a used Idempotency-Key',
  })
}

async function assertFreeAfterError(run: Run, operation: Operation): Promise<void> {
  const id = toOperationId(operation)
  const request = await newKeyedRequest(run, operation)
  const refused = await run.send(id, { ...request, body: '{"not_a_field":1}' })
  if (refused.status === operation.success.status) return
  const { status } = await run.send(id, request)
  assertStatus(request, status, {
    check: 'idempotency',
    expected: operation.success.status,
    what: 'the key of a refused request',
  })
}

/** Each request gets the same response, or 409 while the first is in progress. */
async function assertOneEffect(run: Run, operation: Operation): Promise<void> {
  const request = await newKeyedRequest(run, operation)
  const responses = await Promise.all(
    Array.from({ length: SIMULTANEOUS }, () => run.send(toOperationId(operation), request)),
  )
  const done = responses.filter(({ status }) => status === operation.success.status)
  const bodies = new Set(done.map(({ text }) => text))
  if (bodies.size !== 1)
    throw broken(request, `${SIMULTANEOUS} simultaneous requests created ${bodies.size} records`)
  const other = responses.find(({ status }) => status !== operation.success.status)
  if (other && other.status !== 409)
    throw broken(request, `a simultaneous request returned ${other.status} instead of 409`)
}
