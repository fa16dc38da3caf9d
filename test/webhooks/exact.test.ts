/** Attempts follow the specified schedule to the millisecond, by a clock that the test moves, and
 *  send the same bytes whatever happens. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { findDeliveryBody, insertDeliveries } from '../../records/deliveries.ts'
import { resendDelivery } from '../../records/delivery-commands.ts'
import { until } from '../helpers.ts'
import { signatureOf, startReceiver } from '../receiver.ts'
import { newInstallation, newTenant } from './harness.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** service-spec §8: the delays between the end of an attempt and the next one. */
const DELAYS = [
  5 * SECOND,
  5 * SECOND,
  MINUTE,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  24 * HOUR,
]
const SPECIFIED = DELAYS.map((delayMs) => delayMs / SECOND).join(',')
/** Longer than the engine takes to find due attempts. */
const LOOK_MS = 1_500
/** The numbers of the attempts after which the engine stops and starts. */
const RESTARTS_AFTER = [3, 6, 9]

test('ten attempts at the specified times, over restarts and clock jumps, then failed', {
  timeout: 180_000,
}, async () => {
  await using installation = await newInstallation()
  let aheadMs = 0
  const now = (): Date => new Date(Date.now() + aheadMs)
  const advanceTo = (time: number): void => {
    aheadMs = Math.max(aheadMs, time - Date.now())
  }
  // Nothing is queued before it is due: the queue has its own clock.
  const start = () => installation.start({ delays: SPECIFIED, now, horizonMs: 0 })
  let engine = await start()
  const tenant = await newTenant(installation)
  await using receiver = await startReceiver({ answers: [500] })
  await tenant.subscribe(receiver.url)
  const { id } = await tenant.emitOne()

  for (const [index, delayMs] of DELAYS.entries()) {
    const count = index + 1
    await until(
      `${count} attempts have ended`,
      async () => (await tenant.find(id)).attempts === count,
      30_000,
    )
    // `updatedAt` is the end of the attempt.
    const { state, nextAttemptAt, updatedAt } = await tenant.find(id)
    const dueAt = updatedAt + delayMs
    expect({ state, nextAttemptAt }).toEqual({ state: 'retrying', nextAttemptAt: dueAt })

    if (RESTARTS_AFTER.includes(count)) await engine.stop(2_000)
    advanceTo(dueAt - LOOK_MS - SECOND)
    if (RESTARTS_AFTER.includes(count)) engine = await start()
    await delay(LOOK_MS)
    // A slow start may have taken the second that is left.
    if (now().getTime() < dueAt) expect(receiver.requests).toHaveLength(count)
    advanceTo(dueAt)
  }
  await tenant.reached(id, 'failed')
  expect(await tenant.find(id)).toMatchObject({
    attempts: 10,
    failureReason: 'attempts_exhausted',
    nextAttemptAt: null,
  })
  aheadMs += 365 * 24 * HOUR
  await delay(LOOK_MS)
  expect(receiver.requests).toHaveLength(10)
  expect(new Set(receiver.requests.map(({ body }) => body.toString('hex'))).size).toBe(1)
})

test('every attempt sends, signs and stores the same bytes, whatever the body contains', async () => {
  await using installation = await newInstallation()
  await installation.start({ delays: '0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02' })
  const tenant = await newTenant(installation)
  // Details that another JSON serializer would change: emoji, separators, escaped
  // surrogates, imprecise numbers, the order of numeric keys, white space.
  const body = Buffer.from(
    `{"id":"x", "2":1,"1":2,\t"data":{"emoji":"👩‍👩‍👧‍👦 \u2028\u2029 é e\u0301","half":"\\ud83d","nul":"\\u0000","big":123456789012345678901234567890.10,"exp":1E400,"neg":-0,"deep":${'['.repeat(50)}${']'.repeat(50)}}}`,
  )
  await using receiver = await startReceiver({ validate: false, answers: [500, 500, 204, 204] })
  const webhookId = await tenant.subscribe(receiver.url)
  const id = randomUUID()
  const delivery = {
    id,
    webhookId,
    eventId: null,
    eventType: 'task.created',
    body,
    trigger: 'schedule',
  } as const
  await tenant.write((scope) => insertDeliveries(scope, [delivery], new Date()))
  await tenant.settled(id)
  await tenant.write((scope) => resendDelivery(scope, delivery, new Date()))
  await receiver.received(4)
  await tenant.settled(id)

  const signature = signatureOf(await tenant.secretOf(webhookId), body)
  for (const request of receiver.requests) {
    expect(request.body.equals(body)).toBe(true)
    expect(request.headers['x-service-signature']).toBe(signature)
    expect(request.headers['content-length']).toBe(String(body.length))
  }
  expect((await findDeliveryBody(tenant.scope, id))?.equals(body)).toBe(true)
  expect(
    (await listAttempts(tenant.scope, id)).map(({ trigger, status }) => ({ trigger, status })),
  ).toEqual([
    { trigger: 'schedule', status: 500 },
    { trigger: 'schedule', status: 500 },
    { trigger: 'schedule', status: 204 },
    { trigger: 'resend', status: 204 },
  ])
})
