/** Draining: what happens between SIGTERM and the end of a node. */
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { startApp, type TestApp } from '../helpers.ts'
import { newSubscriber } from '../webhooks/harness.ts'

/** An hour, so that a drain does not end by itself during a test. */
const LONG_DRAIN_MS = '3600000'
/** Never aborts, so the drain is not skipped. */
const NO_SKIP = new AbortController().signal

/** Returns the status, the `Connection` header and the body. `fetch` hides the header. */
function get(
  app: TestApp,
  path: string,
): Promise<{ status?: number; connection?: string; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(app.url + path, { agent: false, headers: { Connection: 'keep-alive' } })
    sent.on('error', reject).on('response', async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode, connection: response.headers.connection, text })
    })
    sent.end()
  })
}

test('during the drain /readyz is 503, and requests are served with Connection: close', async () => {
  const app = await startApp({ environment: { DRAIN_MS: LONG_DRAIN_MS } })
  const account = await app.newAccount()
  expect(await get(app, '/healthz')).toMatchObject({ status: 200, connection: 'keep-alive' })
  const skip = new AbortController()
  const drained = app.drain(skip.signal)
  expect(await get(app, '/readyz')).toEqual({
    status: 503,
    connection: 'close',
    text: '{"status":"not ready","reasons":["draining"]}',
  })
  expect((await app.as(account).post('/participants', { full_name: 'Ada' })).status).toBe(201)
  expect(await get(app, '/healthz')).toMatchObject({ status: 200, connection: 'close' })
  skip.abort()
  await drained
  await app[Symbol.asyncDispose]()
})

test('a drain ends after DRAIN_MS', async () => {
  await using app = await startApp({ environment: { DRAIN_MS: '200' } })
  const startMs = performance.now()
  await app.drain(NO_SKIP)
  // Timers may be a few milliseconds early.
  expect(performance.now() - startMs).toBeGreaterThan(190)
})

test('a draining node starts no more attempts', async () => {
  const app = await startApp({ role: 'all', environment: { DRAIN_MS: LONG_DRAIN_MS } })
  await using subscriber = await newSubscriber(app)
  const { tenant, receiver } = subscriber
  await tenant.settled((await tenant.emitOne()).id)
  const skip = new AbortController()
  const drained = app.drain(skip.signal)
  await tenant.emit(3)
  // A leader looks for attempts every 500 ms. A node that still makes attempts would make these.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(receiver.requests).toHaveLength(1)
  expect((await tenant.deliveries()).map(({ attempts }) => attempts)).toEqual([0, 0, 0, 1])
  skip.abort()
  await drained
  await app[Symbol.asyncDispose]()
})

test('a node that is only a worker ends its drain at once, and finishes its attempts in flight', async () => {
  const app = await startApp({ role: 'worker', environment: { DRAIN_MS: LONG_DRAIN_MS } })
  await using subscriber = await newSubscriber(app, { answers: [{ afterMs: 500 }] })
  const { tenant, receiver } = subscriber
  const { id } = await tenant.emitOne()
  await receiver.received(1)
  await app.drain(NO_SKIP)
  expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
  await app[Symbol.asyncDispose]()
})

test('responses name the keep-alive timeout: 65 s, or KEEP_ALIVE_TIMEOUT_MS', async () => {
  await using app = await startApp()
  await using other = await startApp({ environment: { KEEP_ALIVE_TIMEOUT_MS: '2000' } })
  expect((await fetch(`${app.url}/healthz`)).headers.get('keep-alive')).toBe('timeout=65')
  expect((await fetch(`${other.url}/healthz`)).headers.get('keep-alive')).toBe('timeout=2')
})
