/** The listening socket, and a stop that waits only for requests in flight. */
import { createServer, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { promisify } from 'node:util'
import { v7 as uuidv7 } from 'uuid'

/** Above the 60 s of nginx and of AWS load balancers: a proxy must be the first to close an idle
 *  connection. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** How much longer than the keep-alive timeout the headers of a request may take. */
const HEADERS_MARGIN_MS = 5_000
/** Node's default. */
const REQUEST_TIMEOUT_MS = 300_000

export interface HttpServer {
  port: number
  /** From now on each response closes its connection. New connections are still accepted. */
  drain(): void
  /** Refuses new requests. Those in flight have up to `graceMs` to finish. */
  stop(graceMs: number): Promise<void>
}

interface ListenOptions {
  host: string
  /** 0 lets the system choose. */
  port: number
  keepAliveTimeoutMs?: number
}

/** Listens on the host and port. Throws the system's error, for example EADDRINUSE. */
export async function listen(
  handle: RequestListener,
  { host, port, keepAliveTimeoutMs = KEEP_ALIVE_TIMEOUT_MS }: ListenOptions,
): Promise<HttpServer> {
  const headersTimeoutMs = keepAliveTimeoutMs + HEADERS_MARGIN_MS
  const server = createServer(
    {
      keepAliveTimeout: keepAliveTimeoutMs,
      // Otherwise Node could close a connection that the keep-alive timeout still permits to use.
      headersTimeout: headersTimeoutMs,
      requestTimeout: Math.max(REQUEST_TIMEOUT_MS, headersTimeoutMs),
    },
    handle,
  )
  // Connections without a request in flight. Node closes only those that have had a response.
  const waiting = new Set<Socket>()
  const inFlight = new Set<ServerResponse>()
  let isDraining = false
  let isStopping = false

  server.on('connection', (socket) => {
    waiting.add(socket)
    socket.once('close', () => waiting.delete(socket))
  })
  server.prependListener('request', ({ socket }, response) => {
    waiting.delete(socket)
    inFlight.add(response)
    if (isDraining) closeAfter(response)
    response.once('close', () => {
      inFlight.delete(response)
      if (isStopping) socket.end()
      else waiting.add(socket)
    })
  })
  server.on('clientError', answerUnreadable)

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const drain = (): void => {
    isDraining = true
    for (const response of inFlight) closeAfter(response)
  }
  return {
    port: (server.address() as AddressInfo).port,
    drain,
    async stop(graceMs) {
      drain()
      isStopping = true
      const closed = promisify(server.close.bind(server))()
      for (const socket of waiting) socket.destroy()
      const force = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(force)
    },
  }
}

/** Node sends `Connection: close` and closes the connection after the response. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close')
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
