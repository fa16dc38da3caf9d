/** Oracle: a delivery is attempted on the schedule of asyncapi.yaml, until the receiver accepts it. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Operation } from '../../model/operations.ts'
import {
  listDeliveryHeaders,
  readRetrySeconds,
  readTimeoutSeconds,
} from '../../words/deliveries.ts'
import { type EventList, findEventList } from '../../words/events.ts'
import { readPointer } from '../../words/read.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import {
  type Attempt,
  ENDLESS_BODY,
  type PlannedResponse,
  type Receiver,
  startContractReceiver,
} from '../receiver.ts'
import { findItemOperation } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import {
  assertAttempt,
  changeOf,
  eventIdOf,
  payloadOf,
  SETTLING_MS,
  TIMEOUT_MS,
} from './deliveries.ts'
import { type ListedEvent, prepareCall, readEvents } from './events.ts'

/** Standard Webhooks 1.0.0, "Deliverability and reliability": 2xx is success, all others are
 *  failures. */
const ACCEPTED = [200, 201, 202, 299]
const REFUSED = [300, 400, 401, 404, 410, 500, 599]
const REDIRECTS = [301, 302, 303, 307, 308]
const REDIRECTED_PATH = '/redirected'
/** A slow receiver responds after this part of the time-out. */
const SLOW_SHARE = 0.6
/** A late receiver responds this long after the time-out. */
const LATE_MS = 1_000
/** More than a sender has to read. */
const LONG_BODY = 'x'.repeat(256 * 1024)
/** The delivery log has the beginning of the body. */
const MAX_LOGGED_BYTES = 16 * 1024
/** The longest time between the arrival of an attempt and the response to the request that caused
 *  it. */
const MAX_HOLD_MS = 2_000
/** A timer may end this much too early. */
export const TIMER_TOLERANCE_MS = 50

interface Scenario {
  what: string
  /** The response to each attempt but the last, which gets 204. If there is one attempt, it gets
   *  this response. */
  response: PlannedResponse
  /** The number of attempts during the test. */
  attempts: number
}

/** A scenario whose request was sent. */
interface StartedScenario extends Scenario {
  request: Request
  trace: TraceTest
  /** Undefined: the request emitted no event. */
  event: ListedEvent | undefined
  /** Epoch milliseconds. */
  startedAt: number
}

/** Starts all scenarios at once, so that they wait together. */
export async function* attemptChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { createWebhook, receiver: shared } = run.target
  const list = findEventList(run.contract)
  if (!list || !createWebhook || readRetrySeconds(run.contract).length === 0) return
  await using own = shared === undefined ? await startContractReceiver() : undefined
  const receiver = (shared ?? own) as Receiver
  await using webhook = await createWebhook(receiver)
  const scenarios = await startScenarios(run, operation, list, receiver)
  const test = { list, receiver, secret: webhook.secret }
  for (const scenario of scenarios)
    yield { what: scenario.what, perform: () => assertAttempts(run, scenario, test) }
}

function listScenarios(timeoutMs: number | undefined): Scenario[] {
  const failing = (what: string, response: PlannedResponse): Scenario => ({
    what: `another attempt after ${what}`,
    response,
    attempts: 2,
  })
  const accepted = (what: string, response: PlannedResponse): Scenario => ({
    what: `one attempt, which gets ${what}`,
    response,
    attempts: 1,
  })
  const slow =
    timeoutMs === undefined
      ? []
      : [
          failing('the time-out', { status: 204, delayMs: timeoutMs + LATE_MS }),
          accepted('a slow response', { status: 204, delayMs: SLOW_SHARE * timeoutMs }),
          accepted('a body that does not end', { status: 200, isEndless: true }),
        ]
  return [
    ...slow,
    { what: 'three attempts, two of them with 500', response: { status: 500 }, attempts: 3 },
    ...ACCEPTED.map((status) => accepted(String(status), { status })),
    accepted('a long body', { status: 200, body: LONG_BODY }),
    ...REFUSED.map((status) => failing(String(status), { status })),
    ...REDIRECTS.map((status) =>
      failing(`a redirect with ${status}`, { status, headers: { Location: REDIRECTED_PATH } }),
    ),
    ...[
      [429, '1'],
      [503, '3600'],
    ].map(([status, seconds]) =>
      failing(`${status} with Retry-After: ${seconds}`, {
        status: Number(status),
        headers: { 'Retry-After': String(seconds) },
      }),
    ),
    failing('a closed connection', { status: 0 }),
  ]
}

/** The traces that requests send, and the trace that all attempts must then have. */
interface TraceTest {
  sent?: string
  expected: RegExp
}

/** W3C Trace Context §3.2: a higher version is read like version 00, and an invalid header is
 *  ignored. */
function newTraceTest(index: number): TraceTest {
  const [id, parent] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  const tests = [
    { sent: `00-${id}-${parent}-01`, expected: new RegExp(`^00-${id}-(?!${parent}).*-01$`) },
    { sent: `00-${id}-${parent}-02`, expected: new RegExp(`^00-${id}-(?!${parent}).*-00$`) },
    { sent: `01-${id}-${parent}-01-more`, expected: new RegExp(`^00-${id}-.*-01$`) },
    { sent: `00-${id}-${parent}-01-more`, expected: new RegExp(`^00-(?!${id})`) },
    { sent: `ff-${id}-${parent}-01`, expected: new RegExp(`^00-(?!${id})`) },
    { sent: `00-${'0'.repeat(32)}-${parent}-01`, expected: /^00-(?!0{32})/ },
    { expected: /^00-/ },
  ]
  return tests[index % tests.length] as TraceTest
}

/** Sends one request for each scenario. The receiver finds the scenario by the ID of the record. */
async function startScenarios(
  run: Run,
  operation: Operation,
  list: EventList,
  receiver: Receiver,
): Promise<StartedScenario[]> {
  const plans = new Map<string, PromiseWithResolvers<Scenario>>()
  const planOf = (id: string): PromiseWithResolvers<Scenario> => {
    const plan = plans.get(id) ?? Promise.withResolvers()
    plans.set(id, plan)
    return plan
  }
  const counts = new Map<string, number>()
  receiver.respondWith(async (attempt) => {
    const id = readPointer(payloadOf(attempt), list.resource)
    if (typeof id !== 'string') return { status: 204 }
    const count = (counts.get(attempt.body) ?? 0) + 1
    counts.set(attempt.body, count)
    const scenario = await Promise.race([
      planOf(id).promise,
      delay(MAX_HOLD_MS, undefined, { ref: false }),
    ])
    const isLast = scenario === undefined || (count >= scenario.attempts && count > 1)
    return isLast ? { status: 204 } : scenario.response
  })
  const started: (StartedScenario & { id: string })[] = []
  // A tunnel to a shared receiver may hold back a body without an end, or repeat a request whose
  // connection was closed.
  const isPossible = ({ response }: Scenario) =>
    run.target.receiver === undefined || (response.status !== 0 && !response.isEndless)
  for (const [index, scenario] of listScenarios(timeoutMsOf(run)).filter(isPossible).entries()) {
    const body = operation.method === 'patch' ? changeOf(run, operation) : undefined
    const call = await prepareCall(run, operation, body)
    const trace = newTraceTest(index)
    const headers = { ...call.request.headers, ...(trace.sent && { traceparent: trace.sent }) }
    const request = { ...call.request, headers }
    const { json } = await run.send(operation, request)
    const id = String((json as { id?: unknown } | undefined)?.id ?? call.id)
    planOf(id).resolve(scenario)
    started.push({ ...scenario, request, trace, id, event: undefined, startedAt: Date.now() })
  }
  const events = await readEvents(run, list)
  const isOf = (id: string) => (event: ListedEvent) =>
    event.resource === id && event.type === operation.emits[0]
  return started.map((scenario) => ({ ...scenario, event: events.find(isOf(scenario.id)) }))
}

/** Undefined if the contract does not say when an attempt times out. */
function timeoutMsOf({ contract, target }: Run): number | undefined {
  const seconds = readTimeoutSeconds(contract)
  return seconds === undefined ? undefined : (target.webhookTimeoutMs ?? seconds * 1000)
}

async function assertAttempts(
  run: Run,
  { request, event, trace, response, attempts: count, startedAt }: StartedScenario,
  { list, receiver, secret }: { list: EventList; receiver: Receiver; secret: string },
): Promise<void> {
  if (event === undefined) throw broken(request, 'the request emitted no event')
  const headers = listDeliveryHeaders(run.contract)
  const isOf = (attempt: Attempt) => eventIdOf(headers, attempt) === event.id
  const timeoutMs = timeoutMsOf(run) ?? 0
  const durationMs = response.isEndless ? timeoutMs : Math.min(response.delayMs ?? 0, timeoutMs)
  const delaysMs = readRetrySeconds(run.contract).map((seconds) => durationMs + seconds * 1000)
  const waitMs = delaysMs.slice(0, count - 1).reduce((sum, ms) => sum + ms, 0)
  const deadline = startedAt + waitMs + TIMEOUT_MS
  await receiver.waitFor(isOf, count, Math.max(0, deadline - Date.now()))
  // A refused attempt would be repeated after this time, and a duplicate would arrive within it.
  const lastAt = receiver.attempts.findLast(isOf)?.receivedAt ?? 0
  const nextMs = lastAt + (count === 1 ? (delaysMs[0] ?? 0) : 0) + SETTLING_MS - Date.now()
  await delay(Math.max(0, nextMs))
  const attempts = receiver.attempts.filter(isOf)
  if (attempts.length !== count)
    throw broken(request, `there were ${attempts.length} attempts instead of ${count}`)
  for (const attempt of attempts) assertAttempt(run, request, { headers, secret, event, attempt })
  assertRepeated(run, request, attempts)
  assertTraces(run, request, attempts, trace)
  if (receiver.attempts.some(({ path }) => path.endsWith(REDIRECTED_PATH)))
    throw broken(request, 'a delivery followed a redirect')
  if (attempts.length > 1) run.tested('asyncapi.yaml', 'x-retry-seconds')
  if (durationMs > 0) run.tested('asyncapi.yaml', 'x-timeout-seconds')
  const [attempt] = attempts as [Attempt]
  await assertDeliveryListed(run, list, request, { event, attempt })
  const isSent = response.status !== 0 && (response.delayMs ?? 0) <= timeoutMs
  await assertLogged(run, request, attempt, isSent ? response : undefined)
}

/** The delivery log has what the first attempt got. Undefined: no response. */
async function assertLogged(
  { target }: Run,
  request: Request,
  attempt: Attempt,
  response: PlannedResponse | undefined,
): Promise<void> {
  if (target.webhookAccount === undefined) return
  const id = String(payloadOf(attempt)?.id)
  const [logged] = await target.webhookAccount.listAttempts(id)
  const status = response?.status ?? null
  if (logged?.number !== 1 || logged.status !== status)
    throw broken(
      request,
      `the log of attempt 1 has ${show(logged?.status)} instead of ${show(status)}`,
    )
  if (response === undefined) return
  for (const [name, value] of Object.entries(response.headers ?? {}))
    if (logged.responseHeaders?.[name.toLowerCase()] !== value)
      throw broken(request, `the log does not have the header ${name} of the response`)
  const body = (response.isEndless ? ENDLESS_BODY : response.body) ?? ''
  if (logged.responseBody !== body.slice(0, MAX_LOGGED_BYTES))
    throw broken(request, `the log has another body: ${show(logged.responseBody)}`)
}

/** All attempts have the same bytes, and none comes too early, by its arrival and by its header. */
function assertRepeated({ contract }: Run, request: Request, attempts: Attempt[]): void {
  const delays = readRetrySeconds(contract)
  const time = listDeliveryHeaders(contract).find((header) => header['x-time-of'])?.name ?? ''
  for (const [index, attempt] of attempts.entries()) {
    const previous = attempts[index - 1]
    const seconds = delays[index - 1]
    if (previous === undefined || seconds === undefined) continue
    if (attempt.body !== previous.body)
      throw broken(request, `attempt ${index + 1} has another body`)
    // The previous attempt ended some time after its arrival.
    const waitedMs = attempt.receivedAt - previous.receivedAt
    if (waitedMs < seconds * 1000 - TIMER_TOLERANCE_MS)
      throw broken(
        request,
        `attempt ${index + 1} came after ${waitedMs} ms instead of ${seconds} s`,
      )
    const passed = Number(attempt.headers[time]) - Number(previous.headers[time])
    // Each time is rounded down to a second.
    if (passed < seconds - 1)
      throw broken(request, `${time} of attempt ${index + 1} is ${passed} s after the one before`)
  }
}

/** All attempts have one trace, each with a parent ID of its own. */
function assertTraces(
  { contract }: Run,
  request: Request,
  attempts: Attempt[],
  { expected }: TraceTest,
): void {
  const header = listDeliveryHeaders(contract).find((one) => one['x-trace-of'])
  if (header === undefined) return
  const values = attempts.map(({ headers }) => headers[header.name] ?? '')
  const wrong = values.find((value) => !expected.test(value))
  if (wrong !== undefined)
    throw broken(request, `${header.name} is ${wrong}, which does not continue that of the request`)
  if (new Set(values.map((value) => value.split('-')[1])).size > 1)
    throw broken(request, 'two attempts have different traces')
  if (new Set(values).size < values.length)
    throw broken(request, 'two attempts have the same parent ID')
}

/** The event names the delivery once. */
async function assertDeliveryListed(
  run: Run,
  list: EventList,
  request: Request,
  { event, attempt }: { event: ListedEvent; attempt: Attempt },
): Promise<void> {
  const get = findItemOperation(run.contract, 'get', list.operation.path)
  if (get === undefined || list.deliveries === undefined) return
  const read = newRequest(run, get, `${list.operation.path}/${event.id}`)
  const { json } = await run.send(get, read)
  const ids = readPointer(json, list.deliveries)
  const id = payloadOf(attempt)?.id
  if (!Array.isArray(ids) || ids.filter((each) => each === id).length !== 1)
    throw broken(request, `the event has the deliveries ${show(ids)}, not once ${show(id)}`)
}

export function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('deliveries', request, message)
}
