/** Receivers that record all arrivals and can fail for a while. */
import { hash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../receiver.ts'

/** `hangs` never responds, `resets` resets the connection, `half-closes` ends its own side
 *  first. */
export const receiverFailures = ['hangs', 'resets', 'half-closes'] as const
export type ReceiverFailure = (typeof receiverFailures)[number]

/** One POST. Times are epoch milliseconds. */
export interface Arrival {
  at: number
  /** When the POST got a response, or its connection was closed. */
  endedAt?: number
  hasResponse: boolean
}

/** All POSTs of one delivery. */
export interface Received {
  /** Digest of the first body. */
  digest: string
  /** Whether all bodies were equal. */
  hasEqualBodies: boolean
  arrivals: Arrival[]
}

export interface ChaosReceiver extends AsyncDisposable {
  name: string
  url: string
  eventTypes: string[]
  /** Undefined while the receiver works. */
  failure?: ReceiverFailure
  /** By the header webhook-id, which is the ID of the delivery. */
  received: Map<string, Received>
}

export interface ReceiverOptions {
  name: string
  /** The event types of its webhook. */
  eventTypes: string[]
  /** The delay of each response. */
  afterMs: number
}

export const digestOf = (body: Buffer): string => hash('sha256', body, 'base64')

export async function startChaosReceiver({
  name,
  eventTypes,
  afterMs,
}: ReceiverOptions): Promise<ChaosReceiver> {
  const received: ChaosReceiver['received'] = new Map()
  const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
    const arrival: Arrival = { at: Date.now(), hasResponse: false }
    const body = await bodyOf(request)
    if (!body) return
    record(String(request.headers['webhook-id']), body, arrival)
    response.once('close', () => {
      arrival.endedAt ??= Date.now()
    })
    respond(response, arrival)
  })
  const listener = await listen(server)

  const receiver: ChaosReceiver = {
    name,
    eventTypes,
    url: `http://127.0.0.1:${listener.port}/`,
    received,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  }

  function record(id: string, body: Buffer, arrival: Arrival): void {
    const digest = digestOf(body)
    const earlier = received.get(id)
    if (!earlier)
      return void received.set(id, { digest, hasEqualBodies: true, arrivals: [arrival] })
    earlier.arrivals.push(arrival)
    earlier.hasEqualBodies &&= earlier.digest === digest
  }

  function respond(response: ServerResponse, arrival: Arrival): void {
    if (receiver.failure === 'hangs') return
    if (receiver.failure === 'resets') return void response.socket?.resetAndDestroy()
    if (receiver.failure === 'half-closes') return void response.socket?.end()
    const sendResponse = (): void => {
      if (response.destroyed) return
      response.writeHead(204).end()
      arrival.hasResponse = true
      arrival.endedAt = Date.now()
    }
    if (afterMs > 0) setTimeout(sendResponse, afterMs)
    else sendResponse()
  }

  return receiver
}

/** Undefined when the sender closed the connection. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    return undefined
  }
  return Buffer.concat(chunks)
}
