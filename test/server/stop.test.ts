/** A stop waits for the responses to requests in flight, and for nothing else. */
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../helpers.ts'

interface Connection {
  socket: Socket
  received(): string
  closed: Promise<void>
}

function openConnection({ url }: TestApp): Connection {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => undefined)
  return {
    socket,
    received: () => text,
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  }
}

/** Less than the time that requests in flight get. */
const WITHOUT_DELAY_MS = 5_000

test('silent, incomplete and idle connections do not delay a stop', async () => {
  const app = await startApp()
  const [silent, incomplete, idle] = [openConnection(app), openConnection(app), openConnection(app)]
  incomplete.socket.write('GET /healthz HTTP/1.1\r\nHost: te')
  idle.socket.write('GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n')
  await until('the response arrives', () => idle.received().includes('alive'))
  const startMs = performance.now()
  await app[Symbol.asyncDispose]()
  await Promise.all([silent.closed, incomplete.closed, idle.closed])
  expect(performance.now() - startMs).toBeLessThan(WITHOUT_DELAY_MS)
})

test('a second stop waits for the first', async () => {
  const app = await startApp()
  const ended: string[] = []
  await Promise.all([
    app.stop().then(() => ended.push('first')),
    app.stop().then(() => ended.push('second')),
  ])
  expect(ended).toEqual(['first', 'second'])
  await app[Symbol.asyncDispose]()
})

test('a request in flight: gets its response, then its connection closes', async () => {
  const app = await startApp()
  const { key } = await app.newAccount()
  const { socket, received, closed } = openConnection(app)
  const body = '{"full_name": "Ada"}'
  const head = `POST /public/v1/participants HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body.slice(0, 5))
  // The response to this request proves that the bytes above have reached the server.
  await app.call('GET', '/healthz')
  const stopped = app[Symbol.asyncDispose]()
  await expect(app.call('GET', '/healthz')).rejects.toThrow('fetch failed')
  socket.write(body.slice(5))
  await stopped
  await closed
  expect(received()).toMatch(/^HTTP\/1\.1 201 /)
  socket.destroy()
})
