/** The listening socket, and a stop that waits only for requests in flight. */
import { createServer, type RequestListener, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { promisify } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import type { Config } from './config.ts'

export interface HttpServer {
  port: number
  /** Refuses new requests. Those in flight have up to `graceMs` to finish. */
  stop(graceMs: number): Promise<void>
}

/** Listens on the host and port. Throws the system's error, for example EADDRINUSE. */
export async function listen(
  handle: RequestListener,
  { host, port }: Pick<Config, 'host' | 'port'>,
): Promise<HttpServer> {
  const server = createServer(handle)
  // Connections without a request in flight. Node closes only those that have had a response.
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

/** Responses by the error code of Node's HTTP parser. Other codes get 400. */
const UNREADABLE: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are larger than 16 KiB.' },
  HPE_INVALID_METHOD: { status: 501, message: 'There is no such HTTP method.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
}

/** Responds to what Node's parser refuses, in the form of every other error. */
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
