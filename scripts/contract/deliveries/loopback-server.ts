/** Starts an HTTP server on this computer, which receives deliveries. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

const HOST = '127.0.0.1'

export interface LoopbackServer extends AsyncDisposable {
  /** Without a trailing slash. */
  url: string
}

/** Port 0 stands for any free port. Throws if the port is in use. */
export async function startLoopbackServer(
  listener: RequestListener,
  port = 0,
): Promise<LoopbackServer> {
  const server = createServer(listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, HOST, resolve)
  })
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
