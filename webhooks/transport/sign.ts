import { createHmac } from 'node:crypto'
import type { SigningKeys } from './secret.ts'

/** Identifies a delivery. `eventId` is null for a test event, which is not stored: its ID is that
 *  of its delivery. */
export interface DeliveryIds {
  id: string
  eventId: string | null
}

/** The headers of one attempt. */
export function deliveryHeaders(
  keys: SigningKeys,
  { id, eventId }: DeliveryIds,
  body: Buffer,
  now: Date,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    // Some firewalls refuse requests without it, for example rule 920300 of the OWASP CRS.
    accept: '*/*',
    'user-agent': 'Muster-Webhooks/1',
    'x-event-id': eventId ?? id,
    ...signatureHeaders(keys, id, body, now),
  }
}

/** The key of `X-Service-Signature` is the whole secret string (service-spec §5 "Webhook
 *  signature"). The key of `webhook-signature` is its decoded bytes (Standard Webhooks 1.0.0,
 *  "Signature scheme"). */
export function signatureHeaders(
  keys: SigningKeys,
  deliveryId: string,
  body: Buffer,
  now: Date,
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000))
  const standard = createHmac('sha256', keys.decoded)
    .update(`${deliveryId}.${timestamp}.`)
    .update(body)
  return {
    'x-service-signature': createHmac('sha256', keys.whole).update(body).digest('hex'),
    'webhook-id': deliveryId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${standard.digest('base64')}`,
  }
}
