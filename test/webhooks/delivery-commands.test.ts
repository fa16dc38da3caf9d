/** Retry, resend, attempt now and cancel, also as concurrent commands of several users. */
import { describe, expect, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import type { Delivery } from '../../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  DeliveryRefused,
  resendDelivery,
  retryDelivery,
} from '../../records/delivery-commands.ts'
import { sharedApp, until } from '../helpers.ts'
import { newInstallation, newSubscriber, type Tenant } from './harness.ts'

const SECOND_MS = 1_000
/** In seconds. No scheduled attempt happens during a test. */
const DELAYS = [600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400]

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: DELAYS.join(',') } })

/** Emits one event, and returns its delivery after the first attempt has failed. */
async function emitFailing(tenant: Tenant): Promise<Delivery> {
  const { id } = await tenant.emitOne()
  return tenant.reached(id, 'retrying')
}

type Command = typeof retryDelivery

const run = async (
  command: Command,
  { find, write }: Tenant,
  id: string,
): Promise<Delivery | undefined> => {
  const delivery = await find(id)
  return write((scope) => command(scope, delivery, new Date()))
}

/** Runs ten commands at once. */
const runTenTimes = (
  ...args: Parameters<typeof run>
): Promise<PromiseSettledResult<Delivery | undefined>[]> =>
  Promise.allSettled(Array.from({ length: 10 }, () => run(...args)))

const countFulfilled = (results: PromiseSettledResult<unknown>[]): number =>
  results.filter(({ status }) => status === 'fulfilled').length

/** Number and trigger of each attempt. */
const attemptsOf = async ({ scope }: Tenant, id: string): Promise<[number, string][]> =>
  (await listAttempts(scope, id)).map(({ number, trigger }) => [number, trigger])

describe('retry', () => {
  test('manual retry: one attempt outside the schedule; a success makes the delivery delivered', async () => {
    await using installation = await newInstallation()
    await installation.start()
    await using subscriber = await newSubscriber(installation, {
      answers: (_, index) => (index < 11 ? 500 : 204),
    })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    expect(await run(retryDelivery, tenant, id)).toMatchObject({
      state: 'failed',
      nextTrigger: 'retry',
    })
    expect(await tenant.settled(id)).toMatchObject({
      state: 'failed',
      failureReason: 'attempt_failed',
      attempts: 11,
    })
    await run(retryDelivery, tenant, id)
    expect(await tenant.settled(id)).toMatchObject({
      state: 'delivered',
      failureReason: null,
      attempts: 12,
    })
    expect((await attemptsOf(tenant, id)).slice(9)).toEqual([
      [10, 'schedule'],
      [11, 'retry'],
      [12, 'retry'],
    ])
    expect(receiver.requests).toHaveLength(12)
    await expect(run(retryDelivery, tenant, id)).rejects.toMatchObject({ code: 'not_failed' })
  })

  test('ten concurrent retries of a failed delivery make one attempt', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, { afterMs: 500 }] })
    const { tenant, receiver } = subscriber
    const { id } = await emitFailing(tenant)
    await run(cancelDelivery, tenant, id)
    expect(countFulfilled(await runTenTimes(retryDelivery, tenant, id))).toBe(10)
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect(receiver.requests).toHaveLength(2)
    expect(await attemptsOf(tenant, id)).toEqual([
      [1, 'schedule'],
      [2, 'retry'],
    ])
  })
})

describe('resend', () => {
  test('manual resend: one attempt; the delivery stays delivered', async () => {
    await using subscriber = await newSubscriber(app, { answers: [204, 500, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    expect(await run(resendDelivery, tenant, id)).toMatchObject({
      state: 'delivered',
      nextTrigger: 'resend',
    })
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect((await listAttempts(tenant.scope, id))[1]).toMatchObject({
      trigger: 'resend',
      outcome: 'http_error',
    })
    expect(receiver.requests).toHaveLength(2)
    await expect(run(retryDelivery, tenant, id)).rejects.toThrow('Only a failed delivery')
  })

  test('ten concurrent resends make one attempt', async () => {
    await using subscriber = await newSubscriber(app, { answers: [204, { afterMs: 500 }] })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.settled(id)
    expect(countFulfilled(await runTenTimes(resendDelivery, tenant, id))).toBe(10)
    expect(await tenant.settled(id)).toMatchObject({ attempts: 2 })
    expect(receiver.requests).toHaveLength(2)
  })
})

describe('attempt now', () => {
  test('makes the next attempt at once; the schedule continues after it', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, 500] })
    const { tenant, receiver } = subscriber
    const { id, nextAttemptAt } = await emitFailing(tenant)
    expect(nextAttemptAt).toBeGreaterThan(Date.now() + 500 * SECOND_MS)
    await runTenTimes(attemptNow, tenant, id)
    const delivery = await until('the second attempt was made', async () => {
      const found = await tenant.find(id)
      return found.attempts === 2 && found
    })
    expect(delivery).toMatchObject({ state: 'retrying', nextTrigger: 'schedule' })
    expect(await attemptsOf(tenant, id)).toEqual([
      [1, 'schedule'],
      [2, 'schedule'],
    ])
    const [, second] = await listAttempts(tenant.scope, id)
    const endedAt = Number(second?.startedAt) + Number(second?.durationMs)
    const delayMs = Number(delivery.nextAttemptAt) - endedAt
    const secondDelayMs = 700 * SECOND_MS
    expect(Math.abs(delayMs - secondDelayMs)).toBeLessThan(5 * SECOND_MS)
    expect(receiver.requests).toHaveLength(2)
  })

  test('does not change a delivery whose attempt is in flight; is refused after its end', async () => {
    await using subscriber = await newSubscriber(app, { answers: [{ afterMs: 1_000 }] })
    const { tenant, receiver } = subscriber
    const { id, nextAttemptAt } = await tenant.emitOne()
    await receiver.received(1)
    expect(await runTenTimes(attemptNow, tenant, id)).toEqual(
      Array(10).fill({
        status: 'fulfilled',
        value: expect.objectContaining({ state: 'pending', nextAttemptAt }),
      }),
    )
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(receiver.requests).toHaveLength(1)
    await expect(run(attemptNow, tenant, id)).rejects.toMatchObject({ code: 'not_scheduled' })
  })
})

describe('cancel', () => {
  test('ends a scheduled delivery; no request is sent until a retry', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500, 204] })
    const { tenant, receiver } = subscriber
    const { id } = await emitFailing(tenant)
    const results = await runTenTimes(cancelDelivery, tenant, id)
    expect(countFulfilled(results)).toBe(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(DeliveryRefused)
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: 'cancelled',
      nextAttemptAt: null,
      nextTrigger: null,
    })
    expect(receiver.requests).toHaveLength(1)

    await run(retryDelivery, tenant, id)
    expect(await tenant.settled(id)).toMatchObject({
      state: 'delivered',
      failureReason: null,
      attempts: 2,
    })
    await expect(run(cancelDelivery, tenant, id)).rejects.toMatchObject({ code: 'not_scheduled' })
  })

  test.each([
    { name: 'succeeds: delivered', status: 200, want: { state: 'delivered', failureReason: null } },
    {
      name: 'fails: cancelled',
      status: 500,
      want: { state: 'failed', failureReason: 'cancelled' },
    },
  ])('while an attempt is in flight, which $name', async ({ status, want }) => {
    let respond = (): void => undefined
    await using subscriber = await newSubscriber(app, {
      answers: [
        {
          raw: (socket) => {
            respond = () => socket.end(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 0\r\n\r\n`)
          },
        },
      ],
    })
    const { tenant, receiver } = subscriber
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    await run(cancelDelivery, tenant, id)
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: 'cancelled',
      attempts: 0,
    })
    respond()
    await until('the result is stored', async () => (await tenant.find(id)).attempts === 1)
    expect(await tenant.find(id)).toMatchObject({ ...want, nextAttemptAt: null })
    expect(receiver.requests).toHaveLength(1)
  })
})

test('concurrent cancel, attempt now and retry: the delivery ends, and no attempt number is missing', async () => {
  await using subscriber = await newSubscriber(app, { answers: [500, { afterMs: 200 }] })
  const { tenant, receiver } = subscriber
  const { id } = await emitFailing(tenant)
  await Promise.allSettled(
    [cancelDelivery, attemptNow, retryDelivery, attemptNow, cancelDelivery, retryDelivery].map(
      (command) => run(command, tenant, id),
    ),
  )
  const { state, attempts } = await tenant.settled(id)
  expect(['delivered', 'failed']).toContain(state)
  // The result of a cancelled attempt may be stored after the delivery was read.
  const numbers = (await attemptsOf(tenant, id)).map(([number]) => number)
  expect([[1], [1, 2]]).toContainEqual(numbers)
  expect(numbers.length).toBeGreaterThanOrEqual(attempts)
  // An attempt in flight continues beside the one that replaced it.
  expect(receiver.requests.length).toBeLessThanOrEqual(3)
})
