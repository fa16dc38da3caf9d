/** Bulk jobs that send missed events. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { countSelected } from '../../records/bulk-batches.ts'
import { disableWebhook, enableWebhook } from '../../records/webhooks.ts'
import { emitTest } from '../../webhooks/emit.ts'
import { CLOCK_DIFFERENCE_MS, sharedApp, startApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import {
  allEnded,
  findJob,
  newOutage,
  receivedIds,
  selectMissed,
  startJob,
  waitForJob,
} from './bulk-jobs.ts'
import { emitFor, NEVER, newTenant } from './harness.ts'

const SECOND = 1_000

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe('send_missed', () => {
  test('sends missed events and cancelled deliveries once each, as counted in the preview', async () => {
    await using receiver = await startReceiver()
    await using other = await startReceiver()
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url, {
      eventTypes: ['participant.created', 'task.created'],
    })
    await tenant.subscribe(other.url)
    const eventsBefore = 3
    await tenant.emit(eventsBefore)
    await allEnded(tenant, 2 * eventsBefore)
    await tenant.write(async (scope) => {
      // A cancelled test delivery is not sent again.
      await emitTest(scope, webhookId, new Date())
      await emitFor(scope, tenant.accountId, 'participant.created')
      await disableWebhook(scope, webhookId, new Date())
    })
    await tenant.emit(20)
    await tenant.emit(5, 'job.created')
    await tenant.emit(4, 'task.created')
    // The webhook is disabled already, so this does not change the start of the outage.
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    const eventsAfter = 2
    await tenant.emit(eventsAfter)
    const missed = 1 + 20 + 4
    const notSubscribed = 5
    const events = eventsBefore + missed + notSubscribed + eventsAfter
    await other.received(events)

    const selection = await selectMissed(tenant, webhookId)
    expect(await countSelected(tenant.scope, selection)).toBe(missed)
    const { id } = await startJob(tenant, selection)
    expect(await waitForJob(tenant, id, 'completed')).toMatchObject({
      total: missed,
      done: missed,
      skipped: 0,
      endedAt: expect.any(Number),
    })
    const ofTest = 1
    const ofSubscriber = ofTest + eventsBefore + missed + eventsAfter
    const all = await allEnded(tenant, events + ofSubscriber)
    const deliveries = all.filter((delivery) => delivery.webhookId === webhookId)
    expect(deliveries.filter(({ eventType }) => eventType === 'webhook.test')).toMatchObject([
      { state: 'failed', attempts: 0 },
    ])
    const sent = deliveries.filter(({ eventType }) => eventType !== 'webhook.test')
    expect(sent.every(({ state, attempts }) => state === 'delivered' && attempts === 1)).toBe(true)
    expect(receivedIds(receiver)).toEqual(sent.map((delivery) => delivery.id).sort())
    expect(other.requests).toHaveLength(events)

    const eventIds: string[] = await tenant.scope
      .rows('events')
      .whereNot({ event_type: 'job.created' })
      .orderBy('id')
      .pluck('id')
    expect(sent.map(({ eventId }) => eventId).sort()).toEqual(eventIds)
    // The job creates the deliveries of missed events last, in the order of the events. It creates
    // none for the event whose delivery was cancelled, but resumes that delivery.
    const created = missed - 1
    const newest = sent.slice(0, created).map(({ eventId }) => eventId)
    const position = eventsBefore + 1
    expect(newest.reverse()).toEqual(eventIds.slice(position, position + created))
    expect(await countSelected(tenant.scope, await selectMissed(tenant, webhookId))).toBe(0)
  })

  test('continues the schedule of a delivery that was cancelled between two attempts', async () => {
    await using receiver = await startReceiver({ answers: ['hang', 500, 204] })
    await using slow = await startApp({
      role: 'all',
      environment: {
        WEBHOOK_RETRY_DELAYS: '600,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1',
        WEBHOOK_TIMEOUT_MS: '200',
      },
    })
    const tenant = await newTenant(slow)
    const webhookId = await tenant.subscribe(receiver.url)
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    const job = await startJob(tenant, await selectMissed(tenant, webhookId))
    expect(await waitForJob(tenant, job.id, 'completed')).toMatchObject({ total: 1, done: 1 })
    expect(await tenant.reached(id, 'delivered')).toMatchObject({
      attempts: 3,
      failureReason: null,
    })
  })

  test('sends only the events between `since` and `until`', async () => {
    await using outage = await newOutage(app, 2)
    const { tenant, receiver, webhookId } = outage
    await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
    await delay(CLOCK_DIFFERENCE_MS)
    const since = new Date()
    await delay(CLOCK_DIFFERENCE_MS)
    await tenant.emit(3)
    await delay(CLOCK_DIFFERENCE_MS)
    const end = new Date()
    await delay(CLOCK_DIFFERENCE_MS)
    await tenant.emit(4)
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    const selection = await selectMissed(tenant, webhookId, { since, until: end })
    expect(await countSelected(tenant.scope, selection)).toBe(3)
    const { id } = await startJob(tenant, selection)
    await waitForJob(tenant, id, 'completed')
    await allEnded(tenant, 3)
    expect(receiver.requests).toHaveLength(3)
  })

  test('sends the events of one resource to an ordered webhook one after another', async () => {
    const inFlight = new Set<string>()
    let overlaps = 0
    const resources: string[] = []
    await using receiver = await startReceiver({
      answers: ({ body }) => {
        const { resource } = JSON.parse(String(body)) as { resource: { id: string } }
        if (inFlight.has(resource.id)) overlaps++
        inFlight.add(resource.id)
        resources.push(resource.id)
        setTimeout(() => inFlight.delete(resource.id), 20)
        return { afterMs: 20 }
      },
    })
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe(receiver.url, { ordering: 'by_resource' })
    const [first, second] = [randomUUID(), randomUUID()]
    const emitUpdates = (ids: string[]) =>
      tenant.write(async (scope) => {
        for (const id of ids) await emitFor(scope, id, 'participant.updated')
      })
    await tenant.write(async (scope) => {
      await emitFor(scope, first, 'participant.created')
      await emitFor(scope, first, 'participant.updated')
      await disableWebhook(scope, webhookId, new Date())
    })
    await emitUpdates([first, second, first, second])
    await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
    const { id } = await startJob(tenant, await selectMissed(tenant, webhookId))
    expect(await waitForJob(tenant, id, 'completed')).toMatchObject({ total: 6, done: 6 })
    const deliveries = await allEnded(tenant, 6)
    expect(deliveries.every(({ state, attempts }) => state === 'delivered' && attempts === 1)).toBe(
      true,
    )
    expect(overlaps).toBe(0)
    expect(resources.filter((resource) => resource === first)).toHaveLength(4)
  })

  test('refuses a webhook that was never disabled, unless `since` is set', async () => {
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe('https://example.com/')
    await expect(selectMissed(tenant, webhookId)).rejects.toThrow('has not been disabled')
    expect(
      await countSelected(
        tenant.scope,
        await selectMissed(tenant, webhookId, { since: new Date(0) }),
      ),
    ).toBe(0)
  })

  test.runIf(inject('database') === 'postgres')(
    'waits for an event whose transaction began while the webhook was disabled',
    async () => {
      await using outage = await newOutage(app, 3)
      const { tenant, receiver, webhookId } = outage
      await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
      const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
      const { promise: isEmitted, resolve: markEmitted } = Promise.withResolvers<void>()
      const late = tenant.write(async (scope) => {
        // Begins the transaction in PostgreSQL, as a create does: an insert is sent with COMMIT.
        await scope.sql.raw('select pg_current_xact_id()')
        await emitFor(scope, tenant.accountId, 'participant.created')
        markEmitted()
        await mayCommit
      })
      await isEmitted
      await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
      const { id } = await startJob(
        tenant,
        await selectMissed(tenant, webhookId, { since: new Date(Date.now() - 60 * SECOND) }),
      )
      await delay(SECOND)
      expect(await findJob(tenant, id)).toMatchObject({ state: 'running', done: 0 })
      commit()
      await late
      expect(await waitForJob(tenant, id, 'completed')).toMatchObject({ done: 4, skipped: 0 })
      await allEnded(tenant, 4)
      expect(receiver.requests).toHaveLength(4)
    },
  )
})
