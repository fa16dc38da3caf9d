/** Receives the deliveries of the tested service. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Delivery } from '../words/deliveries.ts'
import { startLoopbackServer } from './loopback-server.ts'

export interface Attempt extends Delivery {
  /** Epoch milliseconds. */
  receivedAt: number
}

/** The webhook that sends to the receiver. */
export interface TestedWebhook extends AsyncDisposable {
  /** The signing secret. */
  secret: string
}

export interface Receiver extends AsyncDisposable {
  url: string
  attempts: Attempt[]
  /** IDs of the requests with which `assertReachable` tested a public URL. */
  probes: ReadonlySet<string>
  /** Makes the receiver respond with 500 to the next attempt that fits, and only to that one. */
  refuseFirst(fits: (attempt: Attempt) => boolean): void
  /** Resolves when this many attempts fit, or after the time limit. */
  waitFor(fits: (attempt: Attempt) => boolean, count: number, timeoutMs: number): Promise<void>
}

const MAX_BODY_BYTES = 1024 * 1024
const PROBE_HEADER = 'muster-probe'
const PROBE_TIMEOUT_MS = 15_000

/** Port 0 stands for any free port. */
export async function startContractReceiver(port = 0): Promise<Receiver> {
  const attempts: Attempt[] = []
  const probes = new Set<string>()
  const waitingChecks = new Set<() => void>()
  let isRefused = (_: Attempt): boolean => false
  const respond = async (incoming: IncomingMessage): Promise<number> => {
    const probe = incoming.headers[PROBE_HEADER]
    if (typeof probe === 'string') {
      probes.add(probe)
      return 204
    }
    const body = await readBody(incoming)
    if (body === undefined) return 413
    const attempt: Attempt = {
      method: incoming.method ?? '',
      headers: incoming.headers as Record<string, string>,
      body,
      receivedAt: Date.now(),
    }
    attempts.push(attempt)
    if (!isRefused(attempt)) return 204
    isRefused = () => false
    return 500
  }
  const server = await startLoopbackServer((incoming, outgoing) => {
    respond(incoming).then(
      (status) => {
        outgoing.writeHead(status).end()
        for (const check of waitingChecks) check()
      },
      // The sender closed the connection.
      () => outgoing.destroy(),
    )
  }, port)
  return {
    ...server,
    url: `${server.url}/`,
    attempts,
    probes,
    refuseFirst(fits) {
      isRefused = fits
    },
    waitFor: (fits, count, timeoutMs) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (attempts.filter(fits).length < count) return
          end()
        }
        const end = (): void => {
          clearTimeout(timer)
          waitingChecks.delete(check)
          resolve()
        }
        const timer = setTimeout(end, timeoutMs)
        waitingChecks.add(check)
        check()
      }),
  }
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
