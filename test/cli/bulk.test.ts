import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { newMuster } from './muster.ts'

const ENVIRONMENT = { PORT: '0', LOG_LEVEL: 'error', WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }

// Each command runs in its own process beside a running server.
describe('send-missed, retry-failed, test and bulk', { timeout: 120_000 }, () => {
  it('preview, start, show, pause, resume and cancel bulk jobs', async () => {
    await using muster = await newMuster()
    let isBroken = false
    await using receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
    const server = muster.start(['serve', '--json'], {
      environment: { ...ENVIRONMENT, WEBHOOK_RETRY_DELAYS: Array(9).fill('600').join() },
    })
    await until('the server is ready', () => server.output.stdout.includes('\n'), 60_000)
    const { url, first_account: account } = JSON.parse(server.output.stdout)
    const create = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++)
        await fetch(`${url}/public/v1/tasks`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${account.token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ title: `Task ${index}` }),
        })
    }
    const json = (...args: string[]) => muster.json(args, { environment: ENVIRONMENT })
    const { id: webhook } = await json(
      'webhook',
      'create',
      '--account',
      account.account_id,
      '--url',
      receiver.url,
      '--events',
      'task.created,task.updated',
    )
    const never = await muster.run(['webhook', 'send-missed', webhook])
    expect(never).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('has not been disabled'),
    })

    await json('webhook', 'disable', webhook)
    expect(await muster.run(['webhook', 'test', webhook])).toMatchObject({
      status: 1,
      stderr: 'The webhook is disabled. Enable it first.\n',
    })
    await create(40)
    const [{ disabled_at }] = await json('webhook', 'list')
    expect(disabled_at).toEqual(expect.any(String))
    expect(await muster.run(['webhook', 'send-missed', webhook])).toMatchObject({
      status: 1,
      stdout: '',
    })
    await json('webhook', 'enable', webhook)

    const preview = await json('webhook', 'send-missed', webhook, '--preview')
    expect(preview).toEqual({
      kind: 'send_missed',
      webhook_id: webhook,
      event_types: ['task.created', 'task.updated'],
      since: expect.any(String),
      until: expect.any(String),
      count: 40,
    })
    const job = await json('webhook', 'send-missed', webhook, '--rate', '1')
    expect(job).toMatchObject({
      account_id: account.account_id,
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
    const second = await muster.run(['webhook', 'send-missed', webhook])
    expect(second).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`Bulk job ${job.id} already does this`),
    })
    const paused = await json('bulk', 'pause', job.id)
    expect(paused).toMatchObject({ id: job.id, state: 'paused' })
    expect(await json('bulk', 'show', job.id)).toEqual(paused)
    expect(await json('bulk', 'resume', job.id)).toMatchObject({ state: 'running' })
    const cancelled = await json('bulk', 'cancel', job.id)
    expect(cancelled).toMatchObject({ state: 'cancelled', ended_at: expect.any(String) })
    expect(await json('bulk', 'list', '--account', account.account_id)).toEqual([cancelled])
    expect((await muster.run(['bulk', 'list', '--account', account.account_id])).stdout).toContain(
      'cancelled',
    )

    const rest = await json('webhook', 'send-missed', webhook, '--rate', '500')
    expect(rest.total).toBe(40 - cancelled.done)
    await receiver.received(40)
    await until(
      'it is completed',
      async () => (await json('bulk', 'show', rest.id)).state === 'completed',
      30_000,
    )

    isBroken = true
    await create(3)
    await receiver.received(43)
    const undelivered: { id: string }[] = await until('all have failed', async () => {
      const list = await json('deliveries', 'undelivered', '--account', account.account_id)
      return (
        list.filter(({ attempts }: { attempts: number }) => attempts === 1).length === 3 && list
      )
    })
    isBroken = false
    for (const { id } of undelivered) await json('deliveries', 'cancel', id)
    const retry = [
      'deliveries',
      'retry-failed',
      '--webhook',
      webhook,
      '--since',
      disabled_at,
      '--type',
      'task.created',
    ]
    expect(await json(...retry, '--preview')).toMatchObject({
      kind: 'retry_failed',
      event_types: ['task.created'],
      count: 3,
    })
    expect(await json(...retry)).toMatchObject({ kind: 'retry_failed', total: 3, state: 'running' })
    await until('everything has arrived', async () => {
      const list = await json('deliveries', 'undelivered', '--account', account.account_id)
      return list.length === 0
    })

    const test = await json('webhook', 'test', webhook)
    expect(test).toEqual({ id: expect.any(String), webhook_id: webhook })
    await receiver.received(47)
    expect(JSON.parse(String(receiver.requests[46]?.body))).toMatchObject({
      id: test.id,
      event_type: 'webhook.test',
    })
    server.process.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ status: 0 })
  })
})
