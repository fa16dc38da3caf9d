/** The specified schedule to the millisecond, by a clock that the test moves, and the same bytes
 *  whatever happens. */
import { createHmac, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { findDeliveryBody, insertDeliveries } from '../../records/deliveries.ts'
import { resendDelivery } from '../../records/delivery-commands.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newBench, newTenant } from './harness.ts'

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
const SPECIFIED = DELAYS.map((delay) => delay / SECOND).join(',')
/** Longer than the engine takes to find due attempts. */
const LOOK_MS = 1_500

test('ten attempts at the specified times, over restarts and clock jumps, then failed', {
  timeout: 180_000,
}, async () => {
  await using bench = await newBench()
  let ahead = 0
  const now = (): Date => new Date(Date.now() + ahead)
  // Nothing is queued before it is due: the queue has its own clock.
  const start = () => bench.start({ delays: SPECIFIED, now, horizonMs: 0 })
  let engine = await start()
  const tenant = await newTenant(bench)
  await using receiver = await startReceiver({ answers: [500] })
  await tenant.subscribe(receiver.url)
  const { id } = await tenant.emitOne()

  for (const [index, delay] of DELAYS.entries()) {
    const made = index + 1
    await until(
      `${made} attempts have ended`,
      async () => (await tenant.find(id)).attempts === made,
      30_000,
    )
    const { state, nextAttemptAt, updatedAt } = await tenant.find(id)
    // `updatedAt` is the end of the attempt.
    expect({ state, nextAttemptAt }).toEqual({
      state: 'retrying',
      nextAttemptAt: updatedAt + delay,
    })

    if (made % 3 === 0) await engine.stop(2_000)
    if (made === 5) ahead -= HOUR
    const untilDue = (nextAttemptAt ?? 0) - now().getTime()
    ahead += untilDue - LOOK_MS - SECOND
    if (made % 3 === 0) engine = await start()
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    if (now().getTime() < (nextAttemptAt ?? 0)) expect(receiver.requests).toHaveLength(made)
    ahead += LOOK_MS + SECOND
  }
  await tenant.reached(id, 'failed')
  expect(await tenant.find(id)).toMatchObject({
    attempts: 10,
    failureReason: 'attempts_exhausted',
    nextAttemptAt: null,
  })
  ahead += 365 * 24 * HOUR
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  expect(receiver.requests).toHaveLength(10)
  expect(new Set(receiver.requests.map(({ body }) => body.toString('hex'))).size).toBe(1)
})

test('every attempt sends, signs and stores the same bytes, whatever the body contains', async () => {
  await using bench = await newBench()
  await bench.start({ delays: '0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02,0.02' })
  const tenant = await newTenant(bench)
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
  await tenant.write((own) => insertDeliveries(own, [delivery], new Date()))
  await tenant.settled(id)
  await tenant.write((own) => resendDelivery(own, id, new Date()))
  await receiver.received(4)
  await tenant.settled(id)

  const digest = createHmac('sha256', await tenant.secretOf(webhookId))
    .update(body)
    .digest('hex')
  for (const request of receiver.requests) {
    expect(request.body.equals(body)).toBe(true)
    expect(request.headers['x-service-signature']).toBe(digest)
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
