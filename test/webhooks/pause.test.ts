/** The pause of all deliveries. */
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { pauseDeliveries, unpauseDeliveries } from '../../records/delivery-pause.ts'
import { type Muster, newMuster } from '../cli/muster.ts'
import { newWebhookAdmin } from '../console/hooks.ts'
import { type AppOptions, newDatabase, startApp, type TestApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { databaseOptions } from '../upgrade/muster-database.ts'
import { newInstallation, newSubscriber } from './harness.ts'

const PAUSED = { DELIVERIES: 'paused' }
/** Longer than a worker needs to read the pause, poll and lease. */
const NOTHING_MS = 1_500

const startWithEngine = (options: AppOptions = {}) => startApp({ role: 'all', ...options })

async function expectPausedMetric(app: TestApp, value: 0 | 1): Promise<void> {
  const { text } = await app.call('GET', '/metrics')
  expect(text).toContain(`\nmuster_deliveries_paused ${value}\n`)
}

describe('paused deliveries', () => {
  test('after a start with DELIVERIES=paused there is no attempt until unpause, even after later starts', async () => {
    await using database = await newDatabase()
    await using receiver = await startReceiver()
    const logged: { level: string; msg: string }[] = []
    const logTo = { write: (line: string) => void logged.push(JSON.parse(line)) }
    const listWarnings = () => logged.filter(({ level }) => level === 'warn').map(({ msg }) => msg)
    {
      await using api = await startApp({ database })
      const admin = await newWebhookAdmin(api)
      await admin.subscribe(receiver.url)
      await admin.emit(5)
    }
    {
      await using app = await startWithEngine({
        database,
        environment: PAUSED,
        logLevel: 'info',
        logTo,
      })
      await delay(NOTHING_MS)
      await expectPausedMetric(app, 1)
    }
    await using app = await startWithEngine({ database, logLevel: 'info', logTo })
    await delay(NOTHING_MS)
    expect(receiver.requests).toHaveLength(0)
    expect(listWarnings()).toEqual(
      Array(2).fill(
        'Deliveries are paused: no attempt is made until "muster deliveries unpause" is run',
      ),
    )

    await using muster = await newMuster()
    const { environment } = database
    const run = (...args: string[]) => muster.json(['deliveries', ...args], { environment })
    expect(await run('unpause')).toEqual({ was_paused: true, paused_at: expect.any(String) })
    await receiver.received(5)
    await until('all are delivered', async () => {
      const rows = await app.db.read('deliveries').select('state', 'attempts')
      return rows.every(({ state, attempts }) => state === 'delivered' && attempts === 1)
    })
    expect(receiver.requests).toHaveLength(5)
    await expectPausedMetric(app, 0)
    expect(await run('unpause')).toEqual({ was_paused: false, paused_at: null })
  })

  test('the console refuses retries, test events and bulk jobs, and each page has a banner', async () => {
    await using receiver = await startReceiver({ answers: [204, 500] })
    await using app = await startWithEngine()
    const admin = await newWebhookAdmin(app)
    const { visitor } = admin
    const id = await admin.subscribe(receiver.url)
    await admin.emit()
    const delivered = await admin.newest(id, 'delivered')
    await admin.emit()
    const retrying = await admin.newest(id, 'retrying')
    await admin.emit()
    const failing = await admin.newest(id, 'retrying')
    await visitor.post(`/webhooks/${id}/deliveries/${failing.id}/cancel`)
    const banner = 'aria-label="Deliveries are paused"'
    expect((await visitor.get('')).text).not.toContain(banner)

    await pauseDeliveries(app.db, new Date())
    const before = await admin.deliveries()
    const refusal =
      'All deliveries are paused. The operator ends the pause with &#34;muster deliveries unpause&#34;.'
    for (const path of [
      `/webhooks/${id}/deliveries/${delivered.id}/resend`,
      `/webhooks/${id}/deliveries/${retrying.id}/attempt`,
      `/webhooks/${id}/deliveries/${failing.id}/retry`,
      `/webhooks/${id}/test`,
    ])
      expect((await visitor.submit(path)).text, path).toContain(refusal)
    const retryAll = await visitor.post(`/webhooks/${id}/retry-failed`, { rate: '50' })
    expect([retryAll.status, retryAll.text]).toEqual([422, expect.stringContaining(refusal)])
    expect(await admin.deliveries()).toEqual(before)
    expect(await app.db.read('bulk_jobs')).toEqual([])
    for (const path of ['', '/requests', '/participants', '/me', '/nowhere'])
      expect((await visitor.get(path)).text, path).toContain(banner)
  })
})

describe('running nodes', () => {
  test('make no attempt under load after another process has paused deliveries', async () => {
    await using installation = await newInstallation()
    const engines = await Promise.all(
      Array.from({ length: inject('database') === 'postgres' ? 2 : 1 }, () =>
        installation.start({ timeoutMs: 15_000 }),
      ),
    )
    await using subscriber = await newSubscriber(installation)
    const { tenant, receiver } = subscriber
    await tenant.emit(1_000)
    engines.forEach((engine) => void engine.wake())
    await receiver.received(100)
    const { databaseUrl, dataDir } = installation
    const otherProcess = openDatabase(databaseUrl === undefined ? { dataDir } : { databaseUrl })
    await pauseDeliveries(otherProcess, new Date())
    await until('no attempt is in flight', () =>
      engines.every((engine) => engine.stats().inFlight === 0),
    )
    const requestCount = receiver.requests.length
    expect(requestCount).toBeLessThan(1_000)
    await delay(NOTHING_MS)
    expect(receiver.requests).toHaveLength(requestCount)

    await unpauseDeliveries(otherProcess, new Date())
    await otherProcess.close()
    await receiver.received(1_000, 30_000)
    await until('all results are stored', async () => {
      const deliveries = await tenant.deliveries()
      return deliveries.every(({ state, attempts }) => state === 'delivered' && attempts === 1)
    })
    expect(receiver.requests).toHaveLength(1_000)
  })

  test('make no attempt while they cannot read the pause', async () => {
    await using installation = await newInstallation()
    const { db } = installation
    await using subscriber = await newSubscriber(installation)
    const engine = await installation.start()
    await db.write.schema.renameTable('delivery_pauses', 'hidden_pauses')
    await subscriber.tenant.emit(3)
    engine.wake()
    await delay(NOTHING_MS)
    expect(subscriber.receiver.requests).toHaveLength(0)
    await db.write.schema.renameTable('hidden_pauses', 'delivery_pauses')
    await subscriber.receiver.received(3)
  })
})

/** Kills a service just before this step of its start. Returns false when the service became ready
 *  first. */
async function killAt(step: number, muster: Muster, environment: Record<string, string>) {
  const { process, output, ended } = muster.start(['serve', '--json'], {
    environment: {
      ...environment,
      ...PAUSED,
      PORT: '0',
      WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
      NODE_OPTIONS: `--import=${fileURLToPath(new URL('../cli/kill-at.ts', import.meta.url))}`,
      KILL_AT: String(step),
    },
  })
  const outcome = await until('the service is ready or killed', () =>
    output.stdout.includes('\n') ? 'ready' : process.signalCode === 'SIGKILL' && 'killed',
  )
  if (outcome === 'ready') await delay(NOTHING_MS)
  process.kill('SIGKILL')
  await ended
  return outcome === 'killed'
}

test.runIf(inject('database') === 'sqlite')(
  'a start with DELIVERIES=paused makes no attempt, whichever step it is killed at',
  async () => {
    await using database = await newDatabase()
    await using receiver = await startReceiver()
    {
      await using api = await startApp({ database })
      const admin = await newWebhookAdmin(api)
      await admin.subscribe(receiver.url)
      await admin.emit(5)
    }
    await using muster = await newMuster()
    let step = 1
    while (await killAt(step, muster, database.environment)) step++
    expect(step).toBeGreaterThan(2)
    expect(receiver.requests).toHaveLength(0)
    const db = openDatabase(databaseOptions(database))
    expect(await db.read('deliveries').where({ state: 'pending', attempts: 0 })).toHaveLength(5)
    await db.close()
  },
)
