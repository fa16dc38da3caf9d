/** Clients that send or read slowly, or not at all, lose their connections. */
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { listen } from '../../server/http.ts'
import { until } from '../helpers.ts'

const TIMEOUT_MS = 600
/** The server looks for slow clients only twelve times in a timeout, and machines may be busy. */
const LATEST_MS = TIMEOUT_MS + 5_000
/** More than the kernel buffers for a client that does not read. */
const LARGE_BYTES = 32 * 1024 * 1024

async function serve(handle: RequestListener, maxConnections?: number) {
  const server = await listen(handle, {
    host: '127.0.0.1',
    port: 0,
    clientTimeoutMs: TIMEOUT_MS,
    maxConnections,
  })
  return { ...server, [Symbol.asyncDispose]: () => server.stop(0) }
}

/** The text that the socket has received so far. */
function collectText(socket: Socket): () => string {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  return () => text
}

/** Resolves with the milliseconds until the server closes the connection. */
async function closedAfter(socket: Socket): Promise<number> {
  const startMs = performance.now()
  socket.on('error', () => undefined)
  await once(socket, 'close')
  return performance.now() - startMs
}

function expectAboutTimeout(ms: number): void {
  expect(ms).toBeGreaterThan(TIMEOUT_MS * 0.9)
  expect(ms).toBeLessThan(LATEST_MS)
}

/** `handle` sends `chunks`, each when the previous one has been read. `ended` resolves when the
 *  response has ended: complete, or because its connection was closed. */
function newDownload(chunks: Buffer[]) {
  const ended = Promise.withResolvers<{ ms: number; isComplete: boolean }>()
  return {
    ended: ended.promise,
    handle: ((_, response) => {
      const startMs = performance.now()
      response.once('close', () =>
        ended.resolve({
          ms: performance.now() - startMs,
          isComplete: response.writableFinished,
        }),
      )
      Readable.from(chunks).pipe(response)
    }) satisfies RequestListener,
  }
}

/** Sends a request. The caller may read the response. */
function sendGet(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
  return socket
}

const HEAD = 'POST / HTTP/1.1\r\nHost: test\r\n'

test.each([
  { sends: 'headers', start: HEAD, next: 'X-Slow: 1\r\n' },
  { sends: 'a body', start: `${HEAD}Content-Length: 1000\r\n\r\n`, next: 'x' },
])('a client that sends $sends slowly: 408', async ({ start, next }) => {
  await using server = await serve((request, response) =>
    request.resume().on('end', () => response.end()),
  )
  const socket = connect(server.port, '127.0.0.1')
  const received = collectText(socket)
  socket.write(start)
  const dripping = setInterval(() => socket.write(next), TIMEOUT_MS / 6)
  expectAboutTimeout(await closedAfter(socket))
  clearInterval(dripping)
  expect(received()).toMatch(/^HTTP\/1\.1 408 /)
  expect(received()).toContain('{"message":"The request took too long to arrive."}')
})

test('a client that does not read its response loses its connection', async () => {
  const { handle, ended } = newDownload([Buffer.alloc(LARGE_BYTES)])
  await using server = await serve(handle)
  sendGet(server.port).on('error', () => undefined)
  const { ms, isComplete } = await ended
  expect(isComplete).toBe(false)
  expectAboutTimeout(ms)
})

test('a client that reads a long file slowly gets all of it', async () => {
  const chunk = Buffer.alloc(256 * 1024)
  const { handle, ended } = newDownload(Array(LARGE_BYTES / chunk.length).fill(chunk))
  await using server = await serve(handle)
  const socket = sendGet(server.port)
  socket.on('data', () => {
    socket.pause()
    setTimeout(() => socket.resume(), 3)
  })
  const { ms, isComplete } = await ended
  expect(isComplete).toBe(true)
  expect(ms).toBeGreaterThan(TIMEOUT_MS)
  socket.destroy()
})

test('connections above the limit are closed at once', async () => {
  await using server = await serve((_, response) => void response.end(), 2)
  const allowed = [connect(server.port, '127.0.0.1'), connect(server.port, '127.0.0.1')]
  await Promise.all(allowed.map((socket) => once(socket, 'connect')))
  expect(await closedAfter(connect(server.port, '127.0.0.1'))).toBeLessThan(TIMEOUT_MS / 2)
  for (const socket of allowed) socket.destroy()
})

test('the server forgets clients that disconnect before their response', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const sockets: WeakRef<Socket>[] = []
  await using server = await serve(({ socket }) => void sockets.push(new WeakRef(socket)))
  for (let count = 1; count <= 20; count++) {
    const client = sendGet(server.port)
    await until('the server has the socket', () => sockets.length === count)
    client.destroy()
  }
  await until('the sockets are collected', () => {
    collectGarbage()
    return sockets.filter((socket) => socket.deref() !== undefined).length < 5
  })
})

test('the refusal of an unreadable request is not written into the unfinished previous response', async () => {
  await using server = await serve((_, response) => {
    response.setHeader('Content-Length', 1_000)
    response.write('first')
  })
  const socket = sendGet(server.port)
  const received = collectText(socket)
  await until('the first response', () => received().includes('first'))
  socket.write('not HTTP\r\n\r\n')
  await closedAfter(socket)
  expect(received().endsWith('first')).toBe(true)
})
