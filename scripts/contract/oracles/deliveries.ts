/** Oracle: a webhook gets each event once, as asyncapi.yaml says, and again if it does not respond
 *  with 2xx. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Operation } from '../../model/operations.ts'
import {
  type DeliveryHeader,
  listDeliveryHeaders,
  readRetrySeconds,
  signDelivery,
} from '../../words/deliveries.ts'
import { type EventList, findEventList } from '../../words/events.ts'
import { ContractBroken, shorten } from '../checks.ts'
import { type Attempt, type Receiver, startContractReceiver } from '../receiver.ts'
import type { Request } from '../request.ts'
import { type Check, type Run, validBody } from '../test-run.ts'
import { type ListedEvent, listenDuring, prepareCall } from './events.ts'

const TIMEOUT_MS = 20_000
/** A second delivery of an event would arrive in this time. */
const SETTLING_MS = 300
const CLOCK_TOLERANCE_MS = 60_000
/** A timer may end this much too early. */
const TIMER_TOLERANCE_MS = 50

interface Test {
  /** The receiver responds with 500 to the first attempt. */
  isRefusing: boolean
  assert(run: Run, operation: Operation, caused: Caused, receiver: Receiver): Promise<void>
}

const DELIVERED: Test = { isRefusing: false, assert: assertDelivered }
const RETRIED: Test = { isRefusing: true, assert: assertRetried }

export function* deliveryChecks(run: Run, operation: Operation): Generator<Check> {
  const list = findEventList(run.contract)
  if (list === undefined) return
  yield {
    what: 'the deliveries of its events',
    perform: () => withDeliveries(run, operation, list, DELIVERED),
  }
  // One operation is enough: the schedule does not depend on it.
  const [first] = run.contract.operations.filter(({ emits }) => emits.length > 0)
  if (first === operation && readRetrySeconds(run.contract).length > 0)
    yield {
      what: 'another attempt after 500',
      perform: () => withDeliveries(run, operation, list, RETRIED),
    }
}

/** Creates a webhook, calls the operation, and tests the deliveries. */
async function withDeliveries(
  run: Run,
  operation: Operation,
  list: EventList,
  test: Test,
): Promise<void> {
  const { createWebhook, receiver: shared } = run.target
  if (createWebhook === undefined) return
  const { request, traceId } = await prepareTraced(run, operation)
  await using own = shared === undefined ? await startContractReceiver() : undefined
  const receiver = (shared ?? own) as Receiver
  await using webhook = await createWebhook(receiver)
  if (test.isRefusing) receiver.refuseFirst((attempt) => hasTrace(run, attempt, traceId))
  const emitted = await listenDuring(run, list, async () => {
    await run.send(operation.id, request)
  })
  await test.assert(run, operation, { request, traceId, emitted, secret: webhook.secret }, receiver)
}

/** Whether the request caused the attempt. */
function hasTrace({ contract }: Run, { headers }: Attempt, traceId: string): boolean {
  const name = listDeliveryHeaders(contract).find((header) => header['x-trace-of'])?.name
  return name === undefined || (headers[name] ?? '').includes(traceId)
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('deliveries', request, message)
}

interface Caused {
  request: Request
  traceId: string
  emitted: ListedEvent[]
  /** The signing secret of the webhook. */
  secret: string
}

/** A request with a trace of its own. */
async function prepareTraced(
  run: Run,
  operation: Operation,
): Promise<{ request: Request; traceId: string }> {
  const body = await validBody(run, operation)
  const { request } = await prepareCall(run, operation, await changing(run, operation, body))
  const traceId = randomBytes(16).toString('hex')
  const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`
  return { request: { ...request, headers: { ...request.headers, traceparent } }, traceId }
}

/** An update needs a field to change. */
async function changing(
  { records }: Run,
  operation: Operation,
  body: Record<string, unknown> | undefined,
): Promise<Record<string, unknown> | undefined> {
  if (operation.method !== 'patch') return body
  const { properties = {} } = records.inlineSchema(operation) ?? {}
  const text = Object.entries(properties).find(
    ([, { type, format }]) => type === 'string' && !format,
  )
  const [name, schema] = text ?? []
  return name === undefined ? undefined : { [name]: schema?.enum?.at(-1) ?? 'changed' }
}

async function assertDelivered(
  run: Run,
  _: Operation,
  { request, traceId, emitted, secret }: Caused,
  receiver: Receiver,
): Promise<void> {
  const headers = listDeliveryHeaders(run.contract)
  const isOf =
    ({ id }: ListedEvent) =>
    (attempt: Attempt) =>
      eventIdOf(headers, attempt) === id
  for (const event of emitted) await receiver.waitFor(isOf(event), 1, TIMEOUT_MS)
  await delay(SETTLING_MS)
  for (const event of emitted) {
    const attempts = receiver.attempts.filter(isOf(event))
    if (attempts.length !== 1)
      throw broken(request, `the event ${event.type} was delivered ${attempts.length} times`)
    for (const attempt of attempts)
      assertAttempt(run, request, { headers, secret, traceId, event, attempt })
  }
  const { emittedBySystem } = run.contract
  const other = receiver.attempts.find(
    (attempt) =>
      hasTrace(run, attempt, traceId) &&
      !emitted.some((event) => isOf(event)(attempt)) &&
      !emittedBySystem.includes(String(payloadOf(attempt)?.event_type)),
  )
  if (other) throw broken(request, `the delivery ${shorten(other.body)} is not of its events`)
}

function eventIdOf(headers: DeliveryHeader[], attempt: Attempt): string | undefined {
  const name = headers.find((header) => header['x-equals'] === 'event.id')?.name
  return name && attempt.headers[name]
}

function payloadOf({ body }: Attempt): Record<string, unknown> | undefined {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

interface Expected {
  headers: DeliveryHeader[]
  secret: string
  traceId: string
  event: ListedEvent
  attempt: Attempt
}

function assertAttempt(run: Run, request: Request, expected: Expected): void {
  const { attempt, event } = expected
  const problem =
    findPayloadProblem(run, event, attempt) ??
    expected.headers
      .map((header) => findHeaderProblem(header, expected))
      .find((found) => found !== undefined)
  if (problem !== undefined) throw broken(request, `the delivery of ${event.type}: ${problem}`)
}

function findPayloadProblem(
  { validators }: Run,
  { type, event }: ListedEvent,
  attempt: Attempt,
): string | undefined {
  if (attempt.method !== 'POST') return `the method is ${attempt.method}`
  const payload = payloadOf(attempt)
  if (payload === undefined) return `the body is not JSON: ${shorten(attempt.body)}`
  const own = validators.events[type]
  if (own === undefined) return 'asyncapi.yaml does not have this event type'
  if (!own.payload(payload)) return `the body ${firstError(own.payload)}`
  if (!own.headers(attempt.headers)) return `the headers ${firstError(own.headers)}`
  // The ID of the delivery is not that of the event.
  const name = Object.keys(payload).find(
    (field) => field !== 'id' && field in event && !isDeepStrictEqual(payload[field], event[field]),
  )
  return (
    name && `${name} is ${JSON.stringify(payload[name])} instead of ${JSON.stringify(event[name])}`
  )
}

function firstError({ errors }: { errors?: { instancePath: string; message?: string }[] | null }) {
  return `at ${errors?.[0]?.instancePath || '/'} ${errors?.[0]?.message}`
}

function findHeaderProblem(header: DeliveryHeader, expected: Expected): string | undefined {
  const { attempt, secret, traceId } = expected
  const { name, 'x-equals': equals, 'x-signature': signature } = header
  const value = attempt.headers[name] ?? ''
  if (equals === 'payload.id' && value !== payloadOf(attempt)?.id)
    return `${name} is not the id of the body`
  if (signature && value !== signDelivery(signature, secret, attempt))
    return `${name} is not the signature of the body`
  if (header['x-trace-of'] && !value.includes(`-${traceId}-`))
    return `${name} does not have the trace ID of the request`
  if (
    header['x-time-of'] &&
    Math.abs(Number(value) * 1000 - attempt.receivedAt) > CLOCK_TOLERANCE_MS
  )
    return `${name} is not the time of the attempt`
  return undefined
}

async function assertRetried(
  run: Run,
  { id }: Operation,
  { request, traceId, emitted, secret }: Caused,
  receiver: Receiver,
): Promise<void> {
  const [seconds = 0] = readRetrySeconds(run.contract)
  const [event] = emitted
  if (event === undefined) throw broken(request, `${id} emitted no event`)
  const headers = listDeliveryHeaders(run.contract)
  const isOf = (attempt: Attempt) => eventIdOf(headers, attempt) === event.id
  await receiver.waitFor(isOf, 2, seconds * 1000 + TIMEOUT_MS)
  const [first, second, ...more] = receiver.attempts.filter(isOf)
  if (!first || !second) throw broken(request, 'no second attempt followed a response of 500')
  if (more.length > 0) throw broken(request, 'an attempt followed a successful one')
  for (const attempt of [first, second])
    assertAttempt(run, request, { headers, secret, traceId, event, attempt })
  if (first.body !== second.body) throw broken(request, 'the second attempt has another body')
  const waited = second.receivedAt - first.receivedAt
  if (waited < seconds * 1000 - TIMER_TOLERANCE_MS)
    throw broken(request, `the second attempt came after ${waited} ms instead of ${seconds} s`)
}
