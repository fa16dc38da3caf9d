/** A webhook receiver on loopback. It validates requests against asyncapi.yaml. */
import { createHmac } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
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
  /** The function writes the response to the connection, or closes it. */
  | { raw: (socket: Socket) => void }

/** The value of X-Service-Signature: service-spec §5. */
export const signatureOf = (secret: string, body: Buffer): string =>
  createHmac('sha256', secret).update(body).digest('hex')

export interface ReceiverOptions {
  /** One for each request; the last one repeats. A function gets the request and its index, from 0.
   *  204 by default. */
  answers?: Answer[] | ((request: ReceivedRequest, index: number) => Answer)
  /** True by default. False if programs other than the engine send requests. */
  validate?: boolean
  /** PEM. Makes the receiver serve https. */
  tls?: { key: string; cert: string }
}

/** The connections of a server on loopback. */
export interface Listener extends AsyncDisposable {
  port: number
  /** The number of connections opened so far. */
  connections(): number
  /** The number of open connections. */
  openConnections(): number
}

export interface Receiver extends Listener {
  url: string
  requests: ReceivedRequest[]
  /** Resolves when `count` requests have arrived. Throws after the time limit. */
  received(count: number, timeoutMs?: number): Promise<ReceivedRequest[]>
  /** Closes the receiver as disposing does, but without the check of the requests. */
  close(): Promise<void>
}

/** Disposing throws if a validated request broke asyncapi.yaml. */
export async function startReceiver({
  answers = [204],
  validate = true,
  tls,
}: ReceiverOptions = {}): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const violations: string[] = []
  const timers = new Set<NodeJS.Timeout>()

  const onRequest: RequestListener = async (request, response) => {
    const received = await readRequest(request).catch(() => undefined)
    if (!received) return
    const index = requests.push(received) - 1
    if (validate) violations.push(...contractViolations(received))
    respond(
      response,
      typeof answers === 'function'
        ? answers(received, index)
        : (answers[Math.min(index, answers.length - 1)] ?? 204),
    )
  }

  function respond(response: ServerResponse, answer: Answer): void {
    if (answer === 'hang') return
    if (answer === 'reset') return void response.socket?.resetAndDestroy()
    if (typeof answer === 'number') return void response.writeHead(answer).end()
    if ('raw' in answer) return void answer.raw(response.socket as Socket)
    if ('afterMs' in answer)
      return void timers.add(setTimeout(() => response.writeHead(200).end(), answer.afterMs))
    response.writeHead(answer.status, answer.headers).end(answer.body)
  }

  const listener = await listen(tls ? createTlsServer(tls, onRequest) : createServer(onRequest))
  const close = async (): Promise<void> => {
    for (const timer of timers) clearTimeout(timer)
    await listener[Symbol.asyncDispose]()
  }
  return {
    ...listener,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${listener.port}/webhooks`,
    requests,
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

export interface ListenOptions {
  /** A loopback IP address. 127.0.0.1 by default. */
  host?: string
  /** A free port by default. */
  port?: number
}

export interface ListenerOptions extends ListenOptions {
  /** By default the data is read and ignored. */
  onConnection?: (socket: Socket) => unknown
}

/** A TCP server that sends nothing by itself. */
export function startListener({
  onConnection = (socket) => socket.resume(),
  ...options
}: ListenerOptions = {}): Promise<Listener> {
  return listen(createTcpServer(onConnection), options)
}

/** Makes the server listen. Disposing closes it and its connections. */
export async function listen(
  server: Server,
  { host = '127.0.0.1', port = 0 }: ListenOptions = {},
): Promise<Listener> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, host, resolve),
  )
  return {
    port: (server.address() as AddressInfo).port,
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
  const { payload: isPayload, headers: areHeaders } = events[type]
  return [
    ...(isPayload(payload) ? [] : [`${type} body: ${JSON.stringify(isPayload.errors)}`]),
    ...(areHeaders(headers) ? [] : [`${type} headers: ${JSON.stringify(areHeaders.errors)}`]),
  ]
}
