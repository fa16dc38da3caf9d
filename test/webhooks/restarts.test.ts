/** Engines that stop and start, share a database, or lose their queue. */
import { randomUUID } from 'node:crypto'
import type { Worker } from 'node:worker_threads'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { listAttempts } from '../../records/attempts.ts'
import { ATTEMPTS_SCHEDULED } from '../../records/due-work.ts'
import { emitMany } from '../../webhooks/emit.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { allEnded } from './bulk-jobs.ts'
import {
  type Installation,
  NEVER,
  newEvents,
  newInstallation,
  newTenant,
  withoutAnnouncements,
} from './harness.ts'

/** Counts the connections of the queue; in embedded mode the ports of its thread. */
async function countQueueResources({ db, databaseUrl }: Installation): Promise<number> {
  if (databaseUrl === undefined)
    return process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
  const { rows } = await db.read.raw(
    `select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'muster-queue'`,
  )
  return Number(rows[0].count)
}

describe('stops and starts', () => {
  test('a start makes attempts that were scheduled without an engine, and keeps the times of retries', async () => {
    await using installation = await newInstallation()
    await using receiver = await startReceiver({ answers: [500, 204] })
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    const { id } = await tenant.emitOne()
    const first = await installation.start({ delays: '1.5,1,1,1,1,1,1,1,1' })
    await tenant.reached(id, 'retrying')
    await first.stop(2_000)
    expect(await first.ready()).toBe(false)
    const { nextAttemptAt } = await tenant.find(id)
    await installation.start()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    expect(receiver.requests[1]?.receivedAt).toBeGreaterThanOrEqual(
      nextAttemptAt ?? Number.POSITIVE_INFINITY,
    )
  })

  test('a stop lets attempts in flight finish, and the next leader repeats none of them', async () => {
    await using installation = await newInstallation()
    const engine = await installation.start({ timeoutMs: 5_000 })
    await using receiver = await startReceiver({ answers: [{ afterMs: 1_500 }] })
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    const stopped = engine.stop(10_000)
    if (installation.databaseUrl !== undefined) {
      const next = await installation.start()
      await until('the next engine leads', () => next.isLeader())
      expect(engine.stats().inFlight).toBe(1)
    }
    await stopped
    expect(await tenant.find(id)).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(receiver.requests).toHaveLength(1)
  })

  test('a stop stores a result without its response when the database rejects the response', async () => {
    await using installation = await newInstallation()
    const engine = await installation.start()
    await using receiver = await startReceiver({ answers: [{ status: 200, body: 'thanks' }] })
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    await installation.db.write.raw(
      installation.databaseUrl === undefined
        ? `create trigger no_response before insert on attempts when new.response_body is not null
           begin select raise(abort, 'No response may be stored'); end`
        : 'alter table attempts add constraint no_response check (response_body is null)',
    )
    const { id } = await tenant.emitOne()
    await receiver.received(1)
    await engine.stop(2_000)
    expect(await tenant.find(id)).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(await listAttempts(tenant.scope, id)).toMatchObject([
      { outcome: 'success', status: 200, responseHeaders: null, responseBody: null },
    ])
  })

  test('a start that fails leaves nothing of the queue open', async () => {
    await using installation = await newInstallation()
    const before = await countQueueResources(installation)
    const work = { due: async () => [], run: async () => undefined }
    await expect(installation.start({ backgroundJobs: { 'not a name': work } })).rejects.toThrow(
      'Name',
    )
    await until(
      'the queue is closed',
      async () => (await countQueueResources(installation)) === before,
    )
  })

  test('an attempt that another process scheduled is found without an announcement', async () => {
    await using installation = await newInstallation()
    await installation.start()
    await using receiver = await startReceiver()
    const tenant = await newTenant(withoutAnnouncements(installation))
    await tenant.subscribe(receiver.url)
    await tenant.emit()
    await receiver.received(1, 1_500)
  })

  test('a commit announces its due attempts; above the limit the engine queries for them', async () => {
    await using installation = await newInstallation()
    await installation.start({ timeoutMs: 10_000 })
    await using receiver = await startReceiver()
    const tenant = await newTenant(installation)
    await tenant.subscribe(receiver.url)
    const announced: (number | undefined)[] = []
    installation.db.subscribe(ATTEMPTS_SCHEDULED, (attempts) => announced.push(attempts?.length))
    const events = newEvents(600, 'task.created')
    await tenant.emit()
    await tenant.write((scope) => emitMany(scope, events, new Date()))
    await tenant.write(async (scope) => {
      await emitMany(scope, events, new Date())
      await emitMany(scope, events, new Date())
    })
    expect(announced).toEqual([1, 600, undefined])
    const count = 1 + 600 + 2 * 600
    await allEnded(tenant, count)
    expect(receiver.requests).toHaveLength(count)
  })

  test.runIf(inject('database') === 'postgres')(
    'an attempt that started without a job gets a leased job, and the session of its worker lists the job',
    async () => {
      await using installation = await newInstallation()
      const engine = await installation.start({ timeoutMs: 20_000 })
      await using receiver = await startReceiver({ answers: ['hang'] })
      const tenant = await newTenant(installation)
      await tenant.subscribe(receiver.url)
      await until('the engine leads', () => engine.isLeader())
      await tenant.emit()
      await receiver.received(1)
      const leased = (): Promise<string[]> =>
        installation.db
          .read('pgboss.job')
          .where({ name: 'deliveries', state: 'active' })
          .pluck('id')
      await until('its job is leased', async () => (await leased()).length === 1)
      const [jobs] = await installation.db.read('worker_sessions').pluck('jobs')
      expect(jobs).toEqual([{ id: (await leased())[0], retryCount: 0 }])
    },
  )

  test.runIf(inject('database') === 'postgres')(
    'two engines share the attempts, and nothing is sent twice',
    async () => {
      await using installation = await newInstallation()
      const engines = [
        await installation.start({ timeoutMs: 10_000 }),
        await installation.start({ timeoutMs: 10_000 }),
      ]
      await using receiver = await startReceiver()
      const tenant = await newTenant(installation)
      await tenant.subscribe(receiver.url)
      await tenant.emit(300, 'task.created')
      await allEnded(tenant, 300)
      expect(receiver.requests).toHaveLength(300)
      const [first = 0, second = 0] = engines.map((engine) => engine.stats().outcomes.success)
      expect(first + second).toBe(300)
    },
  )

  test.runIf(inject('database') === 'postgres')(
    'an emptied queue is rebuilt from the records',
    async () => {
      await using installation = await newInstallation()
      await installation.start({ delays: NEVER })
      await using receiver = await startReceiver({ answers: [500, 204] })
      const tenant = await newTenant(installation)
      await tenant.subscribe(receiver.url)
      const { id } = await tenant.emitOne()
      await tenant.reached(id, 'retrying')
      const client = new pg.Client({ connectionString: installation.databaseUrl })
      await client.connect()
      await client.query('delete from pgboss.job')
      await client.end()
      await tenant.write(
        async (scope) =>
          void (await scope
            .rows('deliveries')
            .update({ next_attempt_at: Date.now() - 10_000, queued_at: Date.now() - 20_000 })),
      )
      expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    },
  )
})

test.runIf(inject('database') === 'sqlite')(
  'embedded mode: when the thread of the queue ends, the queue is rebuilt from the records',
  async () => {
    await using installation = await newInstallation()
    const threads: Worker[] = []
    const onWorker = (thread: Worker): void => void threads.push(thread)
    process.on('worker', onWorker)
    const due = new Set<string>()
    const backgroundJobs = {
      exports: { due: async () => [...due], run: async (id: string) => void due.delete(id) },
    }
    const engine = await installation.start({
      delays: '4,1,1,1,1,1,1,1,1',
      timeoutMs: 10_000,
      backgroundJobs,
    })
    await using slow = await startReceiver({ answers: [{ afterMs: 4_000 }] })
    await using failing = await startReceiver({ answers: [500, 204] })
    const [slowTenant, failingTenant] = [
      await newTenant(installation),
      await newTenant(installation),
    ]
    await slowTenant.subscribe(slow.url)
    await failingTenant.subscribe(failing.url)
    const inFlight = await slowTenant.emitOne()
    const retried = await failingTenant.emitOne()
    await until(
      'one attempt is in flight, and one has failed',
      async () =>
        slow.requests.length === 1 && (await failingTenant.find(retried.id)).state === 'retrying',
    )

    expect(threads).toHaveLength(1)
    await threads[0]?.terminate()
    expect(await engine.ready()).toBe(false)
    const emittedWhileDown = await failingTenant.emitOne()
    due.add(randomUUID())
    await until('the queue is ready', () => engine.ready())
    process.off('worker', onWorker)

    expect(await failingTenant.settled(emittedWhileDown.id)).toMatchObject({
      state: 'delivered',
      attempts: 1,
    })
    expect(await failingTenant.settled(retried.id)).toMatchObject({
      state: 'delivered',
      attempts: 2,
    })
    expect(await slowTenant.settled(inFlight.id)).toMatchObject({ state: 'delivered', attempts: 1 })
    await until('no job is due', () => due.size === 0)
    expect(slow.requests).toHaveLength(1)
    expect(threads).toHaveLength(2)
  },
)
