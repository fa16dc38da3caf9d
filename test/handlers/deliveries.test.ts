/** Deliveries and bulk jobs by API. */
import { describe, expect, inject, test } from 'vitest'
import { type Client, sharedApp, until } from '../helpers.ts'
import { type Answer, type Receiver, signatureOf, startReceiver } from '../receiver.ts'
import { type Body, expectSuccess } from './new-records.ts'

/** No scheduled attempt after the first happens during a test. */
const DELAYS = [600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400].join(',')
const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: DELAYS } })

interface Subscriber extends AsyncDisposable {
  client: Client
  receiver: Receiver
  webhook: Body
}

/** A webhook for new participants. */
async function newSubscriber(...answers: Answer[]): Promise<Subscriber> {
  const client = await app.newClient()
  const receiver = await startReceiver({ answers })
  const webhook = await expectSuccess(
    client.post('/webhooks', {
      url: `http://127.0.0.1:${receiver.port}/`,
      event_types: ['participant.created'],
    }),
  )
  return { client, receiver, webhook, [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose]() }
}

const post = (client: Client, path: string, body?: object): Promise<Body> =>
  expectSuccess(client.post(path, body))

async function newDelivery(client: Client, fullName = 'Ada'): Promise<Body> {
  await post(client, '/participants', { full_name: fullName })
  return (await client.get('/deliveries?sort=-id')).body.data[0]
}

/** The delivery with its attempts, in this state after this many attempts. */
function reached(client: Client, id: string, state: string, attempts: number): Promise<Body> {
  return until(`the delivery is ${state}`, async () => {
    const { body } = await client.get(`/deliveries/${id}`)
    return body.state === state && body.attempt_count === attempts && body
  })
}

test('testWebhook → a delivery with one attempt, signed with the secret of the response', async () => {
  await using subscriber = await newSubscriber({ status: 200, body: 'ok', headers: { 'x-a': 'b' } })
  const { client, receiver, webhook } = subscriber
  const created = await client.post(`/webhooks/${webhook.id}/test`, undefined)
  expect(created).toMatchObject({
    status: 201,
    body: { event_type: 'webhook.test', event_id: null },
  })
  const { attempts, ...delivery } = await reached(client, created.body.id, 'delivered', 1)
  expect(attempts).toEqual([
    {
      number: 1,
      trigger: 'test',
      started_at: expect.any(String),
      duration_ms: expect.any(Number),
      outcome: 'success',
      status: 200,
      response_headers: expect.objectContaining({ 'x-a': 'b' }),
      response_body: 'ok',
      error: null,
      ip_address: '127.0.0.1',
    },
  ])
  expect((await client.get('/deliveries')).body.data).toEqual([delivery])
  const [request] = await receiver.received(1)
  const signature = request?.headers['x-service-signature']
  expect(signature).toBe(signatureOf(webhook.secret, request?.body ?? Buffer.alloc(0)))
})

describe('commands', () => {
  test('retry and resend: one attempt each; a delivered delivery cannot be retried or cancelled', async () => {
    await using subscriber = await newSubscriber(500, 500, 204, 204)
    const { client } = subscriber
    const { id } = await newDelivery(client)
    const waiting = await reached(client, id, 'retrying', 1)
    expect(Date.parse(waiting.next_attempt_at)).toBeGreaterThan(Date.now() + 500_000)
    // The second scheduled attempt, at once.
    await post(client, `/deliveries/${id}/retry`)
    await reached(client, id, 'retrying', 2)
    expect(await post(client, `/deliveries/${id}/cancel`)).toMatchObject({
      state: 'failed',
      failure_reason: 'cancelled',
      next_attempt_at: null,
    })
    expect(await post(client, `/deliveries/${id}/cancel`)).toMatchObject({ state: 'failed' })
    await post(client, `/deliveries/${id}/retry`)
    await reached(client, id, 'delivered', 3)
    for (const command of ['retry', 'cancel'])
      expect(await client.post(`/deliveries/${id}/${command}`, undefined)).toMatchObject({
        status: 409,
      })
    await post(client, `/deliveries/${id}/resend`)
    const { attempts } = await reached(client, id, 'delivered', 4)
    expect(attempts.map(({ trigger }: Body) => trigger)).toEqual([
      'schedule',
      'schedule',
      'retry',
      'resend',
    ])
  })

  test.runIf(inject('database') === 'postgres')(
    'resend of a delivery that is delivered at this moment: sends it once more',
    async () => {
      await using subscriber = await newSubscriber(500, 204)
      const { client } = subscriber
      const { id } = await newDelivery(client)
      await reached(client, id, 'retrying', 1)
      const { write, read } = app.db
      const resent = await write.transaction(async (trx) => {
        const ended = { state: 'delivered', next_attempt_at: null }
        await trx('deliveries').where({ id }).update(ended)
        const response = client.post(`/deliveries/${id}/resend`, undefined)
        await until('the request waits', async () => {
          const waiting = read('pg_stat_activity').where({ wait_event_type: 'Lock' })
          return (await waiting.whereRaw('datname = current_database()').first('pid')) !== undefined
        })
        return () => response
      })
      expect(await resent()).toMatchObject({ status: 200, body: { state: 'delivered' } })
      await reached(client, id, 'delivered', 2)
    },
  )

  test('a disabled or deleted webhook → 409; the log of a deleted webhook can be read', async () => {
    await using subscriber = await newSubscriber(500)
    const { client, webhook } = subscriber
    const { id } = await newDelivery(client)
    await reached(client, id, 'retrying', 1)
    await expectSuccess(client.patch(`/webhooks/${webhook.id}`, { enabled: false }))
    expect(await client.get(`/deliveries/${id}`)).toMatchObject({
      body: { state: 'failed', failure_reason: 'webhook_disabled' },
    })
    const disabled = { status: 409, body: { message: 'The webhook is disabled. Enable it first.' } }
    const since = '2026-01-01T00:00:00Z'
    for (const [path, body] of [
      [`/deliveries/${id}/retry`],
      [`/deliveries/${id}/resend`],
      [`/webhooks/${webhook.id}/test`],
      [`/webhooks/${webhook.id}/send-missed`, { since }],
      [`/webhooks/${webhook.id}/retry-failed`, { since }],
      [`/webhooks/${webhook.id}/retry-waiting`, {}],
    ] as const)
      expect(await client.post(path, body)).toMatchObject(disabled)
    await expectSuccess(client.delete(`/webhooks/${webhook.id}`))
    expect(await client.post(`/deliveries/${id}/retry`, undefined)).toMatchObject({
      status: 409,
      body: { message: 'The webhook was deleted.' },
    })
    expect(await client.get(`/deliveries?filter[webhook_id]=${webhook.id}`)).toMatchObject({
      body: { meta: { total: 1 } },
    })
  })
})

describe('bulk jobs', () => {
  test('retryFailedDeliveries retries what failed in the period; a cancelled job stays as it is', async () => {
    await using subscriber = await newSubscriber(500, 204)
    const { client, webhook } = subscriber
    const { id } = await newDelivery(client)
    await reached(client, id, 'retrying', 1)
    const { updated_at } = await post(client, `/deliveries/${id}/cancel`)
    const start = (since: string) =>
      post(client, `/webhooks/${webhook.id}/retry-failed`, { since, rate: 500 })
    const ended = (job: Body): Promise<Body> =>
      until('the job has ended', async () => {
        const { body } = await client.get(`/bulk-jobs/${job.id}`)
        return body.state === 'completed' && body
      })
    const later = await start(new Date(Date.parse(updated_at) + 1).toISOString())
    expect(await ended(later)).toMatchObject({ total: 0, done: 0 })
    expect(await ended(await start(updated_at))).toMatchObject({
      kind: 'retry_failed',
      webhook_id: webhook.id,
      event_types: null,
      total: 1,
      done: 1,
      ended_at: expect.any(String),
    })
    await reached(client, id, 'delivered', 2)
    expect(await post(client, `/bulk-jobs/${later.id}/cancel`)).toMatchObject({
      state: 'completed',
    })
  })

  test('retryWaitingDeliveries makes scheduled attempts now; the job says where its deliveries are', async () => {
    await using subscriber = await newSubscriber(500, 500, 500, 204, 204, 500)
    const { client, webhook } = subscriber
    const ids: string[] = []
    for (const name of ['Ada', 'Grace', 'Mary']) {
      const { id } = await newDelivery(client, name)
      await reached(client, id, 'retrying', 1)
      ids.push(id)
    }
    const path = `/webhooks/${webhook.id}/retry-waiting`
    const others = await post(client, path, { event_types: ['task.created'] })
    expect(others).toMatchObject({ kind: 'retry_waiting', total: 0 })
    const result = (job: Body, wanted: object): Promise<Body> =>
      until('the job has this result', async () => {
        const { body } = await client.get(`/bulk-jobs/${job.id}`)
        const isWanted = Object.entries(wanted).every(([name, value]) => body[name] === value)
        return isWanted && body
      })
    await result(others, { state: 'completed' })

    const job = await post(client, path, {})
    expect(job).toMatchObject({ total: 3, rate: 50, delivered: 0, failed: 0, waiting: 0 })
    await result(job, { state: 'completed', done: 3, delivered: 2, failed: 0, waiting: 1 })
    const found = await Promise.all(
      ids.map(async (id) => (await client.get(`/deliveries/${id}`)).body),
    )
    const waiting = found.find(({ state }) => state === 'retrying')
    // The attempts belong to the schedule, so the next one is the third.
    expect(waiting).toMatchObject({ attempt_count: 2 })
    expect(waiting.attempts.map(({ trigger }: Body) => trigger)).toEqual(['schedule', 'schedule'])
    expect(Date.parse(waiting.next_attempt_at)).toBeGreaterThan(Date.now() + 600_000)
    await post(client, `/deliveries/${waiting.id}/cancel`)
    await result(job, { delivered: 2, failed: 1, waiting: 0 })

    // A later job takes the delivery over.
    const since = '2026-01-01T00:00:00Z'
    const later = await post(client, `/webhooks/${webhook.id}/retry-failed`, { since })
    await result(later, { state: 'completed', done: 1 })
    await result(job, { delivered: 2, failed: 0, waiting: 0 })
  })

  test('sendMissedEvents sends what happened while the webhook was disabled; a second job → 409', async () => {
    await using subscriber = await newSubscriber(204)
    const { client, webhook } = subscriber
    const path = `/webhooks/${webhook.id}`
    const { disabled_at } = await expectSuccess(client.patch(path, { enabled: false }))
    for (const full_name of ['Ada', 'Grace']) await post(client, '/participants', { full_name })
    await expectSuccess(client.patch(path, { enabled: true }))
    const body = { since: disabled_at, rate: 1 }
    const job = await post(client, `${path}/send-missed`, body)
    expect(job).toMatchObject({ kind: 'send_missed', state: 'running', total: 2, rate: 1 })
    expect(await client.post(`${path}/send-missed`, body)).toMatchObject({ status: 409 })
    expect(await client.post(`${path}/send-missed`, { ...body, until: disabled_at })).toMatchObject(
      {
        status: 422,
        body: { errors: { until: ['must be after since.'] } },
      },
    )
    await until('an event arrives', async () => subscriber.receiver.requests.length > 0)
    expect(await post(client, `/bulk-jobs/${job.id}/cancel`)).toMatchObject({
      state: expect.stringMatching(/cancelled|completed/),
    })
  })
})

describe('listDeliveries', () => {
  test('filters by webhook, state, event type and time, newest first with sort=-id', async () => {
    await using subscriber = await newSubscriber(204)
    const { client, webhook } = subscriber
    const first = await newDelivery(client)
    await reached(client, first.id, 'delivered', 1)
    const second = await newDelivery(client, 'Grace')
    await reached(client, second.id, 'delivered', 1)
    const third = await post(client, `/webhooks/${webhook.id}/test`)
    await reached(client, third.id, 'delivered', 1)
    await post(client, `/deliveries/${third.id}/resend`)
    const idsFor = async (query: string): Promise<string[]> =>
      (await client.get(`/deliveries?${query}`)).body.data.map(({ id }: Body) => id)
    const all = [first.id, second.id, third.id]
    const time = second.created_at
    for (const [query, want] of [
      ['', all],
      ['sort=-id', all.toReversed()],
      [`filter[webhook_id]=${webhook.id.toUpperCase()}`, all],
      ['filter[state]=delivered', all],
      ['filter[state]=failed,retrying', []],
      ['filter[event_type]=webhook.test', [third.id]],
      [`filter[created_after]=${time}`, all.filter((id) => id > second.id)],
      [`filter[created_before]=${time}`, [first.id]],
    ] as const)
      expect([query, await idsFor(query)]).toEqual([query, want])
  })
})
