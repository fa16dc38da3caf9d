/** Deliveries after the clock went back, or with clocks that differ. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { startReceiver } from '../receiver.ts'
import { NEVER, newInstallation, newTenant } from './harness.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The leader realigns the schedule every 5 s, so it has done that within this time. */
const REALIGNED_MS = 20_000
/** The leader looks for attempts that were not announced every 500 ms. */
const SWEEP_MS = 500

test.each([
  ['3 hours', 3 * HOUR_MS],
  ['100 days', 100 * DAY_MS],
])(
  'the clock goes back by %s while a worker runs: the next attempt is made after its delay',
  async (_, stepMs) => {
    await using installation = await newInstallation()
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    let aheadMs = stepMs
    const now = (): Date => new Date(Date.now() + aheadMs)
    await installation.start({ now, delays: '5,600,600,600,600,600,600,600,600' })
    const { id } = await tenant.emitOne()
    const failed = await tenant.reached(id, 'retrying')
    expect(failed.nextAttemptAt).toBeGreaterThan(Date.now() + stepMs - HOUR_MS)
    aheadMs = 0
    await receiver.received(2, REALIGNED_MS)
    expect(await tenant.reached(id, 'delivered')).toMatchObject({ attempts: 2 })
  },
)

test('the clock went back while no worker ran: the next worker reschedules within seconds', async () => {
  await using installation = await newInstallation()
  await using receiver = await startReceiver({ answers: [500] })
  const tenant = await newTenant(installation)
  await tenant.subscribe(receiver.url)
  const firstEngine = await installation.start({
    now: () => new Date(Date.now() + 3 * HOUR_MS),
    delays: NEVER,
  })
  const { id } = await tenant.emitOne()
  await tenant.reached(id, 'retrying')
  await firstEngine.stop(2_000)
  await installation.start({ delays: NEVER })
  // The next attempt is due after its delay of 600 s. Without the rescheduling, it would be due
  // 3 hours later.
  await expect
    .poll(async () => (await tenant.find(id)).nextAttemptAt, { timeout: REALIGNED_MS })
    .toBeLessThanOrEqual(Date.now() + REALIGNED_MS + 600_000)
})

test('the clock of the leader is slightly behind: first attempts do not wait for a sweep', async () => {
  await using installation = await newInstallation()
  await using receiver = await startReceiver({ answers: [204] })
  const tenant = await newTenant(installation)
  await tenant.subscribe(receiver.url)
  await installation.start({ now: () => new Date(Date.now() - 50) })
  const waits: number[] = []
  for (let count = 1; count <= 9; count++) {
    const emittedAt = performance.now()
    await tenant.emitOne()
    await receiver.received(count)
    waits.push(performance.now() - emittedAt)
  }
  const median = waits.sort((a, b) => a - b)[4]
  expect(median).toBeLessThan(SWEEP_MS / 2)
})

test.runIf(inject('database') === 'postgres')(
  'a worker that loses its lease while it reads the clock makes no attempt',
  async () => {
    await using installation = await newInstallation()
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    let aheadMs = 0
    const read = Promise.withResolvers<void>()
    await installation.start({
      now: () => new Date(Date.now() + aheadMs),
      delays: '2,600,600,600,600,600,600,600,600',
      async readClock() {
        aheadMs = 0
        // As when another worker leases the attempt.
        await installation.db.write.raw(
          `update pgboss.job set retry_count = retry_count + 1
           where name = 'deliveries' and state = 'active'`,
        )
        read.resolve()
      },
    })
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    // The queue leases the next attempt by the clock of the database.
    aheadMs = -3 * HOUR_MS
    await read.promise
    await delay(1_000)
    expect(receiver.requests).toHaveLength(1)
  },
)
