import { describe, expect, it } from 'vitest'
import { findBulkJob, listUnfinishedBulkJobs } from '../../records/bulk-jobs.ts'
import { sharedApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { fieldErrors, mainText, tableOf } from './forms.ts'
import { newWebhookAdmin, subscribeAndMiss } from './hooks.ts'

const HOUR_MS = 3_600_000

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe('bulk jobs', () => {
  it('count missed events and send them, and can be paused, resumed and cancelled', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(app)
    const id = await subscribeAndMiss(admin, receiver.url, 30)
    const formPath = `/webhooks/${id}/send-missed`
    expect(mainText((await admin.visitor.get(formPath)).text)).toContain(
      '30 deliveries , about 1 second.',
    )
    expect(mainText((await admin.visitor.get(`${formPath}?since=&until=&rate=1`)).text)).toContain(
      '30 deliveries , about 30 seconds.',
    )

    const wrong = await admin.visitor.post(formPath, {
      since: 'yesterday',
      until: '',
      rate: '5000',
    })
    expect(wrong.status).toBe(422)
    expect(fieldErrors(wrong.text)).toEqual({
      since: 'Enter a date and time, for example 2026-11-21T09:30.',
      rate: 'Enter a whole number from 1 to 500.',
    })
    expect(wrong.text).toContain('value="5000"')

    const started = await admin.visitor.submit(formPath, { since: '', until: '', rate: '1' })
    expect(started.text).toContain('Sending started.')
    const [job] = await admin.scope.rows('bulk_jobs').select('id', 'total', 'created_by')
    expect(job).toMatchObject({ total: 30, created_by: admin.manager.userId })
    const path = `/webhooks/jobs/${job.id}`
    expect(started.text).toContain('<progress max="30"')
    expect((await admin.visitor.get(`/webhooks/${id}`)).text).toContain('<progress max="30"')
    expect(mainText((await admin.visitor.get('/webhooks/jobs')).text)).toMatch(/Running \d+ of 30/)
    const again = await admin.visitor.post(formPath, { rate: '500' })
    expect(again.status).toBe(422)
    expect(again.text).toContain('already does this and is running')

    expect((await admin.visitor.submit(`${path}/pause`)).text).toContain('Job paused.')
    expect(mainText((await admin.visitor.get(path)).text)).toContain('Paused Resume')
    expect((await admin.visitor.submit(`${path}/resume`)).text).toContain('Job resumed.')
    expect((await admin.visitor.submit(`${path}/cancel`)).text).toContain('Job cancelled.')
    expect((await admin.visitor.submit(`${path}/pause`)).text).toContain(
      `Bulk job ${job.id} is cancelled.`,
    )
    expect((await admin.auditEntries()).map(({ action, targetId }) => [action, targetId])).toEqual(
      ['send_missed_started', 'bulk_job_paused', 'bulk_job_resumed', 'bulk_job_cancelled'].map(
        (name) => [`webhook.${name}`, id],
      ),
    )

    await admin.visitor.post(formPath, { rate: '500' })
    await until('all events have arrived', async () => receiver.requests.length === 30)
    await until('the job is completed', async () =>
      (await admin.visitor.get('/webhooks/jobs')).text.includes('Completed'),
    )
    expect(mainText((await admin.visitor.get(formPath)).text)).toContain(
      'The webhook missed no events in this period.',
    )
    expect((await admin.visitor.post(formPath, { rate: '500' })).status).toBe(422)
  })

  it('start once when the same form arrives again, and not with other values', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await subscribeAndMiss(admin, 'https://example.com/', 3)
    const formPath = `/webhooks/${id}/send-missed`
    const { text } = await admin.visitor.get(formPath)
    const [, key = ''] = /name="form:key"\s+value="([\da-f-]+)"/.exec(text) ?? []
    const send = (rate: string) =>
      admin.visitor.post(formPath, { since: '', until: '', rate, 'form:key': key })
    const first = await send('1')
    expect(first.to).toMatch(/^\/webhooks\/jobs\//)
    expect((await send('1')).to).toBe(first.to)
    const other = await send('2')
    expect(other.status).toBe(422)
    expect(mainText(other.text)).toContain('already been sent with different values')
    expect(await admin.scope.rows('bulk_jobs')).toHaveLength(1)
  })

  it('continue when their disabled webhook is enabled again, unless a user has paused them', async () => {
    await using receiver = await startReceiver()
    const startAndDisable = async () => {
      const admin = await newWebhookAdmin(app)
      const id = await subscribeAndMiss(admin, receiver.url, 15)
      // At four a second, the job still runs when the webhook is disabled.
      await admin.visitor.submit(`/webhooks/${id}/send-missed`, { since: '', until: '', rate: '4' })
      const [job] = await listUnfinishedBulkJobs(admin.scope, id)
      const loadJob = () => findBulkJob(admin.scope, job?.id ?? '')
      await until('the job has begun', async () => ((await loadJob())?.done ?? 0) > 0)
      await admin.visitor.submit(`/webhooks/${id}/disable`)
      await until('the job is paused', async () => (await loadJob())?.state === 'paused')
      const path = `/webhooks/jobs/${job?.id}`
      const { text } = await admin.visitor.get(path)
      expect(mainText(text)).toContain('The webhook was disabled.')
      return { admin, id, path, loadJob }
    }
    const [first, second] = await Promise.all([startAndDisable(), startAndDisable()])
    await second.admin.visitor.submit(`${second.path}/pause`)
    for (const { admin, id } of [first, second]) {
      const enabled = await admin.visitor.submit(`/webhooks/${id}/enable`)
      expect(enabled.text).toContain('Webhook enabled.')
    }
    await until(
      'the first job is completed',
      async () => (await first.loadJob())?.state === 'completed',
    )
    expect(await first.loadJob()).toMatchObject({ total: 15, done: 15, stateReason: null })
    expect(await second.loadJob()).toMatchObject({ state: 'paused', stateReason: null })
    const formPath = `/webhooks/${first.id}/send-missed`
    const again = await first.admin.visitor.post(formPath, { rate: '500' })
    expect(again.text).not.toContain('already does this')
  })

  it('of missed events need “From” when the webhook was never disabled', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/', { eventTypes: ['task.created'] })
    const formPath = `/webhooks/${id}/send-missed`
    const blank = await admin.visitor.get(formPath)
    expect(blank.status).toBe(200)
    expect(fieldErrors(blank.text)).toEqual({})
    expect(
      fieldErrors((await admin.visitor.post(formPath, { since: '', rate: '50' })).text),
    ).toHaveProperty('since')
    const from = new Date(Date.now() - HOUR_MS).toISOString().slice(0, 16)
    expect(
      (await admin.visitor.post(formPath, { since: from, until: from, rate: '50' })).text,
    ).toContain('Choose a time after “From”.')
    expect((await admin.visitor.get(`${formPath}?since=${from}`)).text).toContain(
      'The webhook missed no events in this period.',
    )
  })

  it('retry waiting deliveries, and show how many were delivered, failed and wait', async () => {
    let broken = new Set(['task.created', 'job.created'])
    await using receiver = await startReceiver({
      answers: ({ body }) => (broken.has(JSON.parse(String(body)).event_type) ? 500 : 204),
    })
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    await admin.emit(3, 'task.created')
    await admin.emit(2, 'job.created')
    await until('all wait for their second attempt', async () =>
      (await admin.deliveries()).every(({ state }) => state === 'retrying'),
    )
    broken = new Set(['job.created'])
    const log = async (query = ''): Promise<string> =>
      mainText((await admin.visitor.get(`/webhooks/${id}${query}`)).text)
    expect(await log()).toContain('Retry 5 waiting')
    const formPath = `/webhooks/${id}/retry-waiting`
    const form = mainText((await admin.visitor.get(formPath)).text)
    expect(form).toContain('5 deliveries , about 1 second.')
    expect(form).not.toContain('From (UTC)')
    const { to = '' } = await admin.visitor.post(formPath, { type: '', rate: '500' })
    const jobPage = async (): Promise<string> => mainText((await admin.visitor.get(to)).text)
    await until('the job shows its result', async () =>
      (await jobPage()).includes('5 of 5 Delivered 3 Show Failed 0 Waiting 2 Show'),
    )
    const list = async () =>
      tableOf((await admin.visitor.get('/webhooks/jobs')).text, 'Bulk jobs').map((row) =>
        row.slice(2, 7),
      )
    expect(await list()).toEqual([['Completed', '5 of 5', '3', '0', '2']])
    const [, jobId = ''] = /jobs\/(.+)/.exec(to) ?? []
    expect(await log(`?job=${jobId}&state=delivered`)).toContain('task.created')
    expect(await log(`?job=${id}`)).toContain('No deliveries match these filters.')
    expect((await admin.visitor.get(`/webhooks/${id}?job=x`)).status).toBe(422)
    const [waiting] = (await admin.deliveries()).filter(({ state }) => state === 'retrying')
    const detail = await admin.visitor.get(`/webhooks/${id}/deliveries/${waiting?.id}`)
    expect(detail.text).toContain(`href="/console${to}"`)

    await admin.visitor.post(formPath, { type: '', rate: '500' })
    await until('a later job has the deliveries that waited', async () => {
      const [, first = []] = await list()
      return first.join() === 'Completed,5 of 5 2 retried again or deleted,3,0,0'
    })
  })

  it('retry the failed deliveries of one event type and period', async () => {
    let isBroken = true
    await using receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    await admin.emit(3, 'task.created')
    await admin.emit(2, 'job.created')
    await receiver.received(5)
    await until('all wait for their second attempt', async () =>
      (await admin.deliveries()).every(({ state }) => state === 'retrying'),
    )
    for (const delivery of await admin.deliveries())
      await admin.visitor.post(`/webhooks/${id}/deliveries/${delivery.id}/cancel`)
    isBroken = false
    const formPath = `/webhooks/${id}/retry-failed`
    expect((await admin.visitor.get(formPath)).text).toContain('<strong>5 deliveries</strong>')
    expect((await admin.visitor.get(`${formPath}?type=task.created`)).text).toContain(
      '<strong>3 deliveries</strong>',
    )
    expect(
      (await admin.visitor.get(`${formPath}?since=2020-01-01T00:00&until=2020-02-01T00:00`)).text,
    ).toContain('No deliveries failed')
    expect((await admin.visitor.get(`${formPath}?type=task.exploded`)).status).toBe(422)
    const since = new Date(Date.now() - HOUR_MS).toISOString().slice(0, 16)
    await admin.visitor.post(formPath, { since, until: '', type: 'task.created', rate: '500' })
    const states = async () =>
      (await admin.deliveries()).map(({ eventType, state }) => `${eventType} ${state}`).sort()
    await until(
      'three are delivered',
      async () => (await states()).filter((state) => state.endsWith('delivered')).length === 3,
    )
    expect(await states()).toEqual([
      ...Array(2).fill('job.created failed'),
      ...Array(3).fill('task.created delivered'),
    ])
  })
})
