/** Oracle: a delivery is attempted on the schedule of asyncapi.yaml, until the receiver accepts it. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import {
  listDeliveryHeaders,
  readRetrySeconds,
  readTimeoutSeconds,
} from '../../words/deliveries.ts'
import { findEventList } from '../../words/events.ts'
import { readPointer } from '../../words/read.ts'
import { show } from '../contract-broken.ts'
import type { Attempt, PlannedResponse, Receiver } from '../deliveries/receiver.ts'
import { type LoggedAttempt, webhookAccountOf } from '../deliveries/webhook-account.ts'
import { readUntil } from '../poll.ts'
import type { Request } from '../request.ts'
import type { Check, Run } from '../run.ts'
import {
  assertAttempt,
  broken,
  isAttemptOf,
  openWebhook,
  payloadOf,
  prepareTraced,
  SETTLING_MS,
  TIMEOUT_MS,
} from './deliveries.ts'
import { type ListedEvent, readEvents } from './events.ts'

/** Standard Webhooks 1.0.0, "Deliverability and reliability": 2xx is success, all others are
 *  failures. */
const ACCEPTED = [200, 201, 202, 299]
const REFUSED = [300, 400, 401, 404, 410, 500, 599]
const REDIRECTS = [301, 302, 303, 307, 308]
const REDIRECTED_PATH = '/redirected'
/** A slow receiver responds after this part of the time-out. */
const SLOW_SHARE = 0.5
/** A late receiver responds this long after the time-out. */
const LATE_MS = 1_000
/** More than a sender has to read. */
const LONG_BODY = 'x'.repeat(256 * 1024)
/** The delivery log has the beginning of the body. */
const MAX_LOGGED_BYTES = 16 * 1024
/** An attempt waits for at most this part of the time-out until the response to its request says which
 *  scenario it belongs to. With SLOW_SHARE, it is less than the whole. */
const HOLD_SHARE = 0.3
const POLL_MS = 10
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
  /** The trace that all attempts must have. */
  trace: RegExp
  /** Whether the request emitted the event. */
  isOwn(event: ListedEvent): boolean
  /** Epoch milliseconds. */
  startedAt: number
}

/** Starts all scenarios at once, so that they wait together. */
export async function* attemptChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const list = findEventList(run.contract)
  if (list === undefined) return
  await using webhook = await openWebhook(run)
  if (webhook === undefined) return
  const { receiver, secret } = webhook
  for (const scenario of await startScenarios(run, operation, receiver, list.resource))
    yield {
      what: `${scenario.attempts} attempts: ${scenario.what}`,
      perform: () => assertAttempts(run, scenario, receiver, secret),
    }
}

function listScenarios(timeoutMs: number): Scenario[] {
  const withStatus = (attempts: number, statuses: number[], headers: Record<string, string> = {}) =>
    statuses.map((status) => {
      const what = [status, ...Object.values(headers)].join(' ')
      return { attempts, what, response: { status, headers } }
    })
  const [lateMs, slowMs] = [timeoutMs + LATE_MS, SLOW_SHARE * timeoutMs]
  return [
    { attempts: 2, what: 'a late response', response: { status: 204, delayMs: lateMs } },
    { attempts: 1, what: 'a slow response', response: { status: 204, delayMs: slowMs } },
    { attempts: 1, what: 'an endless body', response: { status: 200, body: '.', isEndless: true } },
    ...withStatus(3, [500]),
    ...withStatus(1, ACCEPTED),
    { attempts: 1, what: 'a long body', response: { status: 200, body: LONG_BODY } },
    ...withStatus(2, REFUSED),
    ...withStatus(2, REDIRECTS, { Location: REDIRECTED_PATH }),
    ...withStatus(2, [429], { 'Retry-After': '1' }),
    ...withStatus(2, [503], { 'Retry-After': '3600' }),
    { attempts: 2, what: 'a closed connection', response: { status: 0 } },
  ]
}

/** A header `traceparent`, and the trace that all attempts must then have. W3C Trace Context §3.2: a
 *  higher version is read like version 00, and an invalid header is ignored. */
function newTrace(index: number): [sent: string | undefined, expected: RegExp] {
  const [id, parent] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  const traces: [string | undefined, RegExp][] = [
    [`00-${id}-${parent}-01`, new RegExp(`^00-${id}-(?!${parent}).*-01$`)],
    [`00-${id}-${parent}-02`, new RegExp(`^00-${id}-(?!${parent}).*-00$`)],
    [`01-${id}-${parent}-01-more`, new RegExp(`^00-${id}-.*-01$`)],
    [`00-${id}-${parent}-01-more`, new RegExp(`^00-(?!${id})`)],
    [`ff-${id}-${parent}-01`, new RegExp(`^00-(?!${id})`)],
    [`00-${'0'.repeat(32)}-${parent}-01`, /^00-(?!0{32})/],
    [undefined, /^00-/],
  ]
  return traces[index % traces.length] as (typeof traces)[number]
}

/** Sends one request for each scenario. The receiver finds the scenario by the ID of the record, to
 *  which `resource` points. */
async function startScenarios(
  run: Run,
  operation: Operation,
  receiver: Receiver,
  resource: string,
): Promise<StartedScenario[]> {
  const scenarios = new Map<unknown, Scenario>()
  let isStarted = false
  const holdMs = HOLD_SHARE * timeoutMsOf(run)
  receiver.respondWith(async (attempt) => {
    const id = readPointer(payloadOf(attempt), resource)
    while (!scenarios.has(id) && !isStarted && Date.now() < attempt.receivedAt + holdMs)
      await delay(POLL_MS, undefined, { ref: false })
    const { attempts = 0, response = { status: 204 } } = scenarios.get(id) ?? {}
    const count = receiver.attempts.filter(({ body }) => body === attempt.body).length
    return count >= attempts && count > 1 ? { status: 204 } : response
  })
  // A tunnel to a shared receiver may hold back a body without an end, or repeat a request whose
  // connection was closed.
  const isPossible = ({ response }: Scenario) =>
    run.target.receiver === undefined || (response.status !== 0 && !response.isEndless)
  const started: StartedScenario[] = []
  for (const [index, scenario] of listScenarios(timeoutMsOf(run)).filter(isPossible).entries()) {
    const [traceparent, trace] = newTrace(index)
    const { request, ...call } = await prepareTraced(run, operation, traceparent)
    const { json } = await run.send(operation, request)
    const id = String((json as JsonObject | undefined)?.id ?? call.id)
    const isOwn = (event: ListedEvent) => event.resource === id && event.type === operation.emits[0]
    scenarios.set(id, scenario)
    started.push({ ...scenario, request, trace, isOwn, startedAt: Date.now() })
  }
  isStarted = true
  return started
}

/** The time-out of an attempt. */
function timeoutMsOf({ contract, target }: Run): number {
  return target.webhookTimeoutMs ?? Number(readTimeoutSeconds(contract)) * 1000
}

async function assertAttempts(
  run: Run,
  { request, isOwn, trace, response, attempts: count, startedAt }: StartedScenario,
  receiver: Receiver,
  secret: string,
): Promise<void> {
  const event = (await readEvents(run)).find(isOwn)
  if (event === undefined) throw broken(request, 'the request emitted no event')
  const isOf = isAttemptOf(run, event)
  const timeoutMs = timeoutMsOf(run)
  const durationMs = response.isEndless ? timeoutMs : Math.min(response.delayMs ?? 0, timeoutMs)
  const delaysMs = readRetrySeconds(run.contract).map((seconds) => durationMs + seconds * 1000)
  const waitMs = delaysMs.slice(0, count - 1).reduce((sum, ms) => sum + ms, 0)
  const deadline = startedAt + waitMs + TIMEOUT_MS
  const last = (await receiver.waitFor(isOf, count, deadline - Date.now())).at(-1)
  // A refused attempt would be repeated after this time, and a duplicate would arrive within it.
  const nextMs = count === 1 ? (delaysMs[0] ?? 0) : 0
  await delay(Math.max(0, (last?.receivedAt ?? 0) + nextMs + SETTLING_MS - Date.now()))
  const attempts = receiver.attempts.filter(isOf)
  const [first] = attempts
  if (first === undefined || attempts.length !== count)
    throw broken(request, `there were ${attempts.length} attempts instead of ${count}`)
  for (const attempt of attempts) assertAttempt(run, request, { secret, event, attempt })
  assertRepeated(run, request, attempts)
  assertTraces(run, request, attempts, trace)
  if (receiver.attempts.some(({ path }) => path.endsWith(REDIRECTED_PATH)))
    throw broken(request, 'a delivery followed a redirect')
  if (attempts.length > 1) run.tested('asyncapi.yaml', 'x-retry-seconds')
  if (durationMs > 0) run.tested('asyncapi.yaml', 'x-timeout-seconds')
  const isSent = response.status !== 0 && (response.delayMs ?? 0) <= timeoutMs
  const id = String(payloadOf(first)?.id)
  const { attempts: log } = await readUntil(
    () => webhookAccountOf(run).findDelivery(id),
    (delivery) => delivery.attempts.length > 0,
    TIMEOUT_MS,
  )
  assertLogged(request, log[0], isSent ? response : undefined)
}

/** The delivery log has the response to the attempt. Undefined: there was none. */
function assertLogged(
  request: Request,
  logged: LoggedAttempt | undefined,
  response: PlannedResponse | undefined,
): void {
  const { headers = {}, body = '' } = response ?? {}
  const expected = {
    status: response?.status ?? null,
    headers: Object.values(headers),
    body: response ? body.slice(0, MAX_LOGGED_BYTES) : null,
  }
  const found = {
    status: logged?.status,
    headers: Object.keys(headers).map((name) => logged?.response_headers?.[name.toLowerCase()]),
    body: logged?.response_body,
  }
  if (!isDeepStrictEqual(found, expected))
    throw broken(request, `the log has ${show(found)} instead of ${show(expected)}`)
}

/** All attempts have the same bytes, and none comes too early, by its arrival and by its header. */
function assertRepeated({ contract }: Run, request: Request, attempts: Attempt[]): void {
  const time = listDeliveryHeaders(contract).find((header) => header['x-time-of'])?.name ?? ''
  for (const [index, seconds] of readRetrySeconds(contract).entries()) {
    const [previous, attempt] = attempts.slice(index, index + 2)
    if (previous === undefined || attempt === undefined) return
    const what = `attempt ${index + 2}`
    if (attempt.body !== previous.body) throw broken(request, `${what} has another body`)
    // The previous attempt ended some time after its arrival.
    const waitedMs = attempt.receivedAt - previous.receivedAt
    if (waitedMs < seconds * 1000 - TIMER_TOLERANCE_MS)
      throw broken(request, `${what} came after ${waitedMs} ms instead of ${seconds} s`)
    const passed = Number(attempt.headers[time]) - Number(previous.headers[time])
    // Each time is rounded down to a second.
    if (passed < seconds - 1)
      throw broken(request, `${time} of ${what} is ${passed} s after the one before`)
  }
}

/** All attempts have one trace, each with a parent ID of its own. */
function assertTraces(
  { contract }: Run,
  request: Request,
  attempts: Attempt[],
  expected: RegExp,
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
