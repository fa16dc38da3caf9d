/** Oracle: each webhook of an account gets the events that it must get, and commands on webhooks and
 *  deliveries do what they promise. Needs an account whose webhooks the suite controls. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { listDeliveryHeaders, readRetrySeconds } from '../../words/deliveries.ts'
import { type EventList, findEventList } from '../../words/events.ts'
import { readPointer } from '../../words/read.ts'
import { requestSchema } from '../../words/records.ts'
import { shorten, show } from '../contract-broken.ts'
import { type Attempt, type Receiver, startContractReceiver } from '../receiver.ts'
import { type CrudKind, findItemOperation, listCrudKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, prepareRequest, type Run } from '../run.ts'
import { variants } from '../values/valid-values.ts'
import type { ControlledWebhook, DeliveryProgress, WebhookAccount } from '../webhook-account.ts'
import { broken, TIMER_TOLERANCE_MS } from './attempts.ts'
import { assertAttempt, eventIdOf, payloadOf, SETTLING_MS, TIMEOUT_MS } from './deliveries.ts'
import { type ListedEvent, readEvents, sendAndListen } from './events.ts'

const POLL_MS = 10
/** The result of an attempt is recorded at most this long after the response. */
const RECORDING_MS = 20_000

/** The webhooks, by the last part of their URLs. */
const NAMES = [
  'all',
  'updates',
  'ordered',
  'failing',
  'cancelled',
  'stopped',
  'disabled',
  'deleted',
] as const
type Name = (typeof NAMES)[number]

interface WebhookTest {
  run: Run
  account: WebhookAccount
  list: EventList
  kind: CrudKind
  receiver: Receiver
  /** The number of texts that updates have sent: each is another one. */
  texts: { count: number }
  webhooks: Record<Name, ControlledWebhook>
  /** The statuses of the receiver, 204 by default. */
  statuses: Map<string, number>
  /** The last request that emitted events, for failures. */
  request: Request
  /** The events of a record that was created, updated and deleted, in this order. */
  events: ListedEvent[]
}

export async function* webhookChecks(run: Run): AsyncGenerator<Check> {
  const { webhookAccount: account } = run.target
  const list = findEventList(run.contract)
  const kind = listCrudKinds(run.contract).find(({ create, update, remove }) =>
    [create, update, remove].every(({ emits }) => emits.length > 0),
  )
  if (!account || !list || !kind) return
  await using receiver = await startContractReceiver()
  const test = await startWebhooks({ run, account, list, kind, receiver, texts: { count: 0 } })
  yield { what: 'the event types of webhooks', perform: () => assertSubscriptions(test) }
  yield { what: 'the whole schedule', perform: () => assertSchedule(test) }
  yield { what: 'retries and resends', perform: () => assertManualAttempts(test) }
  yield { what: 'a rotated secret', perform: () => assertRotated(test) }
  yield { what: 'a test event', perform: () => assertTestEvent(test) }
  yield { what: 'a webhook that is enabled again', perform: () => assertEnabled(test) }
  yield { what: 'deliveries that were ended', perform: () => assertEnded(test) }
  yield { what: 'the order of the events of a record', perform: () => assertOrder(test) }
  yield { what: 'the deliveries of an event', perform: () => assertDeliveryIds(test) }
}

type Setting = Pick<WebhookTest, 'run' | 'account' | 'list' | 'kind' | 'receiver' | 'texts'>

/** Creates webhooks, changes a record, and ends deliveries, so that the checks wait together. */
async function startWebhooks(setting: Setting): Promise<WebhookTest> {
  const { account, kind, receiver } = setting
  const statuses = new Map<string, number>(
    ['failing', 'cancelled', 'stopped'].map((name) => [`/${name}`, 500]),
  )
  receiver.respondWith(({ path }) => {
    const isFirst = receiver.attempts.filter((each) => each.path === path).length === 1
    if (path === '/ordered' && isFirst) return { status: 500 }
    return { status: statuses.get(path) ?? 204 }
  })
  const [created = ''] = kind.create.emits
  const typesOf = (name: Name): string[] => {
    if (name === 'updates') return kind.update.emits
    return ['all', 'ordered', 'disabled', 'deleted'].includes(name) ? ['*'] : [created]
  }
  // No webhook exists yet, so no delivery has the events of this record.
  await change(setting, kind.create)
  const webhooks = {} as Record<Name, ControlledWebhook>
  for (const name of NAMES)
    webhooks[name] = await account.createWebhook({
      url: `${receiver.url}${name}`,
      eventTypes: typesOf(name),
      ordering: name === 'ordered' ? 'by_resource' : 'none',
    })
  await webhooks.disabled.disable()
  await webhooks.deleted[Symbol.asyncDispose]()
  const first = await change(setting, kind.create)
  const updated = await change(setting, kind.update, first.path)
  const { request, emitted } = await change(setting, kind.remove, first.path)
  const events = [...first.emitted, ...updated.emitted, ...emitted]
  const test = { ...setting, webhooks, statuses, request, events }
  for (const name of ['cancelled', 'stopped'] as const) {
    const id = await findDeliveryId(test, name)
    await waitForProgress(test, id, { state: 'retrying', attempts: 1 })
    if (name === 'cancelled') await account.commands.cancel(id)
    else await webhooks.stopped.disable()
  }
  return test
}

interface Changed {
  request: Request
  /** The path of the record. */
  path: string
  /** The oldest first. */
  emitted: ListedEvent[]
}

/** Creates a record, or changes the one with this path. */
async function change(
  { run, list, texts }: Setting,
  operation: Operation,
  path?: string,
): Promise<Changed> {
  const body = operation.method === 'patch' ? newText(run, operation, texts) : undefined
  const request = await prepareRequest(run, operation, { body }, path)
  const { response, emitted } = await sendAndListen(run, list, operation, request)
  const { id } = (response.json ?? {}) as JsonObject
  if (emitted.length === 0) throw broken(request, 'the request emitted no event')
  return { request, path: path ?? `${request.path}/${id}`, emitted: emitted.toReversed() }
}

/** A body that changes the first field with free text. */
function newText({ contract }: Run, operation: Operation, texts: { count: number }): JsonObject {
  const { properties = {} } = requestSchema(contract, operation)
  const field = Object.entries(properties).find(
    ([, { type, format, enum: options }]) => type === 'string' && !format && !options,
  )
  if (field === undefined) return {}
  texts.count += 1
  return { [field[0]]: variants(field[1], texts.count + 1).at(-1) }
}

/** The attempts at a webhook to deliver an event, in the order of their arrival. */
function attemptsOf({ run, receiver }: WebhookTest, name: Name, event: ListedEvent): Attempt[] {
  const headers = listDeliveryHeaders(run.contract)
  return receiver.attempts.filter(
    (attempt) => attempt.path === `/${name}` && eventIdOf(headers, attempt) === event.id,
  )
}

async function waitForAttempts(
  test: WebhookTest,
  name: Name,
  event: ListedEvent,
  count = 1,
): Promise<Attempt[]> {
  const isOf = (attempt: Attempt) => attemptsOf(test, name, event).includes(attempt)
  await test.receiver.waitFor(isOf, count, TIMEOUT_MS)
  const attempts = attemptsOf(test, name, event)
  if (attempts.length !== count)
    throw broken(
      test.request,
      `the webhook "${name}" got ${attempts.length} attempts of ${event.type} instead of ${count}`,
    )
  return attempts
}

/** The ID of the delivery of the first event. */
async function findDeliveryId(test: WebhookTest, name: Name): Promise<string> {
  const [event] = test.events as [ListedEvent]
  await test.receiver.waitFor(
    (attempt) => attemptsOf(test, name, event).includes(attempt),
    1,
    TIMEOUT_MS,
  )
  const [attempt] = attemptsOf(test, name, event)
  if (attempt === undefined) throw broken(test.request, `the webhook "${name}" got no attempt`)
  return String(payloadOf(attempt)?.id)
}

/** Throws unless the delivery soon has this progress. */
async function waitForProgress(
  { account, request }: WebhookTest,
  id: string,
  expected: Partial<DeliveryProgress>,
): Promise<DeliveryProgress> {
  const deadline = Date.now() + RECORDING_MS
  for (;;) {
    const progress = await account.findDelivery(id)
    const { state, attempts, nextAttemptAt } = progress ?? {}
    const found = { state, attempts, nextAttemptAt }
    if (progress && isDeepStrictEqual({ ...found, ...expected }, found)) return progress
    if (Date.now() > deadline)
      throw broken(request, `the delivery has ${show(found)} instead of ${show(expected)}`)
    await delay(POLL_MS)
  }
}

async function assertSubscriptions(test: WebhookTest): Promise<void> {
  const { run, kind, receiver, webhooks, request, events } = test
  const headers = listDeliveryHeaders(run.contract)
  for (const event of events) {
    const names: Name[] = kind.update.emits.includes(event.type) ? ['all', 'updates'] : ['all']
    for (const name of names)
      for (const attempt of await waitForAttempts(test, name, event))
        assertAttempt(run, request, { headers, secret: webhooks[name].secret, event, attempt })
  }
  await delay(SETTLING_MS)
  const others = receiver.attempts.find(
    (attempt) =>
      ['/disabled', '/deleted'].includes(attempt.path) ||
      !events.some(({ id }) => id === eventIdOf(headers, attempt)) ||
      (attempt.path === '/updates' &&
        !kind.update.emits.includes(String(payloadOf(attempt)?.event_type))),
  )
  if (others)
    throw broken(request, `the webhook "${others.path.slice(1)}" got ${shorten(others.body)}`)
}

async function assertDeliveryIds({ run, list, request, receiver, events }: WebhookTest) {
  const get = findItemOperation(run.contract, 'get', list.operation.path)
  if (get === undefined || list.deliveries === undefined) return
  const headers = listDeliveryHeaders(run.contract)
  for (const event of events) {
    const read = newRequest(run, get, `${list.operation.path}/${event.id}`)
    const { json } = await run.send(get, read)
    const ids = readPointer(json, list.deliveries)
    const received = receiver.attempts
      .filter((attempt) => eventIdOf(headers, attempt) === event.id)
      .map((attempt) => payloadOf(attempt)?.id)
    const expected = [...new Set(received)].sort()
    if (!Array.isArray(ids) || !isDeepStrictEqual(ids.toSorted(), expected))
      throw broken(request, `${event.type} has the deliveries ${show(ids)}, not ${show(expected)}`)
  }
}

/** Does not wait for the attempts: makes each due at once, after a look at its scheduled time. */
async function assertSchedule(test: WebhookTest): Promise<void> {
  const { run, account, request, events } = test
  const [event] = events as [ListedEvent]
  const id = await findDeliveryId(test, 'failing')
  const delays = readRetrySeconds(run.contract)
  for (const [index, seconds] of delays.entries()) {
    const attempts = index + 1
    const { nextAttemptAt } = await waitForProgress(test, id, { state: 'retrying', attempts })
    const { receivedAt = 0 } = attemptsOf(test, 'failing', event).at(-1) ?? {}
    const waitMs = Number(nextAttemptAt) - receivedAt
    if (waitMs < seconds * 1000 - TIMER_TOLERANCE_MS || waitMs > seconds * 1000 + RECORDING_MS)
      throw broken(
        request,
        `attempt ${attempts + 1} is scheduled after ${waitMs} ms instead of ${seconds} s`,
      )
    await account.commands.attemptNow(id)
  }
  const attempts = delays.length + 1
  await waitForProgress(test, id, { state: 'failed', attempts, nextAttemptAt: null })
  const all = await waitForAttempts(test, 'failing', event, attempts)
  if (new Set(all.map(({ body }) => body)).size > 1)
    throw broken(request, 'two attempts have different bodies')
}

/** A retry is for a failed delivery and changes its state. A resend is for a delivered one and
 *  changes nothing. Neither is repeated. */
async function assertManualAttempts(test: WebhookTest): Promise<void> {
  const { run, account, statuses, request } = test
  const { commands } = account
  const id = await findDeliveryId(test, 'failing')
  let attempts = readRetrySeconds(run.contract).length + 1
  await waitForProgress(test, id, { state: 'failed', attempts })
  const perform = async (
    command: 'retry' | 'resend',
    status: number,
    state: DeliveryProgress['state'],
  ): Promise<void> => {
    statuses.set('/failing', status)
    await commands[command](id)
    attempts += 1
    await waitForProgress(test, id, { state, attempts, nextAttemptAt: null })
  }
  await assertRejected(request, 'a failed delivery was resent', commands.resend(id))
  await perform('retry', 500, 'failed')
  await perform('retry', 204, 'delivered')
  await perform('resend', 500, 'delivered')
  await perform('resend', 204, 'delivered')
  await assertRejected(request, 'a delivered delivery was retried', commands.retry(id))
  const [event] = test.events as [ListedEvent]
  const bodies = (await waitForAttempts(test, 'failing', event, attempts)).map(({ body }) => body)
  if (new Set(bodies).size > 1) throw broken(request, 'a manual attempt has another body')
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
  const { run, kind, webhooks } = test
  const webhook = webhooks.updates
  const { path } = await change(test, kind.create)
  const next = await webhook.prepareSecret()
  const headers = listDeliveryHeaders(run.contract)
  for (const secret of [webhook.secret, next]) {
    if (secret === next) await webhook.activateSecret()
    const { request, emitted } = await change(test, kind.update, path)
    for (const event of emitted)
      for (const attempt of await waitForAttempts(test, 'updates', event))
        assertAttempt(run, request, { headers, secret, event, attempt })
  }
  webhook.secret = next
}

/** A test event goes to one webhook, subscribed or not, once. It is not stored, so its ID is that of
 *  its delivery. */
async function assertTestEvent(test: WebhookTest): Promise<void> {
  const { run, list, receiver, webhooks, statuses, request } = test
  const known = new Set(receiver.attempts.filter(({ path }) => path === '/updates'))
  const isNew = (each: Attempt) => each.path === '/updates' && !known.has(each)
  statuses.set('/updates', 500)
  await webhooks.updates.sendTest()
  await receiver.waitFor(isNew, 1, TIMEOUT_MS)
  const attempt = receiver.attempts.find(isNew)
  if (attempt === undefined) throw broken(request, 'a test event was not delivered')
  const { id, event_type: type } = payloadOf(attempt) ?? {}
  const headers = listDeliveryHeaders(run.contract)
  const event = { id: String(id), type: String(type), resource: '', event: {} }
  assertAttempt(run, request, { headers, secret: webhooks.updates.secret, event, attempt })
  if (eventIdOf(headers, attempt) !== id)
    throw broken(request, 'the event ID of a test event is not that of its delivery')
  await waitForProgress(test, String(id), { state: 'failed', attempts: 1, nextAttemptAt: null })
  statuses.delete('/updates')
  if (receiver.attempts.filter((each) => payloadOf(each)?.event_type === type).length > 1)
    throw broken(request, 'a test event did not go to one webhook alone')
  if ((await readEvents(run, list)).some((each) => each.id === id || each.type === type))
    throw broken(request, 'a test event is in the list of events')
}

/** A webhook that is enabled again gets later events only. */
async function assertEnabled(test: WebhookTest): Promise<void> {
  const { kind, receiver, webhooks } = test
  await webhooks.disabled.enable()
  const { request, emitted } = await change(test, kind.create)
  for (const event of emitted) await waitForAttempts(test, 'disabled', event)
  const count = receiver.attempts.filter(({ path }) => path === '/disabled').length
  if (count !== emitted.length)
    throw broken(request, `a webhook that was enabled again got ${count} deliveries`)
}

/** A cancelled delivery, and one of a disabled webhook, failed after their first attempts. */
async function assertEnded(test: WebhookTest): Promise<void> {
  const { run, account, webhooks, request, events } = test
  const [seconds = 0] = readRetrySeconds(run.contract)
  const [event] = events as [ListedEvent]
  for (const name of ['cancelled', 'stopped'] as const) {
    const id = await findDeliveryId(test, name)
    await waitForProgress(test, id, { state: 'failed', attempts: 1, nextAttemptAt: null })
    const { receivedAt = 0 } = attemptsOf(test, name, event)[0] ?? {}
    await delay(Math.max(0, receivedAt + seconds * 1000 + SETTLING_MS - Date.now()))
    await waitForAttempts(test, name, event, 1)
  }
  const id = await findDeliveryId(test, 'stopped')
  await assertRejected(
    request,
    'a delivery of a disabled webhook was retried',
    account.commands.retry(id),
  )
  await webhooks.stopped.enable()
  await account.commands.retry(id)
  await waitForProgress(test, id, { state: 'failed', attempts: 2, nextAttemptAt: null })
}

/** The first attempt fails, and all later events wait until the second one was accepted. */
async function assertOrder(test: WebhookTest): Promise<void> {
  const { run, receiver, request, events } = test
  const headers = listDeliveryHeaders(run.contract)
  const idOf = (attempt: Attempt) => eventIdOf(headers, attempt)
  const expected = [events[0], ...events].map((event) => event?.id)
  const isOf = (attempt: Attempt) => attempt.path === '/ordered' && expected.includes(idOf(attempt))
  const [seconds = 0] = readRetrySeconds(run.contract)
  await receiver.waitFor(isOf, expected.length, seconds * 1000 + TIMEOUT_MS)
  const order = receiver.attempts.filter(isOf).map(idOf)
  if (isDeepStrictEqual(order, expected)) return
  const typeOf = (id: unknown) => events.find((event) => event.id === id)?.type
  throw broken(
    request,
    `the attempts are ${show(order.map(typeOf))} instead of ${show(expected.map(typeOf))}`,
  )
}
