/** The listening socket, and a stop that waits only for requests in flight. */
import {
  createServer,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { promisify } from 'node:util'
import type { Context, Next } from 'koa'
import { v7 as uuidv7 } from 'uuid'

/** Above the 60 s of nginx and of AWS load balancers: a proxy must be the first to close an idle
 *  connection. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000
export const CLIENT_TIMEOUT_MS = 60_000
export const MAX_CONNECTIONS = 5_000
/** The number of checks for slow clients within one client timeout. */
const CHECKS_PER_TIMEOUT = 12

export interface HttpServer {
  port: number
  /** From now on each response closes its connection. New connections are still accepted. */
  drain(): void
  /** Refuses new requests. Requests in flight have up to `graceMs` to finish. */
  stop(graceMs: number): Promise<void>
}

interface Limits {
  keepAliveTimeoutMs: number
  /** The time for a whole request to arrive, and for a client to read each part of the response. */
  clientTimeoutMs: number
  /** Further connections are closed at once. */
  maxConnections: number
}

interface ListenOptions extends Partial<Limits> {
  host: string
  /** 0 lets the system choose. */
  port: number
}

/** Koa middleware: throws 400 without `Host`, and 417 for an unknown `Expect` (RFC 9110, 7.2 and
 *  10.1.1). */
export async function assertHeaders(ctx: Context, next: Next): Promise<void> {
  const { httpVersion, headers } = ctx.req
  const { host, expect = '100-continue' } = headers
  if (httpVersion === '1.1' && host === undefined)
    ctx.throw(400, 'The Host header is missing.', { headers: { Connection: 'close' } })
  if (httpVersion === '1.1' && !/\b100-continue\b/i.test(expect))
    ctx.throw(417, 'The Expect header must be 100-continue.')
  await next()
}

/** The URL has an IPv6 address in brackets. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Listens on the host and port. Throws the system's error, for example EADDRINUSE. */
export async function listen(
  handle: RequestListener,
  {
    host,
    port,
    keepAliveTimeoutMs = KEEP_ALIVE_TIMEOUT_MS,
    clientTimeoutMs = CLIENT_TIMEOUT_MS,
    maxConnections = MAX_CONNECTIONS,
  }: ListenOptions,
): Promise<HttpServer> {
  const server = newServer(handle, { keepAliveTimeoutMs, clientTimeoutMs, maxConnections })
  const sockets = new Set<Socket>()
  const inFlight = new Set<ServerResponse>()
  let isDraining = false
  let isStopping = false

  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.prependListener('request', ({ socket }, response) => {
    inFlight.add(response)
    if (isDraining) closeAfter(response)
    response.once('close', () => {
      inFlight.delete(response)
      if (isStopping) socket.end()
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // The client would read the error as the rest of a response that has begun.
    const hasBegun = [...inFlight].some(
      ({ req, headersSent }) => req.socket === socket && headersSent,
    )
    const canRespond = socket.writable && error.code !== 'ECONNRESET' && !hasBegun
    if (canRespond) respondToUnreadable(error, socket)
    else socket.destroy()
  })
  closeSlowReaders(server, inFlight, clientTimeoutMs)

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
      // Node itself closes only idle connections that have had a response.
      const busy = new Set([...inFlight].map(({ req }) => req.socket))
      for (const socket of sockets.difference(busy)) socket.destroy()
      const graceTimer = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(graceTimer)
    },
  }
}

function newServer(handle: RequestListener, limits: Limits): Server {
  const { keepAliveTimeoutMs, clientTimeoutMs, maxConnections } = limits
  const server = createServer(
    {
      keepAliveTimeout: keepAliveTimeoutMs,
      // These two timeouts do not run while a connection is idle between two requests.
      headersTimeout: clientTimeoutMs,
      requestTimeout: clientTimeoutMs,
      connectionsCheckingInterval: clientTimeoutMs / CHECKS_PER_TIMEOUT,
      // `assertHeaders` checks Host and Expect, because the responses of Node have neither a body
      // nor a request ID.
      requireHostHeader: false,
    },
    handle,
  )
  server.on('checkExpectation', (...request) => server.emit('request', ...request))
  server.maxConnections = maxConnections
  return server
}

/** Until the server closes, closes the connection of each client that has not read within
 *  `timeoutMs` what was written to it. A long download goes on: each chunk of a file is written
 *  after the client has read the previous one, and starts the time again. */
function closeSlowReaders(
  server: Server,
  inFlight: Iterable<ServerResponse>,
  timeoutMs: number,
): void {
  const lastWrites = new WeakMap<ServerResponse, { bytes: number; atMs: number }>()
  const check = (): void => {
    const atMs = performance.now()
    for (const response of inFlight) {
      const { socket } = response
      if (!socket || socket.writableLength === 0) continue
      const last = lastWrites.get(response)
      if (last?.bytes !== socket.bytesWritten)
        lastWrites.set(response, { bytes: socket.bytesWritten, atMs })
      else if (atMs - last.atMs >= timeoutMs) socket.destroy()
    }
  }
  const timer = setInterval(check, timeoutMs / CHECKS_PER_TIMEOUT).unref()
  server.once('close', () => clearInterval(timer))
}

/** Makes Node close the connection after the response, unless the headers are already sent. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close')
}

/** Responses by the error code of Node's HTTP parser. Other codes get 400. */
const UNREADABLE: Record<string, { status: number; message: string }> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The headers are larger than 16 KiB.' },
  HPE_INVALID_METHOD: { status: 501, message: 'There is no such HTTP method.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
}

/** Responds to requests that Node's parser refuses, in the form of every other error. */
function respondToUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
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
