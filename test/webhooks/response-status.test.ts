/** Which responses of an endpoint end a delivery: service-spec §3 and §6, rules 1 and 2. */
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { readConfig } from '../../server/config.ts'
import { startApp } from '../helpers.ts'
import type { Answer } from '../receiver.ts'
import { newSubscriber, type Subscriber, sharedInstallation } from './harness.ts'

const SECOND_MS = 1_000

describe.concurrent('the status of the response', () => {
  const installation = sharedInstallation()
  beforeAll(() => installation.start({ timeoutMs: 10 * SECOND_MS }))

  test.each([200, 201, 202, 203, 204, 205, 206, 226, 299])(
    '%i: delivered, and no more attempts',
    async (status) => {
      await using subscriber = await newSubscriber(installation, { answers: [status] })
      const { tenant, receiver } = subscriber
      const { id } = await tenant.emitOne()
      expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
      // Longer than the delay of a retry.
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(receiver.requests).toHaveLength(1)
    },
  )

  test.each([300, 301, 304, 307, 400, 401, 403, 404, 408, 410, 422, 429, 500, 502, 503, 599])(
    '%i: a retry follows',
    async (status) => {
      await using subscriber = await newSubscriber(installation, { answers: [status, 204] })
      const { tenant } = subscriber
      const { id } = await tenant.emitOne()
      expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
      expect(await listAttempts(tenant.scope, id)).toMatchObject([
        { outcome: 'http_error', status },
        { outcome: 'success', status: 204 },
      ])
    },
  )
})

/** The default settings. */
const { webhookTimeoutMs, webhookRetryDelaysMs } = readConfig(
  { DATA_DIR: 'unused' },
  { createsFiles: false },
)

// Takes more than 20 seconds, so it runs with one database only.
test.runIf(inject('database') === 'sqlite')(
  'by default a response within 15 seconds is a success; later, the attempt fails and the next one follows after 5 seconds',
  async () => {
    await using app = await startApp({
      role: 'all',
      config: { webhookTimeoutMs, webhookRetryDelaysMs },
    })
    const respondAfter = (afterMs: number, ...answers: Answer[]): Promise<Subscriber> =>
      newSubscriber(app, { answers: [{ afterMs }, ...answers] })
    await using inTime = await respondAfter(13 * SECOND_MS)
    await using late = await respondAfter(17 * SECOND_MS, 204)
    const [{ id: inTimeId }, { id: lateId }] = await Promise.all([
      inTime.tenant.emitOne(),
      late.tenant.emitOne(),
    ])
    await late.receiver.received(2, 40 * SECOND_MS)

    expect(await inTime.tenant.find(inTimeId)).toMatchObject({ state: 'delivered', attempts: 1 })
    await late.tenant.reached(lateId, 'delivered')
    const [first, second] = await listAttempts(late.tenant.scope, lateId)
    expect(first).toMatchObject({ outcome: 'timeout', status: null })
    expect(first?.durationMs).toBeGreaterThanOrEqual(15 * SECOND_MS - 1)
    expect(first?.durationMs).toBeLessThan(17 * SECOND_MS)
    const endedAt = Number(first?.startedAt) + Number(first?.durationMs)
    expect(Number(second?.startedAt) - endedAt).toBeGreaterThanOrEqual(5 * SECOND_MS - 1)
  },
)
