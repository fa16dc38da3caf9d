import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newMuster } from './muster.ts'
import { startServing } from './serving.ts'

const ENVIRONMENT = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }
/** The service itself makes no second attempt within a test. */
const NO_RETRIES = { WEBHOOK_RETRY_DELAYS: Array(9).fill('600').join() }

/** A service, and a webhook for events of tasks. Its receiver fails while `failure.isOn`. */
async function startService() {
  const muster = await newMuster()
  const failure = { isOn: false }
  const receiver = await startReceiver({ answers: () => (failure.isOn ? 500 : 204) })
  const { ready, process, ended } = await startServing(muster, {
    environment: { ...ENVIRONMENT, ...NO_RETRIES, LOG_LEVEL: 'error' },
  })
  const { account_id: account = '', token = '' } = ready.first_account ?? {}
  const json = (...args: string[]) => muster.json(args, { environment: ENVIRONMENT })
  const events = ['--events', 'task.created,task.updated']
  const options = ['--account', account, '--url', receiver.url, ...events]
  const { id: webhook }: { id: string } = await json('webhook', 'create', ...options)
  return {
    account,
    webhook,
    receiver,
    failure,
    json,
    run: (...args: string[]) => muster.run(args),
    async createTasks(count: number): Promise<void> {
      for (let number = 0; number < count; number++)
        await fetch(`${ready.url}/public/v1/tasks`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ title: `Task ${number}` }),
        })
    },
    async [Symbol.asyncDispose]() {
      process.kill('SIGTERM')
      expect(await ended).toMatchObject({ status: 0 })
      await muster[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

type Service = Awaited<ReturnType<typeof startService>>

/** Creates tasks while the webhook is disabled. */
async function missEvents({ json, webhook, createTasks }: Service, count: number): Promise<void> {
  await json('webhook', 'disable', webhook)
  await createTasks(count)
  await json('webhook', 'enable', webhook)
}

/** Attempts that a job has scheduled still end after it has stopped. */
function withoutResult({ delivered, failed, waiting, ...job }: Record<string, unknown>): object {
  return job
}

// Each command runs in its own process beside a running service.
describe('webhook send-missed', { timeout: 120_000 }, () => {
  it('refuses a webhook that is disabled or has never been disabled', async () => {
    await using service = await startService()
    const { json, run, webhook } = service
    expect(await run('webhook', 'send-missed', webhook)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('has not been disabled'),
    })
    await json('webhook', 'disable', webhook)
    expect(await json('webhook', 'list')).toMatchObject([{ disabled_at: expect.any(String) }])
    expect(await run('webhook', 'send-missed', webhook)).toMatchObject({ status: 1, stdout: '' })
  })

  it('--preview counts the missed events and sends none', async () => {
    await using service = await startService()
    const { json, webhook } = service
    await missEvents(service, 3)
    expect(await json('webhook', 'send-missed', webhook, '--preview')).toEqual({
      kind: 'send_missed',
      webhook_id: webhook,
      event_types: ['task.created', 'task.updated'],
      since: expect.any(String),
      until: expect.any(String),
      count: 3,
    })
    expect(await json('bulk', 'list', '--account', service.account)).toEqual([])
  })

  it('starts a bulk job that can be paused, resumed and cancelled', async () => {
    await using service = await startService()
    const { json, run, webhook, account, receiver } = service
    await missEvents(service, 40)
    const job = await json('webhook', 'send-missed', webhook, '--rate', '1')
    expect(job).toMatchObject({
      account_id: account,
      kind: 'send_missed',
      webhook_id: webhook,
      rate: 1,
      state: 'running',
      state_reason: null,
      total: 40,
      done: 0,
      skipped: 0,
      ended_at: null,
    })
    await receiver.received(1)
    expect(await run('webhook', 'send-missed', webhook)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`Bulk job ${job.id} already does this`),
    })
    const paused = await json('bulk', 'pause', job.id)
    expect(paused).toMatchObject({ id: job.id, state: 'paused' })
    expect(withoutResult(await json('bulk', 'show', job.id))).toEqual(withoutResult(paused))
    expect(await json('bulk', 'resume', job.id)).toMatchObject({ state: 'running' })
    const cancelled = await json('bulk', 'cancel', job.id)
    expect(cancelled).toMatchObject({ state: 'cancelled', ended_at: expect.any(String) })
    expect((await json('bulk', 'list', '--account', account)).map(withoutResult)).toEqual([
      withoutResult(cancelled),
    ])
    expect((await run('bulk', 'list', '--account', account)).stdout).toContain('cancelled')

    const secondJob = await json('webhook', 'send-missed', webhook, '--rate', '500')
    expect(secondJob.total).toBe(40 - cancelled.done)
    await receiver.received(40)
    await until(
      'the second job is completed',
      async () => (await json('bulk', 'show', secondJob.id)).state === 'completed',
      30_000,
    )
  })
})

describe('deliveries retry-failed', { timeout: 120_000 }, () => {
  it('attempts the failed deliveries of a webhook once more; retry-waiting makes scheduled attempts now', async () => {
    await using service = await startService()
    const { json, webhook, account, receiver, failure } = service
    const listUndelivered = (): Promise<{ id: string; attempts: number }[]> =>
      json('deliveries', 'undelivered', '--account', account)
    const since = new Date().toISOString()
    failure.isOn = true
    await service.createTasks(3)
    await receiver.received(3)
    const retrying = await until('the attempts have failed', async () => {
      const list = await listUndelivered()
      return list.filter(({ attempts }) => attempts === 1).length === 3 && list
    })
    failure.isOn = false
    // A cancelled delivery counts as failed.
    for (const { id } of retrying) await json('deliveries', 'cancel', id)

    const options = ['--webhook', webhook, '--since', since, '--type', 'task.created']
    const retry = ['deliveries', 'retry-failed', ...options]
    expect(await json(...retry, '--preview')).toMatchObject({
      kind: 'retry_failed',
      event_types: ['task.created'],
      count: 3,
    })
    expect(await json(...retry)).toMatchObject({ kind: 'retry_failed', total: 3, state: 'running' })
    await until('all are delivered', async () => (await listUndelivered()).length === 0)
    expect(receiver.requests).toHaveLength(6)

    failure.isOn = true
    await service.createTasks(2)
    await until('the attempts have failed', async () => {
      const list = await listUndelivered()
      return list.length === 2 && list.every(({ attempts }) => attempts === 1)
    })
    failure.isOn = false
    const retryWaiting = ['deliveries', 'retry-waiting', '--account', account]
    expect(await json(...retryWaiting, '--preview')).toMatchObject({
      kind: 'retry_waiting',
      webhook_id: null,
      count: 2,
    })
    const job = await json(...retryWaiting)
    expect(job).toMatchObject({ kind: 'retry_waiting', total: 2 })
    await until('both are delivered', async () => (await listUndelivered()).length === 0)
    expect(await json('bulk', 'show', job.id)).toMatchObject({
      done: 2,
      delivered: 2,
      failed: 0,
      waiting: 0,
    })
  })
})

describe('webhook test', { timeout: 120_000 }, () => {
  it('sends a test event, but not to a disabled webhook', async () => {
    await using service = await startService()
    const { json, run, webhook, receiver } = service
    const event = await json('webhook', 'test', webhook)
    expect(event).toEqual({ id: expect.any(String), webhook_id: webhook })
    const [request] = await receiver.received(1)
    expect(JSON.parse(String(request?.body))).toMatchObject({
      id: event.id,
      event_type: 'webhook.test',
    })
    await json('webhook', 'disable', webhook)
    expect(await run('webhook', 'test', webhook)).toMatchObject({
      status: 1,
      stderr: 'The webhook is disabled. Enable it first.\n',
    })
  })
})
