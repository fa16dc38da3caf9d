/** A proxy that changes deliveries between the service and the receiver of the contract tests. */
import { text } from 'node:stream/consumers'
import {
  type LoopbackServer,
  startLoopbackServer,
} from '../../scripts/contract/deliveries/loopback-server.ts'
import type { Delivery } from '../../scripts/words/deliveries.ts'

/** Sends a delivery to the receiver and returns the status of its response. */
export type Deliver = (delivery: Delivery) => Promise<number>

/** Handles a delivery that the service sends. Returns the status that the service gets. `secret` is
 *  the signing secret of the webhook. */
export type DeliveryHook = (delivery: Delivery, deliver: Deliver, secret: string) => Promise<number>

interface DeliveryProxy extends LoopbackServer {
  /** The proxy starts before the webhook and its signing secret exist. */
  setSecret(secret: string): void
}

export async function startDeliveryProxy(
  receiverUrl: string,
  hook: DeliveryHook,
): Promise<DeliveryProxy> {
  let secret = ''
  const deliver: Deliver = (delivery) => send(receiverUrl, delivery)
  const server = await startLoopbackServer(async (incoming, outgoing) => {
    const { host: _, connection: __, 'content-length': ___, ...headers } = incoming.headers
    const delivery: Delivery = {
      method: incoming.method ?? '',
      headers: headers as Record<string, string>,
      body: await text(incoming),
    }
    const status = await hook(delivery, deliver, secret).catch(() => 502)
    outgoing.writeHead(status).end()
  })
  return {
    ...server,
    setSecret(created) {
      secret = created
    },
  }
}

async function send(url: string, { method, headers, body }: Delivery): Promise<number> {
  const { 'transfer-encoding': _, ...others } = headers
  const response = await fetch(url, { method, headers: others, body })
  await response.arrayBuffer()
  return response.status
}
