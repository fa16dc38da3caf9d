/** A webhook receiver on loopback. It validates every request against asyncapi.yaml. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Socket } from 'node:net'
import type { EventType } from '../generated/asyncapi.ts'
import { events } from '../generated/validators.js'

export interface ReceivedRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /** Epoch milliseconds. */
  receivedAt: number
}

/** The response to a request. A number is a status with an empty body. */
export type Answer =
  | number
  | { status: number; headers?: Record<string, string>; body?: string | Buffer }
  /** Never responds. */
  | 'hang'
  /** Resets the connection without a response. */
  | 'reset'
  /** Responds with 200 after this time. */
  | { afterMs: number }
  /** Writes to the connection itself. */
  | { raw: (socket: Socket) => void }

export interface ReceiverOptions {
  /** One per request; the last one repeats. 204 by default. A function gets the request and its
   *  index. */
  answers?: Answer[] | ((request: ReceivedRequest, index: number) => Answer)
  /** False when other programs than the engine send requests. */
  validate?: boolean
  /** PEM. Makes the receiver serve https. */
  tls?: { key: string; cert: string }
}

export interface Receiver extends AsyncDisposable {
  url: string
  port: number
  requests: ReceivedRequest[]
  /** Resolves when `count` requests have arrived. Throws after the time limit. */
  received(count: number, timeoutMs?: number): Promise<ReceivedRequest[]>
  /** The number of connections opened so far. */
  connections(): number
  /** The number of open connections. */
  openConnections(): number
  close(): Promise<void>
}

export async function startReceiver({
  answers = [204],
  validate = true,
  tls,
}: ReceiverOptions = {}): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const violations: string[] = []
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let connections = 0

  const onRequest: RequestListener = async (request, response) => {
    const received = await readRequest(request).catch(() => undefined)
    if (!received) return
    const index = requests.push(received) - 1
    if (validate) violations.push(...contractViolations(received))
    answer(
      response,
      typeof answers === 'function'
        ? answers(received, index)
        : (answers[Math.min(index, answers.length - 1)] ?? 204),
    )
  }
  const server = tls ? createTlsServer(tls, onRequest) : createServer(onRequest)
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })

  function answer(response: ServerResponse, what: Answer): void {
    if (what === 'hang') return
    if (what === 'reset') return void response.socket?.resetAndDestroy()
    if (typeof what === 'number') return void response.writeHead(what).end()
    if ('raw' in what) return void what.raw(response.socket as Socket)
    if ('afterMs' in what)
      return void timers.add(setTimeout(() => response.writeHead(200).end(), what.afterMs))
    response.writeHead(what.status, what.headers).end(what.body)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port')

  const close = async (): Promise<void> => {
    for (const timer of timers) clearTimeout(timer)
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${address.port}/webhooks`,
    port: address.port,
    requests,
    connections: () => connections,
    openConnections: () => sockets.size,
    async received(count, timeoutMs = 10_000) {
      const deadline = Date.now() + timeoutMs
      while (requests.length < count) {
        if (Date.now() > deadline)
          throw new Error(
            `The receiver got ${requests.length} requests, not ${count}, within ${timeoutMs} ms`,
          )
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
      return requests
    },
    close,
    async [Symbol.asyncDispose]() {
      await close()
      if (violations.length > 0)
        throw new Error(`Requests break asyncapi.yaml:\n${violations.join('\n')}`)
    },
  }
}

export interface Listener extends AsyncDisposable {
  port: number
  connections(): number
  openConnections(): number
}

export interface ListenerOptions {
  /** A loopback IP address. 127.0.0.1 by default. */
  host?: string
  port?: number
  /** By default the data is read and ignored. */
  onConnection?: (socket: Socket) => unknown
}

/** A TCP server that sends nothing by itself. */
export async function startListener({
  host = '127.0.0.1',
  port = 0,
  onConnection = (socket) => socket.resume(),
}: ListenerOptions = {}): Promise<Listener> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createTcpServer((socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, host, resolve),
  )
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The listener has no port')
  return {
    port: address.port,
    connections: () => connections,
    openConnections: () => sockets.size,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function readRequest(request: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: Buffer.concat(chunks),
    receivedAt: Date.now(),
  }
}

/** One text for each violation of asyncapi.yaml. */
function contractViolations({ method, headers, body }: ReceivedRequest): string[] {
  if (method !== 'POST') return [`${method} instead of POST`]
  let payload: { event_type?: EventType }
  try {
    payload = JSON.parse(body.toString('utf8')) as { event_type?: EventType }
  } catch {
    return [`not JSON: ${body.toString('utf8').slice(0, 200)}`]
  }
  const type = payload.event_type
  if (type === undefined || !(type in events)) return [`unknown event_type ${type}`]
  const { payload: validPayload, headers: validHeaders } = events[type]
  return [
    ...(validPayload(payload) ? [] : [`${type} body: ${JSON.stringify(validPayload.errors)}`]),
    ...(validHeaders(headers) ? [] : [`${type} headers: ${JSON.stringify(validHeaders.errors)}`]),
  ]
}
