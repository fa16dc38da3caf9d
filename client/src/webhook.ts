import type { EventPayloads } from '../../generated/asyncapi.ts'

/** The body of a delivery. `event_type` says which: TypeScript narrows `resource` and `data` by it. A type that is newer than this package comes
 *  too, so let your `switch` have a `default` that does nothing. */
export type WebhookEvent = EventPayloads[keyof EventPayloads]

/** The headers of a request: `Headers`, or an object as Node.js has it. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the time of the delivery may be from now, in seconds. 300 by default. */
  toleranceSeconds?: number
  /** Refuse a delivery that does not sign its time, so that nobody can repeat one without its `webhook-*` headers. Muster always sends them. */
  requireTimestamp?: boolean
  /** In the place of the clock. */
  now?: () => Date
}

/** The request is not a delivery of Muster's, or not a fresh one. Answer 403 and process nothing. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
  readonly reason: 'signature' | 'timestamp' | 'body'

  constructor(reason: WebhookRefused['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** The event of a delivery, once it is certain who sent it. `body` is the body as it came: text or bytes, never parsed and written again.
 *  `secret` is the whole signing secret; during a change of secrets, an array of both. Throws `WebhookRefused`. */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const bytes = bytesOf(body)
  const secrets = [secret].flat()
  // Anybody can sign with an empty one.
  if (secrets.length === 0 || secrets.some((one) => typeof one !== 'string' || one === ''))
    throw new TypeError('The signing secret is missing')
  const verified = await Promise.all(secrets.map((one) => isSignedWith(one, bytes, headers)))
  if (!verified.includes(true))
    throw new WebhookRefused('signature', 'The signature is missing or wrong')
  assertFresh(headers, options)
  return eventOf(bytes)
}

const PREFIX = 'whsec_'
const TOLERANCE_SECONDS = 300

async function isSignedWith(
  secret: string,
  body: Uint8Array<ArrayBuffer>,
  headers: WebhookHeaders,
): Promise<boolean> {
  const given = bytesOfHex(header(headers, 'x-service-signature'))
  if (!given || !(await isHmac(new TextEncoder().encode(secret), given, body))) return false
  const timestamp = header(headers, 'webhook-timestamp')
  if (timestamp === '') return true
  // The time counts only if it is signed (Standard Webhooks 1.0.0, "Signature scheme").
  const key = bytesOfBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  const signed = joined(
    new TextEncoder().encode(`${header(headers, 'webhook-id')}.${timestamp}.`),
    body,
  )
  const signatures = header(headers, 'webhook-signature')
    .split(' ')
    .map((one) => (one.startsWith('v1,') ? bytesOfBase64(one.slice('v1,'.length)) : undefined))
  const right = await Promise.all(
    signatures.map((one) => key !== undefined && one !== undefined && isHmac(key, one, signed)),
  )
  return right.includes(true)
}

/** In constant time: the comparison is the platform's own. */
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
  const age = Math.abs(
    now().getTime() / 1000 - (/^\d+$/.test(timestamp) ? Number(timestamp) : Number.NaN),
  )
  if (!(age <= toleranceSeconds))
    throw new WebhookRefused(
      'timestamp',
      'The delivery is too old, too new or without a time: it may be a repeat',
    )
}

function eventOf(body: Uint8Array<ArrayBuffer>): WebhookEvent {
  try {
    const event: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    if (typeof event === 'object' && event !== null && 'event_type' in event)
      return event as WebhookEvent
  } catch {
    // Said below.
  }
  throw new WebhookRefused('body', 'The body is not the JSON of a delivery')
}

function header(headers: WebhookHeaders, name: string): string {
  if (isHeaders(headers)) return headers.get(name) ?? ''
  const value =
    headers[name] ?? Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : (value?.join(', ') ?? '')
}

/** By what it can do: some runtimes have more than one class of this name. */
function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers.get === 'function'
}

function bytesOf(body: unknown): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return new Uint8Array(body)
  throw new TypeError(
    'The body must be the text or the bytes as they came: what a framework has parsed cannot be verified',
  )
}

/** Undefined for what is not 32 bytes in lower-case hexadecimal. */
function bytesOfHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[0-9a-f]{64}$/.test(text)) return undefined
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
}

function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
