/** The result of one attempt, and the attempts that follow it. */
import { beforeAll, expect, test } from 'vitest'
import { listAttempts, type RecordedAttempt } from '../../records/attempts.ts'
import { type Answer, signatureOf, startReceiver } from '../receiver.ts'
import { deliver, newSubscriber, sharedInstallation } from './harness.ts'

const installation = sharedInstallation()
beforeAll(() => installation.start())

test('success: one signed request, and the delivery is delivered', async () => {
  await using subscriber = await newSubscriber(installation, {
    answers: [{ status: 200, headers: { 'x-answer': 'yes' }, body: 'thanks' }],
  })
  const { tenant, receiver, webhookId } = subscriber
  const { id } = await tenant.emitOne()
  const delivery = await tenant.settled(id)
  expect(delivery).toMatchObject({
    state: 'delivered',
    attempts: 1,
    failureReason: null,
    nextTrigger: null,
  })
  const [request] = receiver.requests
  expect(receiver.requests).toHaveLength(1)
  expect(JSON.parse(String(request?.body))).toMatchObject({
    id,
    event_type: 'participant.created',
    data: [],
  })
  expect(request?.headers).toMatchObject({
    'x-service-signature': signatureOf(
      await tenant.secretOf(webhookId),
      request?.body ?? Buffer.of(),
    ),
    'webhook-id': id,
  })
  const attempts = await listAttempts(tenant.scope, id)
  expect(attempts).toMatchObject([
    {
      number: 1,
      trigger: 'schedule',
      outcome: 'success',
      status: 200,
      responseBody: 'thanks',
      error: null,
    },
  ])
  expect(attempts[0]?.responseHeaders).toMatchObject({ 'x-answer': 'yes' })
})

test('failures, then success: retries with the same ID and bytes', async () => {
  await using subscriber = await newSubscriber(installation, { answers: [500, 503, 204] })
  const { tenant, receiver } = subscriber
  const { id } = await tenant.emitOne()
  expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 3 })
  expect(new Set(receiver.requests.map(({ body }) => body.toString('hex'))).size).toBe(1)
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))).toEqual(
    new Set([id]),
  )
  const attempts = await listAttempts(tenant.scope, id)
  expect(attempts.map(({ outcome, status }) => [outcome, status])).toEqual([
    ['http_error', 500],
    ['http_error', 503],
    ['success', 204],
  ])
  for (const [index, attempt] of attempts.entries()) {
    const previous = attempts[index - 1]
    if (previous === undefined) continue
    const previousEndedAt = previous.startedAt + previous.durationMs
    // The retry delay is 30 ms. The times are rounded to milliseconds.
    expect(attempt.startedAt).toBeGreaterThanOrEqual(previousEndedAt + 29)
  }
})

test('ten failures: the delivery has failed, and nothing more is sent', async () => {
  await using subscriber = await newSubscriber(installation, { answers: [500] })
  const { tenant, receiver } = subscriber
  const { id } = await tenant.emitOne()
  expect(await tenant.settled(id)).toMatchObject({
    state: 'failed',
    attempts: 10,
    failureReason: 'attempts_exhausted',
  })
  expect(receiver.requests).toHaveLength(10)
  expect((await listAttempts(tenant.scope, id)).map(({ number }) => number)).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ])
})

test.each<{ name: string; answers: Answer[]; want: Partial<RecordedAttempt> }>([
  {
    name: 'no response',
    answers: ['hang', 204],
    want: { outcome: 'timeout', status: null, error: 'There was no response within 1 second.' },
  },
  {
    name: 'a connection that is cut',
    answers: ['reset', 204],
    want: {
      outcome: 'unreachable',
      status: null,
      error: 'The endpoint closed the connection before it responded.',
    },
  },
  {
    name: 'a redirect, which is not followed',
    answers: [{ status: 302, headers: { location: '/elsewhere' } }, 204],
    want: {
      outcome: 'http_error',
      status: 302,
      error: 'The endpoint redirected (302). Redirects are not followed.',
    },
  },
  {
    name: 'a client error',
    answers: [{ status: 410, body: 'gone' }, 204],
    want: {
      outcome: 'http_error',
      status: 410,
      responseBody: 'gone',
      error: 'The endpoint responded with status 410.',
    },
  },
])('$name: a failed attempt that says why, and a retry', async ({ answers, want }) => {
  await using subscriber = await newSubscriber(installation, { answers })
  const { tenant, receiver } = subscriber
  const { id } = await tenant.emitOne()
  expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
  expect((await listAttempts(tenant.scope, id))[0]).toMatchObject(want)
  expect(receiver.requests.every(({ path }) => path === '/webhooks')).toBe(true)
})

test('a large response: the attempt succeeds; 16 KiB are stored, without NUL and split characters', async () => {
  const body = Buffer.concat([Buffer.from('a\0b'), Buffer.from('é'.repeat(50_000))])
  await using subscriber = await newSubscriber(installation, { answers: [{ status: 200, body }] })
  const { tenant } = subscriber
  const { id } = await tenant.emitOne()
  expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
  const [attempt] = await listAttempts(tenant.scope, id)
  expect(attempt?.responseBody?.startsWith('a\uFFFDbéé')).toBe(true)
  // U+FFFD takes two bytes more than the NUL that it replaces.
  expect(Buffer.byteLength(attempt?.responseBody ?? '')).toBeLessThanOrEqual(16 * 1024 + 2)
  expect(attempt?.responseBody?.endsWith('é')).toBe(true)
})

test('connection refused: unreachable', async () => {
  const receiver = await startReceiver()
  await receiver.close()
  const { attempts } = await deliver(installation, receiver.url)
  expect(attempts[0]).toMatchObject({
    outcome: 'unreachable',
    status: null,
    error: 'Connection refused: nothing listens at 127.0.0.1.',
  })
})

test('blocked IP address: retried like any failure', async () => {
  const { delivery, attempts } = await deliver(installation, 'http://10.255.255.1/')
  expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
  expect(attempts[0]).toMatchObject({
    outcome: 'blocked',
    error: expect.stringContaining('10.255.255.1, which is not public'),
  })
})
