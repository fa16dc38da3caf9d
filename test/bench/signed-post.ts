/** POSTs a delivery without the delivery engine, for what the benchmarks compare Muster with. */
import { createHmac, type KeyObject } from 'node:crypto'
import { type Agent, request } from 'undici'

export interface SignedPost {
  url: string
  /** The ID of the delivery. */
  id: string
  body: Buffer | string
  key: KeyObject | string
}

/** Returns the status after the whole response. */
export async function sendSigned(
  { url, id, body, key }: SignedPost,
  dispatcher: Agent,
): Promise<number> {
  const response = await request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'x-service-signature': createHmac('sha256', key).update(body).digest('hex'),
    },
    body,
    dispatcher,
  })
  await response.body.dump()
  return response.statusCode
}
