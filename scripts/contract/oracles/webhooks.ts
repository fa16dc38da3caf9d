/** Oracle: each webhook of an account gets the events that it must get, and commands on webhooks and
 *  deliveries do what they promise. Needs an account whose webhooks the suite controls. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readRetrySeconds } from '../../words/deliveries.ts'
import { type EventList, findEventList } from '../../words/events.ts'
import { readPointer } from '../../words/read.ts'
import { shorten, show } from '../contract-broken.ts'
import { type Attempt, type Receiver, startContractReceiver } from '../deliveries/receiver.ts'
import {
  type ControlledWebhook,
  type DeliveryProgress,
  type WebhookAccount,
  webhookAccountOf,
} from '../deliveries/webhook-account.ts'
import { readUntil } from '../poll.ts'
import { type CrudKind, findItemOperation, listCrudKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, prepareRequest, type Run } from '../run.ts'
import { TIMER_TOLERANCE_MS } from './attempts.ts'
import {
  assertAttempt,
  broken,
  changeOf,
  isAttemptOf,
  isOfSystem,
  payloadOf,
  SETTLING_MS,
  TIMEOUT_MS,
} from './deliveries.ts'
import { type ListedEvent, readEvents, sendAndListen } from './events.ts'

/** The result of an attempt is recorded at most this long after the response. */
const RECORDING_MS = 20_000

/** The webhooks, by the last part of their URLs. */
const NAMES = ['updates', 'ordered', 'failing', 'stopped', 'deleted'] as const
type Name = (typeof NAMES)[number]

interface Setting {
  run: Run
  account: WebhookAccount
  list: EventList
  kind: CrudKind
  receiver: Receiver
  /** The statuses of the receiver by path, 204 by default. */
  statuses: Map<string, number>
}

interface WebhookTest extends Setting {
  webhooks: Record<Name, ControlledWebhook>
  /** The last request that emitted events, for failures. */
  request: Request
  /** The events of a record that was created, updated and deleted, in this order. */
  events: ListedEvent[]
  /** The creation of the record. */
  event: ListedEvent
}

export async function* webhookChecks(run: Run): AsyncGenerator<Check> {
  const account = webhookAccountOf(run)
  const list = findEventList(run.contract)
  const kind = listCrudKinds(run.contract).find(({ create, update, remove }) =>
    [create, update, remove].every(({ emits }) => emits.length > 0),
  )
  if (!list || !kind) return
  await using receiver = await startContractReceiver()
  const statuses = new Map(['/failing', '/stopped'].map((path) => [path, 500]))
  const test = await startWebhooks({ run, account, list, kind, receiver, statuses })
  const check = (what: string, assert: (test: WebhookTest) => Promise<void>): Check => ({
    what,
    perform: () => assert(test),
  })
  // Must begin before the second attempt is due.
  yield check('the whole schedule', assertSchedule)
  yield check('the event types of webhooks', assertSubscriptions)
  yield check('retries and resends', assertManualAttempts)
  yield check('a rotated secret', assertRotated)
  yield check('a test event', assertTestEvent)
  yield check('a webhook that is disabled, then enabled', assertDisabled)
  yield check('the order of the events of a record', assertOrder)
  yield check('the deliveries of an event', assertDeliveryIds)
}

/** Creates webhooks, changes a record, and disables a webhook, so that the checks wait together. */
async function startWebhooks(setting: Setting): Promise<WebhookTest> {
  const { run, account, kind, receiver, statuses } = setting
  receiver.respondWith((attempt) => {
    const { path } = attempt
    const ofPath = receiver.attempts.filter((each) => each.path === path && !isOfSystem(run, each))
    const isRefused = path === '/ordered' && ofPath.length === 1 && ofPath[0] === attempt
    return { status: isRefused ? 500 : (statuses.get(path) ?? 204) }
  })
  // No webhook exists yet, so no delivery has the events of this record.
  await change(setting, kind.create)
  const webhooks = {} as Record<Name, ControlledWebhook>
  for (const name of NAMES)
    webhooks[name] = await account.createWebhook({
      url: `${receiver.url}${name}`,
      event_types: typesOf(setting, name) ?? ['*'],
      ordering: name === 'ordered' ? 'by_resource' : 'none',
    })
  await webhooks.deleted[Symbol.asyncDispose]()
  const { path, request, emitted } = await change(setting, kind.create)
  const [event] = emitted as [ListedEvent]
  const test = { ...setting, webhooks, request, event, events: emitted }
  const id = await findDeliveryId(test, 'stopped')
  await waitForProgress(test, id, { state: 'retrying' })
  await webhooks.stopped.disable()
  const updated = await change(setting, kind.update, path)
  const removed = await change(setting, kind.remove, path)
  const events = [...emitted, ...updated.emitted, ...removed.emitted]
  return { ...test, request: removed.request, events }
}

/** The event types of a webhook. Undefined: all. */
function typesOf({ kind }: Setting, name: string): string[] | undefined {
  if (name === 'updates') return kind.update.emits
  return name === 'failing' ? kind.create.emits : undefined
}

/** Creates a record, or changes the one with this path. Each `index` gives another text. Returns the
 *  path of the record, and the events, the oldest first. */
async function change({ run }: Setting, operation: Operation, path?: string, index = 1) {
  const body = operation.method === 'patch' ? changeOf(run, operation, index) : undefined
  const request = await prepareRequest(run, operation, { body }, path)
  const { response, emitted } = await sendAndListen(run, operation, request)
  const { id } = (response.json ?? {}) as JsonObject
  if (emitted.length === 0) throw broken(request, 'the request emitted no event')
  return { request, path: path ?? `${request.path}/${id}`, emitted: emitted.toReversed() }
}

/** Returns a function that says whether an attempt at the webhook delivers the event. */
function isAttemptAt({ run }: WebhookTest, name: Name, event: ListedEvent) {
  const isOf = isAttemptOf(run, event)
  return (attempt: Attempt): boolean => attempt.path === `/${name}` && isOf(attempt)
}

/** Throws unless there are exactly `count` attempts. */
async function waitForAttempts(
  test: WebhookTest,
  name: Name,
  event: ListedEvent,
  count = 1,
): Promise<Attempt[]> {
  const isOf = isAttemptAt(test, name, event)
  const attempts = await test.receiver.waitFor(isOf, count, TIMEOUT_MS)
  if (attempts.length !== count)
    throw broken(
      test.request,
      `the webhook "${name}" got ${attempts.length} attempts of ${event.type} instead of ${count}`,
    )
  return attempts
}

/** The ID of the delivery of the first event. */
async function findDeliveryId(test: WebhookTest, name: Name): Promise<string> {
  const isOf = isAttemptAt(test, name, test.event)
  const [attempt] = await test.receiver.waitFor(isOf, 1, TIMEOUT_MS)
  if (attempt === undefined) throw broken(test.request, `the webhook "${name}" got no attempt`)
  return String(payloadOf(attempt)?.id)
}

/** Throws unless the delivery soon has this progress, and at least so many attempts. */
async function waitForProgress(
  { account, request }: WebhookTest,
  id: string,
  expected: Partial<DeliveryProgress>,
  minAttempts = 0,
): Promise<DeliveryProgress> {
  const isReached = (found: DeliveryProgress): boolean =>
    found.attempt_count >= minAttempts && isDeepStrictEqual({ ...found, ...expected }, found)
  const progress = await readUntil(() => account.findDelivery(id), isReached, RECORDING_MS)
  if (isReached(progress)) return progress
  const { state, attempt_count, next_attempt_at } = progress
  const found = { state, attempt_count, next_attempt_at }
  throw broken(request, `the delivery has ${show(found)} instead of ${show(expected)}`)
}

async function assertSubscriptions(test: WebhookTest): Promise<void> {
  const { run, kind, receiver, request, events } = test
  for (const event of events)
    if (kind.update.emits.includes(event.type)) await waitForAttempts(test, 'updates', event)
  await delay(SETTLING_MS)
  const other = receiver.attempts.find((attempt) => {
    const name = attempt.path.slice(1)
    if (isOfSystem(run, attempt)) return false
    const event = events.find((one) => isAttemptOf(run, one)(attempt))
    if (event === undefined || name === 'deleted') return true
    const types = name === 'stopped' ? kind.create.emits : typesOf(test, name)
    return types?.includes(event.type) === false
  })
  if (other)
    throw broken(request, `the webhook "${other.path.slice(1)}" got ${shorten(other.body)}`)
}

async function assertDeliveryIds({ run, list, request, receiver, events }: WebhookTest) {
  const get = findItemOperation(run.contract, 'get', list.operation.path)
  if (get === undefined || list.deliveries === undefined) return
  for (const event of events) {
    const { json } = await run.send(get, newRequest(run, get, `${list.operation.path}/${event.id}`))
    const ids = readPointer(json, list.deliveries)
    const attempts = receiver.attempts.filter(isAttemptOf(run, event))
    const expected = [...new Set(attempts.map((attempt) => payloadOf(attempt)?.id))].sort()
    if (!Array.isArray(ids) || !isDeepStrictEqual(ids.toSorted(), expected))
      throw broken(request, `${event.type} has the deliveries ${show(ids)}, not ${show(expected)}`)
  }
}

/** Does not wait for the attempts: makes each due at once, after a look at its scheduled time. */
async function assertSchedule(test: WebhookTest): Promise<void> {
  const { run, account, request, event, receiver } = test
  const id = await findDeliveryId(test, 'failing')
  const delays = readRetrySeconds(run.contract)
  // On a busy machine, the second attempt can be made before the first look.
  for (let attempts = 0; attempts < delays.length; ) {
    const progress = await waitForProgress(test, id, { state: 'retrying' }, attempts + 1)
    attempts = progress.attempt_count
    const seconds = delays[attempts - 1] ?? 0
    const last = receiver.attempts.filter(isAttemptAt(test, 'failing', event))[attempts - 1]
    const waitMs = Date.parse(progress.next_attempt_at ?? '') - Number(last?.receivedAt)
    if (waitMs < seconds * 1000 - TIMER_TOLERANCE_MS || waitMs > seconds * 1000 + RECORDING_MS)
      throw broken(
        request,
        `attempt ${attempts + 1} is scheduled after ${waitMs} ms instead of ${seconds} s`,
      )
    await account.retry(id)
  }
  const attempts = delays.length + 1
  await waitForProgress(test, id, {
    state: 'failed',
    attempt_count: attempts,
    next_attempt_at: null,
  })
}

/** A retry is for a failed delivery and changes its state. A resend is for a delivered one and
 *  changes nothing. Neither is repeated. */
const MANUAL_ATTEMPTS = [
  { command: 'retry', status: 500, state: 'failed' },
  { command: 'retry', status: 204, state: 'delivered' },
  { command: 'resend', status: 500, state: 'delivered' },
  { command: 'resend', status: 204, state: 'delivered' },
] as const

async function assertManualAttempts(test: WebhookTest): Promise<void> {
  const { account, statuses, request, event } = test
  const id = await findDeliveryId(test, 'failing')
  let attempts = readRetrySeconds(test.run.contract).length + 1
  for (const { command, status, state } of MANUAL_ATTEMPTS) {
    statuses.set('/failing', status)
    await account[command](id)
    attempts += 1
    await waitForProgress(test, id, { state, attempt_count: attempts, next_attempt_at: null })
  }
  await assertRejected(request, 'a delivered delivery was retried', account.retry(id))
  const bodies = (await waitForAttempts(test, 'failing', event, attempts)).map(({ body }) => body)
  if (new Set(bodies).size > 1) throw broken(request, 'two attempts have different bodies')
}

async function assertRejected(request: Request, message: string, command: Promise<unknown>) {
  const isRejected = await command.then(
    () => false,
    () => true,
  )
  if (!isRejected) throw broken(request, message)
}

/** The old secret signs until the new one is activated. */
async function assertRotated(test: WebhookTest): Promise<void> {
  const { run, kind } = test
  const webhook = test.webhooks.updates
  const { path } = await change(test, kind.create)
  const assertSigned = async (index: number): Promise<void> => {
    const { request, emitted } = await change(test, kind.update, path, index)
    for (const event of emitted)
      for (const attempt of await waitForAttempts(test, 'updates', event))
        assertAttempt(run, request, { secret: webhook.secret, event, attempt })
  }
  const next = await webhook.prepareSecret()
  await assertSigned(1)
  await webhook.activateSecret()
  webhook.secret = next
  await assertSigned(2)
}

/** A test event goes to one webhook, subscribed or not, once. It is not stored, so its ID is that of
 *  its delivery. */
async function assertTestEvent(test: WebhookTest): Promise<void> {
  const { run, receiver, webhooks, statuses, request } = test
  const { sendTest, secret } = webhooks.updates
  const known = new Set(receiver.attempts)
  const isNew = (each: Attempt) => each.path === '/updates' && !known.has(each)
  statuses.set('/updates', 500)
  await sendTest()
  const [attempt] = await receiver.waitFor(isNew, 1, TIMEOUT_MS)
  if (attempt === undefined) throw broken(request, 'a test event was not delivered')
  const { id, event_type: type } = payloadOf(attempt) ?? {}
  const event = { id: String(id), type: String(type), resource: '', event: {} }
  assertAttempt(run, request, { secret, event, attempt })
  if (!isAttemptOf(run, event)(attempt))
    throw broken(request, 'the event ID of a test event is not that of its delivery')
  await waitForProgress(test, event.id, {
    state: 'failed',
    attempt_count: 1,
    next_attempt_at: null,
  })
  statuses.delete('/updates')
  if (receiver.attempts.filter((each) => payloadOf(each)?.event_type === type).length > 1)
    throw broken(request, 'a test event did not go to one webhook alone')
  if ((await readEvents(run)).some((each) => each.id === id || each.type === type))
    throw broken(request, 'a test event is in the list of events')
}

/** A delivery of a disabled webhook fails. A webhook that is enabled again gets later events only, and
 *  earlier ones by a retry. */
async function assertDisabled(test: WebhookTest): Promise<void> {
  const { run, account, kind, receiver, statuses, webhooks, event } = test
  const { retry } = account
  const [seconds = 0] = readRetrySeconds(run.contract)
  const isAtWebhook = (attempt: Attempt) => attempt.path === '/stopped' && !isOfSystem(run, attempt)
  const id = await findDeliveryId(test, 'stopped')
  const stopped = { state: 'failed', next_attempt_at: null } as const
  const { attempt_count: attempts } = await waitForProgress(test, id, stopped)
  await assertRejected(test.request, 'a delivery of a disabled webhook was retried', retry(id))
  const lastAt = receiver.attempts.findLast(isAtWebhook)?.receivedAt ?? 0
  await delay(Math.max(0, lastAt + seconds * 1000 + SETTLING_MS - Date.now()))
  await waitForAttempts(test, 'stopped', event, attempts)
  const before = receiver.attempts.filter(isAtWebhook).length
  statuses.delete('/stopped')
  await webhooks.stopped.enable()
  const { request, emitted } = await change(test, kind.create)
  for (const later of emitted) await waitForAttempts(test, 'stopped', later)
  const count = receiver.attempts.filter(isAtWebhook).length - before
  if (count !== emitted.length)
    throw broken(request, `a webhook that was enabled again got ${count} attempts`)
  await retry(id)
  await waitForProgress(test, id, {
    state: 'delivered',
    attempt_count: attempts + 1,
    next_attempt_at: null,
  })
}

/** The first attempt fails, and all later events wait until the second one was accepted. */
async function assertOrder(test: WebhookTest): Promise<void> {
  const { run, receiver, request, events } = test
  const typeOf = (attempt: Attempt) => events.find((one) => isAttemptOf(run, one)(attempt))?.type
  const isOf = (attempt: Attempt) => attempt.path === '/ordered' && typeOf(attempt) !== undefined
  const expected = [test.event, ...events].map(({ type }) => type)
  const [seconds = 0] = readRetrySeconds(run.contract)
  const timeoutMs = seconds * 1000 + TIMEOUT_MS
  const types = (await receiver.waitFor(isOf, expected.length, timeoutMs)).map(typeOf)
  if (!isDeepStrictEqual(types, expected))
    throw broken(request, `the attempts are ${show(types)} instead of ${show(expected)}`)
}
