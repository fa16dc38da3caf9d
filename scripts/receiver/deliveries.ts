/** Deliveries for `check-receiver`: correctly signed, forged and unusual ones. */
import { v7 as uuidv7 } from 'uuid'
import { eventTypes } from '../../generated/events.ts'
import { buildDelivery, type Delivery, type DeliveryHeader } from '../words/deliveries.ts'

interface DeliveryOptions {
  /** Default: `JSON.stringify`. */
  serialize?: (payload: object) => string
  /** The secret to sign with. Default: the secret of the signer. */
  secret?: string
  /** The time that is signed. Default: now. */
  at?: Date
}

/** Returns two functions: `sign` signs a body, and `delivery` creates and signs a delivery. The
 *  payload of the delivery is an example with the fields of `change` and a new ID. */
export function newSigner(headers: DeliveryHeader[], secret: string) {
  const sign = (id: string, body: string, at: Date, key = secret): Delivery =>
    buildDelivery(headers, { id, eventId: id, body, secret: key, at })
  const delivery = (change: object = {}, options: DeliveryOptions = {}): Delivery => {
    const { serialize = JSON.stringify, secret: key = secret, at = new Date() } = options
    const id = uuidv7()
    const payload = { ...eventTypes['participant.created'].example, ...change, id }
    return sign(id, serialize(payload), at, key)
  }
  return { sign, delivery }
}

export type Signer = ReturnType<typeof newSigner>

export function deliveryId({ headers }: Delivery): string {
  return headers['webhook-id'] ?? ''
}

const SIGNATURE_HEADERS = ['x-service-signature', 'webhook-signature']

/** Replaces both signature headers. Removes a header for which `replace` returns undefined. */
export function replaceSignatures(
  delivery: Delivery,
  replace: (signature: string) => string | undefined,
): Delivery {
  const { headers } = delivery
  const others = Object.entries(headers).filter(([name]) => !SIGNATURE_HEADERS.includes(name))
  const replaced = SIGNATURE_HEADERS.flatMap((name) => {
    const signature = replace(headers[name] ?? '')
    return signature === undefined ? [] : [[name, signature] as const]
  })
  return { ...delivery, headers: Object.fromEntries([...others, ...replaced]) }
}

/** Returns another signature of the same length and alphabet. */
export function forgeSignature(signature: string): string {
  return signature.replace(
    /^(v1,)?(.)/,
    (_, scheme = '', first) => `${scheme}${first === 'a' ? 'b' : 'a'}`,
  )
}

export function indent(payload: object): string {
  return `\n${JSON.stringify(payload, null, '\t')}\r\n `
}

/** The same JSON, with a letter written as an escape sequence. */
export function escapeLetters(payload: object): string {
  return JSON.stringify(payload).replaceAll('created', 'cr\\u0065ated')
}

export function reverseFields(payload: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(payload).reverse()))
}
