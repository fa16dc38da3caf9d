/** One endpoint does not affect the others, and changes take effect at once. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { listAttempts, type RecordedAttempt } from '../../records/attempts.ts'
import { transaction } from '../../records/database/transaction.ts'
import { cancelDelivery, retryDelivery } from '../../records/delivery-commands.ts'
import { deleteWebhook, disableWebhook, updateWebhook } from '../../records/webhooks.ts'
import { until } from '../helpers.ts'
import { type Answer, type ReceivedRequest, startReceiver } from '../receiver.ts'
import { NEVER, newInstallation, newTenant, type Tenant } from './harness.ts'

const TIMEOUT_MS = 600
const RESPONSE_MS = 100
/** Attempts of 5 s and more are slow. */
const SLOW_MS = 5_100

/** Requests that are open at once. */
interface OpenCount {
  now: number
  most: number
}

/** Responds after this time, and counts the request as open until then. */
function respondLate(open: OpenCount, afterMs: number): Answer {
  open.now++
  open.most = Math.max(open.most, open.now)
  setTimeout(() => open.now--, afterMs)
  return { afterMs }
}

/** Creates webhooks with the same URL, and returns their IDs. */
async function subscribeTimes(count: number, tenant: Tenant, url: string): Promise<string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number++) ids.push(await tenant.subscribe(url))
  return ids
}

/** Cancels the attempts of the webhooks, which would delay the end of the test. */
async function deleteAll(tenant: Tenant, webhookIds: string[]): Promise<void> {
  for (const id of webhookIds) await tenant.write((scope) => deleteWebhook(scope, id, new Date()))
}

test('an endpoint with 16 timeouts in a row is probed one attempt at a time, until it responds', async () => {
  await using installation = await newInstallation()
  const engine = await installation.start({ timeoutMs: TIMEOUT_MS, delays: NEVER })
  const tenant = await newTenant(installation)
  let hangs = true
  const open: OpenCount = { now: 0, most: 0 }
  await using receiver = await startReceiver({
    answers: () => (hangs ? 'hang' : respondLate(open, RESPONSE_MS)),
  })
  /** The most requests within half of the timeout, counted from the request with this index. */
  const mostAtOnce = (from: number): number => {
    const times = receiver.requests.slice(from).map(({ receivedAt }) => receivedAt)
    return Math.max(
      ...times.map(
        (time) => times.filter((other) => other <= time && other > time - TIMEOUT_MS / 2).length,
      ),
    )
  }
  await tenant.subscribe(receiver.url)
  await tenant.emit(80, 'task.created')
  await receiver.received(17)
  // When at most one attempt is in flight, at least 16 attempts have timed out.
  await until('at most one attempt is in flight', () => engine.stats().inFlight <= 1, 30_000)
  const before = receiver.requests.length
  await receiver.received(before + 3, 30_000)
  expect(mostAtOnce(0)).toBeLessThanOrEqual(16)
  expect(mostAtOnce(before)).toBe(1)

  hangs = false
  await receiver.received(80, 30_000)
  await tenant.emit(600, 'task.created')
  await until('16 requests were open at once', () => open.most >= 16, 30_000)
  await receiver.received(680, 90_000)
}, 200_000)

test('slow endpoints take at most seven eighths of the slots, and one slot each after a restart', async () => {
  await using installation = await newInstallation()
  const engine = await installation.start({ timeoutMs: 20_000 })
  const [slowTenant, quickTenant] = [await newTenant(installation), await newTenant(installation)]
  const loneTenant = await newTenant(installation)
  let open: OpenCount = { now: 0, most: 0 }
  // The first response is a success, so that the host may have more slots.
  const answers = (_: ReceivedRequest, index: number): Answer =>
    index === 0 ? 204 : respondLate(open, SLOW_MS)
  // An account has at most 224 slots for one host.
  await using slow = await startReceiver({ answers })
  await using slowToo = await startReceiver({ answers })
  await using slowAsWell = await startReceiver({ answers })
  const slowReceivers = [slow, slowToo, slowAsWell]
  const requests = (): number => slowReceivers.flatMap(({ requests }) => requests).length
  await using slowButAlone = await startReceiver({ answers: [{ afterMs: SLOW_MS }] })
  await using quick = await startReceiver()
  const webhooks: string[] = []
  for (const { url } of slowReceivers) webhooks.push(...(await subscribeTimes(16, slowTenant, url)))
  const lone = await loneTenant.subscribe(slowButAlone.url)
  await quickTenant.subscribe(quick.url)
  await loneTenant.emit(40, 'task.created')
  await slowButAlone.received(16)
  await slowTenant.emit(40, 'task.created')
  // The lone webhook has 16 of the 560 shared slots. The first request to each of the three
  // receivers has ended at once.
  await until('they have the other shared slots', () => requests() >= 560 - 16 + 3, 15_000)
  await quickTenant.emit()
  await quick.received(1, 4_000)
  // An endpoint is slow after 16 slow attempts, which take up to three rounds.
  await until('all of them are slow', () => engine.stats().inFlight <= 80, 30_000)
  await quickTenant.emit(500, 'task.created')
  await quick.received(501, 10_000)
  expect(open.most).toBeLessThanOrEqual(560)
  expect(requests()).toBeLessThan(48 * 40)
  // This endpoint is slow, too. It gets more slots, because it is the only slow endpoint of its
  // account, and most slots are free.
  await slowButAlone.received(32, 4_000)

  // The endpoints are still slow after a restart, also for webhooks that are created then.
  await engine.stop(0)
  open = { now: 0, most: 0 }
  await installation.start({ timeoutMs: 20_000 })
  webhooks.push(...(await subscribeTimes(2, slowTenant, slow.url)))
  await slowTenant.emit(20, 'task.created')
  await quickTenant.emit(500, 'task.created')
  await quick.received(1_001, 10_000)
  // One slot for each of the 48 + 2 webhooks.
  expect(open.most).toBeLessThanOrEqual(50)
  await deleteAll(slowTenant, webhooks)
  await deleteAll(loneTenant, [lone])
})

test('retries and new attempts of a webhook stay within its limit together', async () => {
  await using installation = await newInstallation()
  // The retries come when the endpoint does not count as quick any more.
  const engine = await installation.start({ timeoutMs: 20_000, delays: NEVER.replace('600', '2') })
  const tenant = await newTenant(installation)
  await using receiver = await startReceiver({
    answers: (_, index) => (index < 16 ? 500 : 'hang'),
  })
  const webhookId = await tenant.subscribe(receiver.url)
  await tenant.emit(16, 'task.created')
  await until('all have failed once', () => engine.stats().outcomes.http_error === 16)
  await tenant.emit(16, 'task.created')
  await receiver.received(32)
  await delay(2_300)
  expect(receiver.requests).toHaveLength(32)
  await deleteAll(tenant, [webhookId])
})

test('many hanging endpoints leave slots for the others', async () => {
  await using installation = await newInstallation()
  await installation.start({ timeoutMs: 20_000 })
  const [slowTenant, quickTenant] = [await newTenant(installation), await newTenant(installation)]
  await using slow = await startReceiver({ answers: ['hang', 204, 'hang'] })
  await using slowToo = await startReceiver({ answers: ['hang'] })
  await using quick = await startReceiver()
  const webhooks = [
    ...(await subscribeTimes(25, slowTenant, slow.url)),
    ...(await subscribeTimes(2, slowTenant, slowToo.url)),
  ]
  await quickTenant.subscribe(quick.url)
  await slowTenant.emit(20, 'task.created')
  // The 224 slots of one host, and the request that got a response.
  await slow.received(225, 15_000)
  await quickTenant.settled((await quickTenant.emitOne()).id)
  expect(slow.requests).toHaveLength(225)
  // The 16 slots of a host that has never responded with 2xx.
  expect(slowToo.requests).toHaveLength(16)
  await deleteAll(slowTenant, webhooks)
})

test.runIf(inject('database') === 'postgres')(
  'a process whose shared slots are all used by hanging endpoints delays no other process',
  async () => {
    await using installation = await newInstallation()
    // The leader, which enqueues for both.
    const full = await installation.start({ timeoutMs: 25_000 })
    const [slowTenant, quickTenant] = [await newTenant(installation), await newTenant(installation)]
    await using slow = await startReceiver({ answers: [204, 'hang'] })
    await using slowToo = await startReceiver({ answers: [204, 'hang'] })
    await using slowAsWell = await startReceiver({ answers: [204, 'hang'] })
    await using quick = await startReceiver()
    const webhooks: string[] = []
    for (const { url } of [slow, slowToo, slowAsWell])
      webhooks.push(...(await subscribeTimes(16, slowTenant, url)))
    await quickTenant.subscribe(quick.url)
    await slowTenant.emit(16, 'task.created')
    await until('the shared slots are used', () => full.stats().inFlight === 560, 15_000)
    await installation.start({ timeoutMs: 25_000 })
    await quickTenant.emit(900, 'task.created')
    await quick.received(900, 20_000)
    expect(full.stats().outcomes.timeout).toBe(0)
    // The first attempt of each endpoint has got a response, and may have ended since.
    expect(full.stats().inFlight).toBeGreaterThanOrEqual(501)
    await deleteAll(slowTenant, webhooks)
  },
)

test.runIf(inject('database') === 'postgres')('a locked webhook delays no other', async () => {
  await using installation = await newInstallation()
  await installation.start()
  await using receiver = await startReceiver()
  const [locked, other] = [await newTenant(installation), await newTenant(installation)]
  const id = await locked.subscribe(receiver.url)
  await other.subscribe(receiver.url)
  let waitingId = ''
  await transaction(installation.db, async ({ sql }) => {
    await sql('webhooks').where({ id }).update({ description: 'being changed' })
    await locked.emit(20, 'task.created')
    waitingId = (await locked.emitOne()).id
    for (let time = 0; time < 5; time++) await other.settled((await other.emitOne()).id)
    expect(receiver.requests).toHaveLength(5)
  })
  await locked.settled(waitingId)
  await receiver.received(26)
})

test('a manual retry waits until the cancelled attempt in flight has ended', async () => {
  await using installation = await newInstallation()
  await installation.start({ timeoutMs: 3_000, delays: NEVER })
  await using receiver = await startReceiver({ answers: ['hang', 204] })
  const tenant = await newTenant(installation)
  await tenant.subscribe(receiver.url)
  const delivery = await tenant.emitOne()
  const { id } = delivery
  await receiver.received(1)
  await tenant.write((scope) => cancelDelivery(scope, delivery, new Date()))
  await tenant.write((scope) => retryDelivery(scope, delivery, new Date()))
  await tenant.reached(id, 'delivered')
  const attempts = await listAttempts(tenant.scope, id)
  expect(attempts.map(({ number, trigger, outcome }) => ({ number, trigger, outcome }))).toEqual([
    { number: 1, trigger: 'schedule', outcome: 'timeout' },
    { number: 2, trigger: 'retry', outcome: 'success' },
  ])
  expect(attempts[1]?.startedAt).toBeGreaterThanOrEqual((attempts[0]?.startedAt ?? 0) + 2_990)
  expect(receiver.requests).toHaveLength(2)
})

test('Retry-After does not move the next attempt, and is in the log', async () => {
  await using installation = await newInstallation()
  await installation.start({ delays: '1,1,1,1,1,1,1,1,1' })
  const tenant = await newTenant(installation)
  const refused = (status: number, after: string) => ({ status, headers: { 'retry-after': after } })
  await using receiver = await startReceiver({
    answers: [refused(503, '60'), refused(429, '0'), 204],
  })
  await tenant.subscribe(receiver.url)
  const { id } = await tenant.emitOne()
  await tenant.settled(id)
  const attempts = await listAttempts(tenant.scope, id)
  expect(attempts.map(({ status }) => status)).toEqual([503, 429, 204])
  expect(attempts[0]?.responseHeaders?.['retry-after']).toBe('60')
  const endOf = (attempt?: RecordedAttempt) =>
    Number(attempt?.startedAt) + Number(attempt?.durationMs)
  const pauses = attempts.slice(1).map(({ startedAt }, index) => startedAt - endOf(attempts[index]))
  // `startedAt` and `durationMs` are rounded to milliseconds.
  for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(990)
  expect(Math.max(...pauses)).toBeLessThan(30_000)
})

describe('no attempt starts after a committed change', () => {
  const elsewhere = 'http://127.0.0.2:9/'
  test.each([
    { name: 'disabled', change: disableWebhook },
    { name: 'deleted', change: deleteWebhook },
    {
      name: 'moved to another URL',
      change: (...[scope, id, now]: Parameters<typeof disableWebhook>) =>
        updateWebhook(scope, id, { url: elsewhere }, now),
    },
  ])('$name, while attempts are queued and in flight', async ({ change }) => {
    await using installation = await newInstallation()
    await installation.start({ delays: NEVER })
    const tenant = await newTenant(installation)
    let changedAt = Number.POSITIVE_INFINITY
    let late = 0
    await using receiver = await startReceiver({
      answers: ({ receivedAt }) => {
        if (receivedAt > changedAt) late++
        return 204
      },
    })
    const webhookId = await tenant.subscribe(receiver.url)
    await tenant.emit(1_500, 'task.created')
    await receiver.received(300, 30_000)
    await tenant.write((scope) => change(scope, webhookId, new Date()))
    // Requests of attempts that started before the change may still arrive.
    changedAt = Date.now() + 250
    await until(
      'no delivery is pending',
      async () =>
        (await tenant.scope.rows('deliveries').where({ state: 'pending' }).first('id')) ===
        undefined,
      60_000,
    )
    expect(receiver.requests.length).toBeLessThan(1_500)
    expect(late).toBe(0)
  })
})
