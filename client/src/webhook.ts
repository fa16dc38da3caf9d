import type { EventPayloads } from '../../generated/asyncapi.ts'

/** The body of a delivery. TypeScript narrows `resource` and `data` by `event_type`. Add a
 *  `default` that does nothing to your `switch`: the service can send event types that are newer
 *  than this package. */
export type WebhookEvent = EventPayloads[keyof EventPayloads]

/** The headers of a request: `Headers`, or an object such as `headers` of a request in Node.js. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** The largest difference between the signed time of a delivery and now. Default: 300. */
  toleranceSeconds?: number
  /** Refuses deliveries without a signed time. If false, an attacker can replay an old delivery by
   *  leaving out its `webhook-*` headers. Muster always signs the time. Default: false. */
  requireTimestamp?: boolean
  /** Replaces the clock. */
  now?: () => Date
}

/** The request is not a delivery of Muster, or it is too old. Respond with 403 and ignore it. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
  readonly reason: 'signature' | 'timestamp' | 'body'

  constructor(reason: WebhookRefused['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** Verifies the signatures of a delivery and returns its event. `body` is the unchanged text or
 *  bytes of the request. `secret` is the whole signing secret, or both secrets during a rotation.
 *  Throws `WebhookRefused`. */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const bytes = toBytes(body)
  const secrets = [secret].flat()
  // Anyone can sign with an empty secret.
  if (secrets.length === 0 || secrets.some((one) => typeof one !== 'string' || one === ''))
    throw new TypeError('The signing secret is missing')
  const verified = await Promise.all(secrets.map((one) => isSignedWith(one, bytes, headers)))
  if (!verified.includes(true))
    throw new WebhookRefused('signature', 'The signature is missing or wrong')
  assertFresh(headers, options)
  return parseEvent(bytes)
}

const PREFIX = 'whsec_'
const TOLERANCE_SECONDS = 300

/** Verifies `X-Service-Signature`. If the request has a `webhook-timestamp`, also verifies
 *  `webhook-signature`, which signs the timestamp and the body. */
async function isSignedWith(
  secret: string,
  body: Uint8Array<ArrayBuffer>,
  headers: WebhookHeaders,
): Promise<boolean> {
  const signature = parseHex(header(headers, 'x-service-signature'))
  if (!signature || !(await isHmac(new TextEncoder().encode(secret), signature, body))) return false
  const timestamp = header(headers, 'webhook-timestamp')
  if (timestamp === '') return true
  // The time counts only if it is signed (Standard Webhooks 1.0.0, "Signature scheme").
  const key = parseBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  const signed = concatenate(
    new TextEncoder().encode(`${header(headers, 'webhook-id')}.${timestamp}.`),
    body,
  )
  const signatures = header(headers, 'webhook-signature')
    .split(' ')
    .map((one) => (one.startsWith('v1,') ? parseBase64(one.slice('v1,'.length)) : undefined))
  const verified = await Promise.all(
    signatures.map((one) => key !== undefined && one !== undefined && isHmac(key, one, signed)),
  )
  return verified.includes(true)
}

/** `crypto.subtle.verify` compares in constant time. */
async function isHmac(
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  data: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', key, algorithm, false, ['verify'])
  return crypto.subtle.verify(algorithm.name, imported, signature, data)
}

function assertFresh(
  headers: WebhookHeaders,
  {
    toleranceSeconds = TOLERANCE_SECONDS,
    requireTimestamp = false,
    now = () => new Date(),
  }: VerifyOptions,
) {
  const timestamp = header(headers, 'webhook-timestamp')
  if (timestamp === '' && !requireTimestamp) return
  const ageSeconds = now().getTime() / 1000 - Number(timestamp)
  const isFresh = /^\d+$/.test(timestamp) && Math.abs(ageSeconds) <= toleranceSeconds
  if (!isFresh)
    throw new WebhookRefused(
      'timestamp',
      'The delivery is too old, too new or has no time: it may be a replay',
    )
}

function parseEvent(body: Uint8Array<ArrayBuffer>): WebhookEvent {
  try {
    const event: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    if (typeof event === 'object' && event !== null && 'event_type' in event)
      return event as WebhookEvent
  } catch {
    // Refused below.
  }
  throw new WebhookRefused('body', 'The body is not the JSON of a delivery')
}

function header(headers: WebhookHeaders, name: string): string {
  if (isHeaders(headers)) return headers.get(name) ?? ''
  const value =
    headers[name] ?? Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : (value?.join(', ') ?? '')
}

/** Some runtimes have several `Headers` classes, so `instanceof` is not enough. */
function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers.get === 'function'
}

function toBytes(body: unknown): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return new Uint8Array(body)
  throw new TypeError(
    'Pass the unchanged text or bytes of the body: a parsed body cannot be verified',
  )
}

/** Undefined unless the text is 32 bytes in lower-case hexadecimal. */
function parseHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[0-9a-f]{64}$/.test(text)) return undefined
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
}

function parseBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
