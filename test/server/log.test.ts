/** The log of the service: one line for each request, and few lines in an outage. */
import { expect, test } from 'vitest'
import { newLogger } from '../../server/log.ts'
import { sendRaw } from '../contract/http.ts'
import { startApp, type TestApp, until } from '../helpers.ts'

interface Line extends Record<string, unknown> {
  level: string
  msg: string
  /** How often each message was left out since the previous line. */
  repeated?: Record<string, number>
}

async function startLogged(logLevel: string): Promise<{ app: TestApp; lines: Line[] }> {
  const lines: Line[] = []
  const logTo = { write: (line: string) => void lines.push(JSON.parse(line)) }
  return { app: await startApp({ logLevel, logTo }), lines }
}

test('info: one line for each request, with its request ID and without its query', async () => {
  const { app, lines } = await startLogged('info')
  await using _ = app
  const account = await app.newAccount()
  const headers = { 'X-Request-Id': 'my-request' }
  await app.as(account).get('/participants?filter[email]=ada@example.com', headers)
  await app.as({ key: 'nobody' }).get('/tasks/none')
  expect(lines).toEqual([
    {
      level: 'info',
      time: expect.any(String),
      requestId: 'my-request',
      method: 'GET',
      path: '/public/v1/participants',
      operationId: 'listParticipants',
      accountId: account.accountId,
      status: 200,
      duration_ms: expect.any(Number),
      msg: 'Request completed',
    },
    expect.objectContaining({ path: '/public/v1/tasks/none', operationId: 'getTask', status: 401 }),
  ])
})

test('info: paths show neither invitation tokens nor API keys', async () => {
  const { app, lines } = await startLogged('info')
  await using _ = app
  const { key } = await app.newAccount()
  await app.call('GET', '/console/invitation/whispered')
  await app.call('GET', `/public/v1/tasks/${key}`)
  expect(lines.map(({ path }) => path)).toEqual([
    '/console/invitation/[secret]',
    `/public/v1/tasks/${key.slice(0, 8)}…`,
  ])
})

test('error: paths show no API keys', async () => {
  const { app, lines } = await startLogged('error')
  await using _ = app
  const account = await app.newAccount()
  await app.db.read.destroy()
  await app.as(account).get(`/tasks/${account.key}`)
  expect(lines.map(({ path }) => path)).toEqual([`/public/v1/tasks/${account.key.slice(0, 8)}…`])
})

test('info: requests for health, metrics and violations are not logged', async () => {
  const { app, lines } = await startLogged('info')
  await using _ = app
  for (const path of ['/healthz', '/readyz', '/metrics', '/violations']) await app.call('GET', path)
  expect(lines).toEqual([])
})

test('outage: the first error is logged, and the next ones are counted in one line a second', async () => {
  const { app, lines } = await startLogged('warn')
  await using _ = app
  const account = await app.newAccount()
  await app.db.read.destroy()
  const startMs = performance.now()
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => app.as(account).get('/participants')),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(503))
  const MESSAGE = 'The database cannot be reached or is overloaded'
  const countRepeated = (): number => {
    let sum = 0
    for (const { repeated } of lines) sum += repeated?.[MESSAGE] ?? 0
    return sum
  }
  await until('the errors after the first one are counted', () => countRepeated() >= 19)
  expect(lines[0]).toMatchObject({
    level: 'error',
    err: { message: expect.any(String), stack: expect.any(String) },
    msg: MESSAGE,
  })
  expect(lines[1]).toMatchObject({
    level: 'error',
    repeated: { [MESSAGE]: expect.any(Number) },
    msg: 'The database is still unavailable',
  })
  // At most one line a second.
  expect(lines.length).toBeLessThanOrEqual((performance.now() - startMs) / 1000 + 1)
})

test('error: a method that a page does not have → 405 with Allow, and no line', async () => {
  const { app, lines } = await startLogged('error')
  await using _ = app
  for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'MKCOL']) {
    const send = (path: string): Promise<string> =>
      sendRaw(app.url, `${method} ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`)
    for (const path of ['/', '/healthz', '/docs/', '/openapi.yaml', '/console', '/console/sign-in'])
      expect(await send(path)).toMatch(/^HTTP\/1\.1 405 .*X-Request-Id: .*Allow: HEAD, GET/is)
    for (const path of ['/nothing', '/console/nothing', '/public/v1/nothing'])
      expect(await send(path)).toMatch(/^HTTP\/1\.1 404 /)
  }
  expect(lines).toEqual([])
})

test('error: a plain object of the queue is logged without the values of its statement', () => {
  const lines: Line[] = []
  const log = newLogger('error', { write: (line) => void lines.push(JSON.parse(line)) })
  log.error({ err: { message: 'lost', code: '57P01', detail: 'Key (email)=(ada@example.com)' } })
  expect(lines[0]?.err).toEqual({ type: 'Object', message: 'lost', stack: '', code: '57P01' })
})

test('outage: the error that ends the process is logged', () => {
  const lines: Line[] = []
  const log = newLogger('error', { write: (line) => void lines.push(JSON.parse(line)) })
  const err = Object.assign(new Error('lost'), { code: '57P01' })
  log.error({ err }, 'The database cannot be reached or is overloaded')
  log.fatal({ err }, 'An unexpected error ends the process')
  expect(lines.map(({ level }) => level)).toEqual(['error', 'fatal'])
})

test('a statement that takes too long is no outage', () => {
  const lines: Line[] = []
  const log = newLogger('error', { write: (line) => void lines.push(JSON.parse(line)) })
  for (const requestId of ['first', 'second']) {
    const err = Object.assign(new Error('canceling statement'), { code: '57014' })
    log.error({ err, requestId }, 'The database cannot be reached or is overloaded')
  }
  expect(lines).toMatchObject([{ requestId: 'first' }, { requestId: 'second' }])
  for (const line of lines) expect(line).not.toHaveProperty('outage')
})
