/** Oracle: a receiver gets each event once, as asyncapi.yaml says. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { mapValues } from '../../model/schema.ts'
import { type DeliveryHeader, listDeliveryHeaders, signDelivery } from '../../words/deliveries.ts'
import { findEventList, readEmitConditions } from '../../words/events.ts'
import { readImportWords } from '../../words/imports.ts'
import { requestSchema } from '../../words/records.ts'
import { formatFirstError } from '../conformance.ts'
import { failuresOf, shorten, show } from '../contract-broken.ts'
import { type Attempt, type Receiver, startContractReceiver } from '../deliveries/receiver.ts'
import { webhookAccountOf } from '../deliveries/webhook-account.ts'
import { findItemOperation } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run, waitUntilFinished } from '../run.ts'
import { variant } from '../values/valid-values.ts'
import { newComputedBody } from './computed.ts'
import {
  type Call,
  CLOCK_TOLERANCE_MS,
  type ListedEvent,
  prepareCall,
  readEvents,
  sendAndListen,
} from './events.ts'
import { failingImport } from './imports.ts'

export const broken = failuresOf('deliveries')

/** The longest that an attempt may be late. */
export const TIMEOUT_MS = 20_000
/** The time in which a second delivery of an event would arrive. */
export const SETTLING_MS = 300

export function* deliveryChecks(run: Run, operation: Operation): Generator<Check> {
  yield { what: 'the deliveries of its events', perform: () => assertDelivered(run, operation) }
  if (readImportWords(operation) !== undefined)
    yield {
      what: 'the deliveries of the events of an import that fails',
      perform: () => assertDelivered(run, operation, failingImport(run, operation)),
    }
}

/** A request that emits events, with this header. */
export async function prepareTraced(
  run: Run,
  operation: Operation,
  traceparent?: string,
): Promise<Call> {
  const call = await prepareCall(run, operation, causeOf(run, operation))
  const body = await newComputedBody(run, operation)
  const request = body ? newRequest(run, operation, call.path, { body }) : call.request
  const headers = { ...request.headers, ...(traceparent && { traceparent }) }
  return { ...call, request: { ...request, headers } }
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
 *  finished the record. Also gets each event alone, which must conform. */
async function readSystemEvents(run: Run, create: Operation, path: string) {
  const get = findItemOperation(run.contract, 'get', create.path)
  if (get === undefined || path === '') return []
  await waitUntilFinished(run, get, path)
  const { emittedBySystem } = run.contract
  const events = (await readEvents(run)).filter(
    ({ type, resource }) => path.endsWith(`/${resource}`) && emittedBySystem.includes(type),
  )
  const list = findEventList(run.contract)?.operation.path ?? ''
  const getEvent = findItemOperation(run.contract, 'get', list)
  if (getEvent === undefined) return events
  for (const { id } of events) await run.send(getEvent, newRequest(run, getEvent, `${list}/${id}`))
  return events
}

/** A body that changes a text field, so that the update emits an event. The text differs for each
 *  `index` from 1 on. Undefined if the operation has no text field. */
export function changeOf(
  { contract }: Run,
  operation: Operation,
  index = 1,
): JsonObject | undefined {
  const { properties = {} } = requestSchema(contract, operation)
  const [name, schema] =
    Object.entries(properties).find(([, { type, format }]) => type === 'string' && !format) ?? []
  if (name === undefined || schema === undefined) return undefined
  return { [name]: schema.enum?.at(-index) ?? variant(schema, index) }
}

/** A new webhook of the account with the receiver of the run or one of its own. Undefined if the
 *  target has no webhooks. */
export async function openWebhook(run: Run) {
  const { connect, receiver: shared } = run.target
  if (connect === undefined) return undefined
  await using cleanup = new AsyncDisposableStack()
  const receiver = shared ?? cleanup.use(await startContractReceiver())
  const { createWebhook } = webhookAccountOf(run)
  const create = (url: string) => createWebhook({ url, event_types: ['*'] })
  const { secret } = cleanup.use(await connect(receiver, create))
  const moved = cleanup.move()
  return { receiver, secret, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

/** Creates a webhook, calls the operation, and tests the deliveries. */
async function assertDelivered(run: Run, operation: Operation, own?: Request): Promise<void> {
  const traceId = randomBytes(16).toString('hex')
  const traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`
  const request = own
    ? { ...own, headers: { ...own.headers, traceparent } }
    : (await prepareTraced(run, operation, traceparent)).request
  await using webhook = await openWebhook(run)
  if (webhook === undefined) return
  const { receiver, secret } = webhook
  const { response, emitted } = await sendAndListen(run, operation, request)
  const path = response.headers.get('location') ?? ''
  const events = [...emitted, ...(await readSystemEvents(run, operation, path))]
  for (const { event, attempt } of await assertDeliveredOnce(run, request, events, receiver)) {
    const ownTrace = emitted.includes(event) ? traceId : undefined
    assertAttempt(run, request, { secret, traceId: ownTrace, event, attempt })
    run.tested('openapi.yaml', 'x-emitted-by-system', event.type)
  }
  // A shared receiver also gets the events of other requests.
  if (run.target.receiver !== undefined) return
  const other = receiver.attempts.find(
    (attempt) =>
      !emitted.some((event) => isAttemptOf(run, event)(attempt)) && !isOfSystem(run, attempt),
  )
  if (other)
    throw broken(request, `the delivery ${shorten(other.body)} is of no event of the request`)
}

/** Throws unless the receiver gets each event once. Returns the attempts. */
export async function assertDeliveredOnce(
  run: Run,
  request: Request,
  events: ListedEvent[],
  receiver: Receiver,
): Promise<{ event: ListedEvent; attempt: Attempt }[]> {
  for (const event of events) await receiver.waitFor(isAttemptOf(run, event), 1, TIMEOUT_MS)
  await delay(SETTLING_MS)
  return events.map((event) => {
    const [attempt, ...more] = receiver.attempts.filter(isAttemptOf(run, event))
    if (attempt !== undefined && more.length === 0) return { event, attempt }
    const count = attempt === undefined ? 0 : more.length + 1
    throw broken(request, `${event.type} of ${event.resource} was delivered ${count} times`)
  })
}

/** Returns a function that says whether an attempt delivers the event. */
export function isAttemptOf({ contract }: Run, { id }: ListedEvent): (attempt: Attempt) => boolean {
  const header = listDeliveryHeaders(contract).find((one) => one['x-equals'] === 'event.id')
  return ({ headers }) => header !== undefined && headers[header.name] === id
}

/** Whether the event can come at any time, for example when an export is finished. */
export function isOfSystem({ contract }: Run, attempt: Attempt): boolean {
  return contract.emittedBySystem.includes(String(payloadOf(attempt)?.event_type))
}

export function payloadOf({ body }: Attempt): JsonObject | undefined {
  return parseJson(body) as JsonObject | undefined
}

/** An attempt, and what it must agree with. */
interface AttemptTest {
  secret: string
  /** The trace of the request. Undefined: the request had none. */
  traceId?: string
  event: ListedEvent
  attempt: Attempt
}

export function assertAttempt(run: Run, request: Request, test: AttemptTest): void {
  const { attempt, event } = test
  const headers = listDeliveryHeaders(run.contract)
  const problem =
    findPayloadProblem(run, event, attempt) ??
    headers.map((header) => findHeaderProblem(header, test)).find((found) => found !== undefined)
  if (problem !== undefined) throw broken(request, `the delivery of ${event.type}: ${problem}`)
  run.testedFields(event.type, 'event', payloadOf(attempt))
  run.testedFields(event.type, 'delivery', attempt.headers)
  for (const { name, ...words } of headers)
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
