/** The words (keys that begin with `x-`) of asyncapi.yaml that describe deliveries. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Contract } from '../model/contract.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { valueAt } from '../model/source.ts'

/** `x-signature` of a header. */
interface SignatureWords {
  hmac: 'sha256'
  /** The key is the signing secret without `prefix`, decoded from `encoding`. */
  key: { encoding: 'utf8' | 'base64'; prefix?: string }
  encoding: 'hex' | 'base64'
  /** Text before the signature. */
  prefix?: string
  /** The text to sign. Names of headers and `body`, in braces, are replaced by their values. */
  content: string
}

interface DeliveryHeaderWords {
  const?: unknown
  /** The header has the `id` of the event (`event.id`) or of the body (`payload.id`). */
  'x-equals'?: string
  'x-signature'?: SignatureWords
  /** The header has the time of the attempt in seconds since 1970. */
  'x-time-of'?: 'attempt'
  /** The header has the trace ID of the request that caused the event. */
  'x-trace-of'?: 'request'
}

export interface DeliveryHeader extends DeliveryHeaderWords {
  /** In lower case. */
  name: string
}

export interface Delivery {
  method: string
  /** By lower-case name. */
  headers: Record<string, string>
  body: string
}

/** The headers of the first event stand for those of all events. */
export function listDeliveryHeaders({ sources, events }: Contract): DeliveryHeader[] {
  const [event] = events
  const { properties = {} } = event ? inlineReferences(sources, event.headers) : ({} as Schema)
  return Object.entries(properties).map(([name, words]) => ({
    ...(words as DeliveryHeaderWords),
    name: name.toLowerCase(),
  }))
}

/** `x-retry-seconds` of the operation that delivers: the delay before each attempt, from the second
 *  attempt on. */
export function readRetrySeconds(contract: Contract): number[] {
  const seconds = readDeliveryWord(contract, 'x-retry-seconds')
  return Array.isArray(seconds) ? seconds : []
}

/** `x-timeout-seconds` of the operation that delivers: an attempt without a status by then fails. */
export function readTimeoutSeconds(contract: Contract): number | undefined {
  return readDeliveryWord(contract, 'x-timeout-seconds') as number | undefined
}

function readDeliveryWord({ asyncapi }: Contract, word: string): unknown {
  const operations = (valueAt(asyncapi.root, ['operations']) ?? {}) as Record<string, object>
  return Object.values(operations)
    .map((operation) => valueAt(operation, [word]))
    .find((value) => value !== undefined)
}

/** One attempt of a delivery. */
interface Attempt {
  /** The ID in the body. */
  id: string
  eventId: string
  body: string
  /** The signing secret. */
  secret: string
  /** The time of the attempt. */
  at: Date
  /** The header of the request that caused the event. Undefined: the delivery gets a new trace. */
  traceparent?: string
}

/** The request of the attempt, with `headers` and their signatures. */
export function buildDelivery(headers: DeliveryHeader[], attempt: Attempt): Delivery {
  const delivery: Delivery = { method: 'POST', headers: {}, body: attempt.body }
  for (const header of headers)
    if (!header['x-signature']) delivery.headers[header.name] = headerValue(header, attempt)
  // Signatures come last, because they cover other headers.
  for (const { name, 'x-signature': words } of headers)
    if (words) delivery.headers[name] = signDelivery(words, attempt.secret, delivery)
  return delivery
}

function headerValue(header: DeliveryHeader, { id, eventId, at, traceparent }: Attempt): string {
  if (header.const !== undefined) return String(header.const)
  if (header['x-equals']) return header['x-equals'].startsWith('event') ? eventId : id
  if (header['x-time-of']) return String(Math.floor(at.getTime() / 1000))
  return header['x-trace-of'] ? newChildTrace(traceparent) : ''
}

/** W3C Trace Context: the trace of the request, or a new one, with a new parent ID. A new trace is
 *  sampled, because receivers record no trace that is not sampled. */
function newChildTrace(traceparent = ''): string {
  const [, trace = randomBytes(16).toString('hex'), flags = '01'] =
    /^00-([0-9a-f]{32})-[0-9a-f]{16}-(0[01])$/.exec(traceparent) ?? []
  return `00-${trace}-${randomBytes(8).toString('hex')}-${flags}`
}

/** The value of the header that signs the delivery. */
export function signDelivery(
  { hmac, key, encoding, prefix = '', content }: SignatureWords,
  secret: string,
  { headers, body }: Delivery,
): string {
  const text = secret.slice(key.prefix?.length ?? 0)
  const signed = content.replace(/\{([^}]+)\}/g, (_, name) =>
    name === 'body' ? body : (headers[name] ?? ''),
  )
  const digest = createHmac(hmac, Buffer.from(text, key.encoding)).update(signed).digest(encoding)
  return prefix + digest
}
