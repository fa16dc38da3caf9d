/** The listening socket, and an end to it that takes no longer than it must. */
import { createServer, type RequestListener, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { promisify } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import type { Config } from './config.ts'

export interface HttpServer {
  port: number
  /** Takes no more requests. Those in flight are answered, for up to `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Listens on the configured address. Throws when that cannot be, with the system's code. */
export async function listen(
  handle: RequestListener,
  { host, port }: Pick<Config, 'host' | 'port'>,
): Promise<HttpServer> {
  const server = createServer(handle)
  // Node takes a connection for idle only after its first answer. These have no request in flight, for whatever reason.
  const waiting = new Set<Socket>()
  let stopping = false

  server.on('connection', (socket) => {
    waiting.add(socket)
    socket.once('close', () => waiting.delete(socket))
  })
  server.prependListener('request', ({ socket }, response) => {
    waiting.delete(socket)
    if (stopping) response.setHeader('Connection', 'close')
    response.once('close', () => {
      if (stopping) socket.end()
      else waiting.add(socket)
    })
  })
  server.on('clientError', answerUnreadable)

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async stop(graceMs) {
      stopping = true
      const closed = promisify(server.close.bind(server))()
      for (const socket of waiting) socket.destroy()
      const force = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(force)
    },
  }
}

/** By the code of Node's parser; anything else is 400. */
const UNREADABLE: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are larger than 16 KiB.' },
  HPE_INVALID_METHOD: { status: 501, message: 'There is no such HTTP method.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
}

/** What Node's parser refuses before there is a request: answered in the shape of every other error. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const { status, message } = UNREADABLE[error.code ?? ''] ?? {
    status: 400,
    message: 'This is not a valid HTTP request.',
  }
  const body = JSON.stringify({ message })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${uuidv7()}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
