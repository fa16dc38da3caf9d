/** A server stops when the requests in flight have their responses. */
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../helpers.ts'

interface Connection {
  socket: Socket
  received(): string
  closed: Promise<void>
}

function open({ url }: TestApp): Connection {
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

const AT_ONCE_MS = 5_000

test('connections without a request in flight do not delay a stop', async () => {
  const app = await startApp()
  const [silent, halfAHead, answered] = [open(app), open(app), open(app)]
  halfAHead.socket.write('GET /healthz HTTP/1.1\r\nHost: te')
  answered.socket.write('GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n')
  await until('an answer', () => answered.received().includes('alive'))
  const start = performance.now()
  await app[Symbol.asyncDispose]()
  await Promise.all([silent.closed, halfAHead.closed, answered.closed])
  expect(performance.now() - start).toBeLessThan(AT_ONCE_MS)
})

test('a second stop waits for the first', async () => {
  const app = await startApp()
  await Promise.all([app.stop(), app.stop()])
  await app[Symbol.asyncDispose]()
})

test('a request in flight: gets its response, then its connection closes', async () => {
  const app = await startApp()
  const { key } = await app.newAccount()
  const { socket, received, closed } = open(app)
  const body = '{"full_name": "Ada"}'
  const head = `POST /public/v1/participants HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body.slice(0, 5))
  // Its response proves that the requests before it have reached the server.
  await app.call('GET', '/healthz')
  const stopped = app[Symbol.asyncDispose]()
  await expect(app.call('GET', '/healthz')).rejects.toThrow('fetch failed')
  socket.write(body.slice(5))
  await stopped
  await closed
  expect(received()).toMatch(/^HTTP\/1\.1 201 /)
  socket.destroy()
})
