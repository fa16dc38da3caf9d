/** Oracle: a receiver gets each event once, as asyncapi.yaml says. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { mapValues } from '../../model/schema.ts'
import { type DeliveryHeader, listDeliveryHeaders, signDelivery } from '../../words/deliveries.ts'
import { type EventList, findEventList, readEmitConditions } from '../../words/events.ts'
import { requestSchema } from '../../words/records.ts'
import { formatFirstError } from '../conformance.ts'
import { ContractBroken, shorten, show } from '../contract-broken.ts'
import { type Attempt, type Receiver, startContractReceiver } from '../receiver.ts'
import { findItemOperation } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run, waitUntilFinished } from '../run.ts'
import { newComputedBody } from './computed.ts'
import {
  CLOCK_TOLERANCE_MS,
  type ListedEvent,
  prepareCall,
  readEvents,
  sendAndListen,
} from './events.ts'

/** The longest that an attempt may be late. */
export const TIMEOUT_MS = 20_000
/** The time in which a second delivery of an event would arrive. */
export const SETTLING_MS = 300

export function* deliveryChecks(run: Run, operation: Operation): Generator<Check> {
  const list = findEventList(run.contract)
  if (list !== undefined)
    yield {
      what: 'the deliveries of its events',
      perform: () => assertDelivered(run, operation, list),
    }
}

/** Whether the request caused the attempt. Always true if deliveries have no trace header. */
function hasTrace({ contract }: Run, { headers }: Attempt, traceId: string): boolean {
  const name = listDeliveryHeaders(contract).find((header) => header['x-trace-of'])?.name
  return name === undefined || (headers[name] ?? '').includes(traceId)
}

/** A request with a trace of its own. */
async function prepareTraced(
  run: Run,
  operation: Operation,
): Promise<{ request: Request; traceId: string }> {
  const computed = await newComputedBody(run, operation)
  const request = computed
    ? newRequest(run, operation, operation.path, { body: computed })
    : (await prepareCall(run, operation, causeOf(run, operation))).request
  const traceId = randomBytes(16).toString('hex')
  const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`
  return { request: { ...request, headers: { ...request.headers, traceparent } }, traceId }
}

/** A body of an update that also causes the events of `x-emits-when`. Undefined for other
 *  operations. */
function causeOf(run: Run, operation: Operation): JsonObject | undefined {
  if (operation.method !== 'patch') return undefined
  const conditions = Object.values(readEmitConditions(operation))
  const values = conditions.map(({ becomes }) => mapValues(becomes ?? {}, ([value]) => value))
  return Object.assign({}, changeOf(run, operation), ...values)
}

/** The events of `x-emitted-by-system` about the record at the path. Waits until the service has
 *  finished the record. */
async function readSystemEvents(run: Run, list: EventList, create: Operation, path: string) {
  const get = findItemOperation(run.contract, 'get', create.path)
  if (get === undefined || path === '') return []
  await waitUntilFinished(run, get, path)
  const { emittedBySystem } = run.contract
  return (await readEvents(run, list)).filter(
    ({ type, resource }) => path.endsWith(`/${resource}`) && emittedBySystem.includes(type),
  )
}

/** A body that changes a text field, so that the update emits an event. Undefined if the operation
 *  has no text field. */
export function changeOf({ contract }: Run, operation: Operation): JsonObject | undefined {
  const { properties = {} } = requestSchema(contract, operation)
  const [name, schema] =
    Object.entries(properties).find(([, { type, format }]) => type === 'string' && !format) ?? []
  return name === undefined ? undefined : { [name]: schema?.enum?.at(-1) ?? 'changed' }
}

/** Creates a webhook, calls the operation, and tests the deliveries. */
async function assertDelivered(run: Run, operation: Operation, list: EventList): Promise<void> {
  const { createWebhook, receiver: shared } = run.target
  if (createWebhook === undefined) return
  const { request, traceId } = await prepareTraced(run, operation)
  await using own = shared === undefined ? await startContractReceiver() : undefined
  const receiver = (shared ?? own) as Receiver
  await using webhook = await createWebhook(receiver)
  const { secret } = webhook
  const { response, emitted } = await sendAndListen(run, list, operation, request)
  const path = response.headers.get('location') ?? ''
  const events = [...emitted, ...(await readSystemEvents(run, list, operation, path))]
  const headers = listDeliveryHeaders(run.contract)
  const isOf =
    ({ id }: ListedEvent) =>
    (attempt: Attempt) =>
      eventIdOf(headers, attempt) === id
  for (const event of events) await receiver.waitFor(isOf(event), 1, TIMEOUT_MS)
  await delay(SETTLING_MS)
  for (const event of events) {
    const attempts = receiver.attempts.filter(isOf(event))
    if (attempts.length !== 1)
      throw broken(request, `the event ${event.type} was delivered ${attempts.length} times`)
    const test = { headers, secret, event, traceId: emitted.includes(event) ? traceId : undefined }
    for (const attempt of attempts) assertAttempt(run, request, { ...test, attempt })
    run.tested('openapi.yaml', 'x-emitted-by-system', event.type)
  }
  const { emittedBySystem } = run.contract
  const other = receiver.attempts.find(
    (attempt) =>
      hasTrace(run, attempt, traceId) &&
      !emitted.some((event) => isOf(event)(attempt)) &&
      !emittedBySystem.includes(String(payloadOf(attempt)?.event_type)),
  )
  if (other)
    throw broken(request, `the delivery ${shorten(other.body)} is of no event of the request`)
}

export function eventIdOf(headers: DeliveryHeader[], attempt: Attempt): string | undefined {
  const name = headers.find((header) => header['x-equals'] === 'event.id')?.name
  return name && attempt.headers[name]
}

export function payloadOf({ body }: Attempt): JsonObject | undefined {
  return parseJson(body) as JsonObject | undefined
}

/** An attempt, and what it must agree with. */
interface AttemptTest {
  headers: DeliveryHeader[]
  secret: string
  /** The trace of the request. Undefined: the request had none. */
  traceId?: string
  event: ListedEvent
  attempt: Attempt
}

export function assertAttempt(run: Run, request: Request, test: AttemptTest): void {
  const { attempt, event } = test
  const problem =
    findPayloadProblem(run, event, attempt) ??
    test.headers
      .map((header) => findHeaderProblem(header, test))
      .find((found) => found !== undefined)
  if (problem !== undefined) throw broken(request, `the delivery of ${event.type}: ${problem}`)
  run.testedFields(event.type, 'event', payloadOf(attempt))
  run.testedFields(event.type, 'delivery', attempt.headers)
  for (const { name, ...words } of test.headers)
    for (const word of Object.keys(words)) run.tested(event.type, word, name)
}

function findPayloadProblem(
  { validators }: Run,
  { type, event }: ListedEvent,
  attempt: Attempt,
): string | undefined {
  if (attempt.method !== 'POST') return `the method is ${attempt.method}`
  const payload = payloadOf(attempt)
  if (payload === undefined) return `the body is not JSON: ${shorten(attempt.body)}`
  const validator = validators.events[type]
  if (validator === undefined) return 'asyncapi.yaml does not have this event type'
  if (!validator.payload(payload)) return `the body ${formatFirstError(validator.payload)}`
  if (!validator.headers(attempt.headers))
    return `the headers ${formatFirstError(validator.headers)}`
  // `id` differs: the body has the ID of the delivery, the list of events the ID of the event.
  const name = Object.keys(payload).find(
    (field) => field !== 'id' && field in event && !isDeepStrictEqual(payload[field], event[field]),
  )
  return name && `${name} is ${show(payload[name])} instead of ${show(event[name])}`
}

function findHeaderProblem(
  header: DeliveryHeader,
  { attempt, secret, traceId }: AttemptTest,
): string | undefined {
  const { name, 'x-equals': equals, 'x-signature': signature } = header
  const value = attempt.headers[name] ?? ''
  if (equals === 'payload.id' && value !== payloadOf(attempt)?.id)
    return `${name} is not the id of the body`
  if (signature && value !== signDelivery(signature, secret, attempt))
    return `${name} is not the signature of the body`
  if (header['x-trace-of'] && traceId && !value.includes(`-${traceId}-`))
    return `${name} does not have the trace ID of the request`
  // NaN if the value is no number.
  const differenceMs = Math.abs(Number(value) * 1000 - attempt.receivedAt)
  if (header['x-time-of'] && !(differenceMs <= CLOCK_TOLERANCE_MS))
    return `${name} is not the time of the attempt`
  return undefined
}

export function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('deliveries', request, message)
}
