/** A proxy that delays requests, pauses, and closes connections without notice. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

const DELAY_MS = 2
const PAUSE_MS = 300
/** The proxy pauses before every 50th response. */
const PAUSE_EVERY = 50
/** The proxy closes the connection after every third response. */
const CLOSE_EVERY = 3

export interface SlowProxy extends AsyncDisposable {
  url: string
  /** The number of open connections that the proxy has closed. */
  closed: number
}

export async function startSlowProxy(target: string): Promise<SlowProxy> {
  let responses = 0
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    await delay(DELAY_MS)
    const { method, headers, url = '' } = incoming
    const forwarded = request(target + url, { method, headers, agent: false })
    // The service may respond before it has read the whole body.
    forwarded.on('error', () => outgoing.headersSent || incoming.socket.destroy())
    forwarded.end(body).on('response', async (response) => {
      responses += 1
      const closesConnection = responses % CLOSE_EVERY === 0
      if (responses % PAUSE_EVERY === 0) await delay(PAUSE_MS)
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing).on('finish', () => {
        if (!closesConnection) return
        proxy.closed += 1
        incoming.socket.destroySoon()
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: SlowProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    closed: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}
