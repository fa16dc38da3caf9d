/** The delivery engine: lost jobs, its figures, a hanging endpoint, and background jobs. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { expect, inject, test } from 'vitest'
import { deleteWebhook } from '../../records/webhooks.ts'
import { emit, emitMany } from '../../webhooks/emit.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { allEnded } from './bulk-jobs.ts'
import {
  NEVER,
  newEvents,
  newInstallation,
  newSubscriber,
  newTenant,
  withoutAnnouncements,
} from './harness.ts'

test('a lost job is added again', async () => {
  await using installation = await newInstallation()
  await installation.start()
  // Without announcements, because an announced attempt starts without a job.
  await using subscriber = await newSubscriber(withoutAnnouncements(installation))
  const { tenant, receiver } = subscriber
  // The attempt is marked as queued, but has no job: as after a loss of the tables of the queue.
  await tenant.write(async (scope) => {
    await emit(
      scope,
      { eventType: 'participant.created', resourceId: randomUUID(), data: [] },
      new Date(Date.now() - 60_000),
    )
    await scope.rows('deliveries').update({ queued_at: Date.now() - 30_000 })
  })
  await receiver.received(1, 15_000)
})

test('the figures of an engine: attempts in flight, results, and the age of the oldest due attempt', async () => {
  await using installation = await newInstallation()
  const engine = await installation.start({ delays: NEVER, timeoutMs: 10_000 })
  expect(await engine.ready()).toBe(true)
  expect(await engine.oldestDueAgeMs()).toBe(0)
  await using subscriber = await newSubscriber(installation, { answers: [{ afterMs: 500 }] })
  const { tenant, receiver } = subscriber
  const aMinuteAgo = new Date(Date.now() - 60_000)
  await tenant.write((scope) => emitMany(scope, newEvents(1, 'task.created'), aMinuteAgo))
  await receiver.received(1)
  expect(engine.stats()).toMatchObject({ inFlight: 1, outcomes: { success: 0 } })
  expect(await engine.oldestDueAgeMs()).toBeGreaterThanOrEqual(60_000)
  await until('no attempt is in flight', () => engine.stats().inFlight === 0)
  expect(engine.stats()).toMatchObject({ outcomes: { success: 1 }, ended: { delivered: 1 } })
  expect(await engine.oldestDueAgeMs()).toBe(0)
})

test.runIf(inject('database') === 'postgres')(
  'attempts of a webhook at its concurrency limit wait for a slot, and need no jobs',
  async () => {
    await using installation = await newInstallation()
    const engine = await installation.start()
    await using subscriber = await newSubscriber(installation)
    const { tenant, receiver } = subscriber
    await until('the engine leads', () => engine.isLeader())
    const { write } = installation.db
    await write.raw(`
      create table added_jobs (id uuid);
      create function note_job() returns trigger language plpgsql as $$
      begin insert into added_jobs values (new.id); return new; end $$;
      create trigger note_job before insert on pgboss.job_common
        for each row when (new.name = 'deliveries') execute function note_job()`)
    // More than the limit of a quick endpoint. On a busy machine, some get jobs.
    let emitted = 0
    await until(
      'a burst needs no jobs',
      async () => {
        await write.raw('delete from added_jobs')
        await tenant.emit(150, 'task.created')
        emitted += 150
        await allEnded(tenant, emitted)
        return (await write.raw('select from added_jobs')).rows.length === 0
      },
      30_000,
    )
    expect(receiver.requests).toHaveLength(emitted)
  },
)

test('a hanging endpoint does not delay another', async () => {
  await using installation = await newInstallation()
  await installation.start({ timeoutMs: 10_000 })
  await using slow = await startReceiver({ answers: ['hang'] })
  await using quick = await startReceiver()
  const [slowTenant, quickTenant] = [await newTenant(installation), await newTenant(installation)]
  const webhookId = await slowTenant.subscribe(slow.url)
  await quickTenant.subscribe(quick.url)
  await slowTenant.emit(60, 'task.created')
  await slow.received(1)
  const emittedAt = Date.now()
  await quickTenant.settled((await quickTenant.emitOne()).id)
  expect(Date.now() - emittedAt).toBeLessThan(5_000)
  expect(slow.requests.length).toBeLessThanOrEqual(16)
  await slowTenant.write((scope) => deleteWebhook(scope, webhookId, new Date()))
})

test('the queue grows with the number of workers', async () => {
  await using installation = await newInstallation()
  const { db } = installation
  // In embedded mode there is one worker.
  const workers = db.dialect === 'postgres' ? 2 : 1
  for (let worker = 0; worker < workers; worker++)
    await installation.start({ delays: NEVER, timeoutMs: 60_000 })
  let allHaveLeased = workers === 1
  await using subscriber = await newSubscriber(withoutAnnouncements(installation), {
    answers: () => (allHaveLeased ? 'hang' : { afterMs: 50 }),
  })
  // The leader alone may deliver a small burst.
  await until(
    'all workers have leased attempts',
    async () => {
      if (allHaveLeased) return true
      await subscriber.tenant.emit(1_500)
      allHaveLeased = (await db.read('worker_sessions').select('id')).length === workers
      return allHaveLeased
    },
    30_000,
  )
  await subscriber.tenant.emit(6_000)
  // Seven eighths of the queue: see queue-quota.test.ts.
  const quota = workers === 2 ? 3_472 : 2_352
  await until(
    `${quota} attempts are in the queue`,
    async () => {
      const queued = db.read('deliveries').whereNotNull('queued_at').whereNotNull('next_attempt_at')
      return (await queued.select('id')).length === quota
    },
    30_000,
  )
})

test('background jobs: each runs once, and again after a failure', async () => {
  await using installation = await newInstallation()
  const due = new Set<string>([randomUUID(), randomUUID()])
  const runs: string[] = []
  await installation.start({
    backgroundJobs: {
      exports: {
        due: async () => [...due],
        async run(id) {
          // `due` may have listed the ID just before an earlier run of it has ended.
          if (!due.has(id)) return
          runs.push(id)
          if (runs.length === 1) throw new Error('the first run fails')
          due.delete(id)
        },
      },
    },
  })
  await until('no job is due', () => due.size === 0)
  expect(runs).toHaveLength(3)
  expect(runs.slice(1)).toContain(runs[0])
})

test('background jobs: a stop aborts the running one', async () => {
  await using installation = await newInstallation()
  const { promise: hasStarted, resolve: markStarted } = Promise.withResolvers<void>()
  const id = randomUUID()
  let isAborted = false
  const engine = await installation.start({
    backgroundJobs: {
      exports: {
        due: async () => [id],
        async run(_, signal) {
          markStarted()
          await once(signal, 'abort')
          isAborted = true
        },
      },
    },
  })
  await hasStarted
  await engine.stop(5_000)
  expect(isAborted).toBe(true)
})
