/** Receives the deliveries of the tested service. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Delivery } from './delivery-words.ts'

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
  /** Responds with 500 to the first attempt that fits. */
  refuseFirst(fits: (attempt: Attempt) => boolean): void
  /** Resolves when this many attempts fit, or after the time limit. */
  waitFor(fits: (attempt: Attempt) => boolean, count: number, timeoutMs: number): Promise<void>
}

const HOST = '127.0.0.1'

/** Port 0 is a free one. */
export async function startContractReceiver(port = 0): Promise<Receiver> {
  const attempts: Attempt[] = []
  const waiting = new Set<() => void>()
  let isRefused = (_: Attempt): boolean => false
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const attempt: Attempt = {
      method: incoming.method ?? '',
      headers: incoming.headers as Record<string, string>,
      body: Buffer.concat(chunks).toString(),
      receivedAt: Date.now(),
    }
    attempts.push(attempt)
    const isFirst = isRefused(attempt)
    if (isFirst) isRefused = () => false
    outgoing.writeHead(isFirst ? 500 : 204).end()
    for (const check of waiting) check()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, HOST, resolve)
  })
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}/`,
    attempts,
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
          waiting.delete(check)
          resolve()
        }
        const timer = setTimeout(end, timeoutMs)
        waiting.add(check)
        check()
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
