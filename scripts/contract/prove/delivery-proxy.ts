/** A proxy between the service and the receiver of the contract tests. It changes deliveries. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Delivery } from '../../words/deliveries.ts'

/** Sends a delivery to the receiver and returns the status of its response. */
export type Deliver = (delivery: Delivery) => Promise<number>

/** Handles a delivery of the service. Returns the status that the service gets. */
export type DeliveryFault = (
  delivery: Delivery,
  deliver: Deliver,
  secret: string,
) => Promise<number>

export interface DeliveryProxy extends AsyncDisposable {
  url: string
  /** The signing secret of the webhook, which exists after the proxy. */
  setSecret(secret: string): void
}

export async function startDeliveryProxy(
  receiver: string,
  fault: DeliveryFault,
): Promise<DeliveryProxy> {
  let secret = ''
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { host: _, connection: __, 'content-length': ___, ...headers } = incoming.headers
    const delivery: Delivery = {
      method: incoming.method ?? '',
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks).toString(),
    }
    const status = await fault(delivery, (changed) => send(receiver, changed), secret).catch(
      () => 502,
    )
    outgoing.writeHead(status).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    setSecret(created) {
      secret = created
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function send(url: string, { method, headers, body }: Delivery): Promise<number> {
  const { 'transfer-encoding': _, ...others } = headers
  const response = await fetch(url, { method, headers: others, body })
  await response.arrayBuffer()
  return response.status
}
