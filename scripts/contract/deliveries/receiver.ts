/** Receives the deliveries of the tested service. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Delivery } from '../../words/deliveries.ts'
import { readUntil } from '../poll.ts'
import { startLoopbackServer } from './loopback-server.ts'

export interface Attempt extends Delivery {
  /** The path of the URL. */
  path: string
  /** Epoch milliseconds. */
  receivedAt: number
}

/** The webhook that sends to the receiver. */
export interface TestedWebhook extends AsyncDisposable {
  /** The signing secret. */
  secret: string
}

/** How the receiver responds to an attempt. */
export interface PlannedResponse {
  /** 0: the receiver closes the connection. */
  status: number
  headers?: Record<string, string>
  body?: string
  /** The time from the arrival of the attempt. */
  delayMs?: number
  /** The response does not end after the body. */
  isEndless?: boolean
}

export interface Receiver extends AsyncDisposable {
  url: string
  attempts: Attempt[]
  /** IDs of the requests with which `assertReachable` tested a public URL. */
  probes: ReadonlySet<string>
  /** Makes `choose` decide about the responses. Without it, each attempt gets 204. */
  respondWith(choose: (attempt: Attempt) => PlannedResponse | Promise<PlannedResponse>): void
  /** Returns the attempts that fit, as soon as there are this many, or after the time limit. */
  waitFor(fits: (attempt: Attempt) => boolean, count: number, timeoutMs: number): Promise<Attempt[]>
}

const MAX_BODY_BYTES = 1024 * 1024
const PROBE_HEADER = 'muster-probe'
const PROBE_TIMEOUT_MS = 15_000

/** Port 0 stands for any free port. */
export async function startContractReceiver(port = 0): Promise<Receiver> {
  const attempts: Attempt[] = []
  const probes = new Set<string>()
  let choose = (_: Attempt): PlannedResponse | Promise<PlannedResponse> => ({ status: 204 })
  const respond = async (incoming: IncomingMessage): Promise<PlannedResponse> => {
    const probe = incoming.headers[PROBE_HEADER]
    if (typeof probe === 'string') {
      probes.add(probe)
      return { status: 204 }
    }
    const body = await readBody(incoming)
    if (body === undefined) return { status: 413 }
    const attempt: Attempt = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers: incoming.headers as Record<string, string>,
      body,
      receivedAt: Date.now(),
    }
    attempts.push(attempt)
    const response = await choose(attempt)
    const waitedMs = Date.now() - attempt.receivedAt
    await delay(Math.max(0, (response.delayMs ?? 0) - waitedMs), undefined, { ref: false })
    return response
  }
  const server = await startLoopbackServer((incoming, outgoing) => {
    respond(incoming).then(
      (response) => writeResponse(outgoing, response),
      // The sender closed the connection.
      () => outgoing.destroy(),
    )
  }, port)
  return {
    ...server,
    url: `${server.url}/`,
    attempts,
    probes,
    respondWith(newChoose) {
      choose = newChoose
    },
    async waitFor(fits, count, timeoutMs) {
      const isDone = (found: Attempt[]) => found.length >= count
      return readUntil(() => attempts.filter(fits), isDone, timeoutMs)
    },
  }
}

function writeResponse(outgoing: ServerResponse, response: PlannedResponse): void {
  const { status, headers, body = '', isEndless } = response
  if (status === 0) {
    outgoing.destroy()
    return
  }
  outgoing.writeHead(status, headers)
  if (isEndless) outgoing.write(body)
  else outgoing.end(body)
}

/** Undefined if the body is larger than that of any delivery: a public URL also gets requests that
 *  are no deliveries. */
async function readBody(incoming: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Throws unless a request to the public URL arrives at the receiver. The user runs a tunnel or
 *  proxy from that URL to the receiver. */
export async function assertReachable(
  { url, probes }: Pick<Receiver, 'url' | 'probes'>,
  publicUrl: string,
): Promise<void> {
  const probe = randomUUID()
  const result = await fetch(publicUrl, {
    method: 'POST',
    headers: { [PROBE_HEADER]: probe },
    redirect: 'manual',
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  }).then(
    async ({ status, body }) => {
      await body?.cancel()
      return `it returned ${status}`
    },
    ({ message, cause }: Error) => (cause as Error | undefined)?.message || message,
  )
  if (!probes.has(probe))
    throw new Error(
      `${publicUrl} does not lead to ${url}: ${result}. Start the tunnel or proxy, then try again.`,
    )
}
