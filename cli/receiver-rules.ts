/** The rules that a webhook receiver must follow, and the requests that test them. */
import { v7 as uuidv7 } from 'uuid'
import { eventTypes } from '../generated/events.ts'
import { newSecret, signingKeys } from '../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../webhooks/transport/sign.ts'

export type ExpectedStatus = '2xx' | '403'

interface SignedRequest {
  headers: Record<string, string>
  body: Buffer
}

export interface ReceiverCheck {
  /** What the request contains, as shown to the user. */
  name: string
  /** Builds the request when it is sent, because the signature covers the time. */
  request: () => SignedRequest
}

/** A rule of service-spec §4 "Subscriber endpoint", §5 "Webhook signature" or asyncapi.yaml. */
export interface Rule {
  id: string
  title: string
  expected: ExpectedStatus
  /** How to fix a receiver that breaks the rule. */
  advice: string
  checks: ReceiverCheck[]
}

/** service-spec §8: the response must arrive within this time. */
export const RESPONSE_TIMEOUT_MS = 15_000
const SIGNATURE_HEADERS = ['x-service-signature', 'webhook-signature']
/** Larger than any delivery today, smaller than the default body limit of web frameworks. */
const LARGE_TEXT_CHARACTERS = 64 * 1024

interface DeliveryOptions {
  /** Serialises the payload. */
  write?: (payload: object) => string
  secret?: string
}

/** Builds deliveries that are signed with `secret`. */
function newSigner(secret: string) {
  const sign = (id: string, body: Buffer, at: Date, key = secret): SignedRequest => ({
    headers: deliveryHeaders(signingKeys(key), { id, eventId: null }, body, at),
    body,
  })
  const delivery = (change: object = {}, options: DeliveryOptions = {}): SignedRequest => {
    const { write = JSON.stringify, secret: key = secret } = options
    const id = uuidv7()
    const payload = { ...eventTypes['participant.created'].example, ...change, id }
    return sign(id, Buffer.from(write(payload)), new Date(), key)
  }
  return { sign, delivery }
}

type Signer = ReturnType<typeof newSigner>

/** All rules, in the order in which their requests must be sent. */
export function listRules(secret: string): Rule[] {
  const signer = newSigner(secret)
  const first = signer.delivery()
  return [
    {
      id: 'accepts-post',
      title: 'Accepts a delivery: responds 2xx to a POST with JSON within 15 seconds',
      expected: '2xx',
      advice:
        'Verify the signature, store the delivery and respond. Process it afterwards, for ' +
        'example in a queue.',
      checks: [{ name: 'a delivery', request: () => first }],
    },
    missingSignature(signer),
    wrongSignature(signer),
    rawBody(signer),
    repeatedDelivery(signer, first),
    everyEventType(signer),
    unknownContent(signer),
  ]
}

function missingSignature({ delivery }: Signer): Rule {
  return {
    id: 'missing-signature',
    title: 'Responds 403 to an unsigned request',
    expected: '403',
    advice:
      'Treat a missing X-Service-Signature like an empty one, which never matches. ' +
      'Do not process the request.',
    checks: [
      {
        name: 'without a signature',
        request: () => replaceSignatures(delivery(), () => undefined),
      },
      { name: 'with an empty signature', request: () => replaceSignatures(delivery(), () => '') },
    ],
  }
}

function wrongSignature({ delivery }: Signer): Rule {
  const changeBody = (change: (text: string) => string): SignedRequest => {
    const { headers, body } = delivery()
    return { headers, body: Buffer.from(change(body.toString('utf8'))) }
  }
  return {
    id: 'wrong-signature',
    title: 'Responds 403 to a wrong signature',
    expected: '403',
    advice:
      'Compare the whole of X-Service-Signature with the HMAC-SHA256 of the body, in constant ' +
      'time. Do not process the request.',
    checks: [
      {
        name: 'with a forged signature',
        request: () => replaceSignatures(delivery(), changeFirstDigit),
      },
      {
        name: 'with a truncated signature',
        request: () => replaceSignatures(delivery(), (signature) => signature.slice(0, -8)),
      },
      {
        name: 'signed with another secret',
        request: () => delivery({}, { secret: newSecret() }),
      },
      {
        name: 'with a changed body',
        request: () => changeBody((text) => text.replace('participant', 'particlpant')),
      },
      { name: 'with a truncated body', request: () => changeBody((text) => text.slice(0, -1)) },
      { name: 'with a space added to the body', request: () => changeBody((text) => `${text} `) },
    ],
  }
}

function rawBody({ delivery }: Signer): Rule {
  const indented = (payload: object): string => `\n${JSON.stringify(payload, null, '\t')}\r\n `
  return {
    id: 'raw-body',
    title: 'Verifies the bytes it received, not JSON that it serialised again',
    expected: '2xx',
    advice:
      'Compute the signature over the raw body, before any parser changes it: express.raw(), ' +
      'request.body, request.raw_post.',
    checks: [
      { name: 'with unusual white space', request: () => delivery({}, { write: indented }) },
      { name: 'with unusual escapes', request: () => delivery({}, { write: escapeLetters }) },
      {
        name: 'with fields in another order',
        request: () => delivery({}, { write: reverseFields }),
      },
    ],
  }
}

function repeatedDelivery({ sign }: Signer, first: SignedRequest): Rule {
  const later = new Date(Date.now() + 1_000)
  return {
    id: 'repeats',
    title: 'Accepts the same delivery again',
    expected: '2xx',
    advice: 'Store the ID of each delivery in a unique index. Respond 2xx if it is already there.',
    checks: [
      { name: 'the same delivery again', request: () => first },
      {
        name: 'a later attempt of it',
        request: () => sign(first.headers['webhook-id'] ?? '', first.body, later),
      },
    ],
  }
}

function everyEventType({ delivery }: Signer): Rule {
  const test = { event_type: 'webhook.test', resource: { type: 'webhook', id: uuidv7() } }
  return {
    id: 'event-types',
    title: 'Accepts every event type',
    expected: '2xx',
    advice:
      'Respond 2xx to event types that you do not use. Muster retries any other response, up to ' +
      'ten attempts.',
    checks: [
      ...Object.values(eventTypes).map(({ name, example }) => ({
        name,
        request: () => delivery(example),
      })),
      { name: 'webhook.test', request: () => delivery(test) },
    ],
  }
}

function unknownContent({ delivery }: Signer): Rule {
  const unknownType = {
    event_type: 'muster.checked',
    resource: { type: 'receiver', id: uuidv7() },
  }
  const unknownFields = { added: { later: [1, null, 'Zoë 東京 🎈'] }, data: { added: true } }
  const largeBody = { added: 'x'.repeat(LARGE_TEXT_CHARACTERS) }
  return {
    id: 'what-is-new',
    title: 'Ignores what it does not know',
    expected: '2xx',
    advice: 'Ignore unknown event types and fields. New ones are added without notice.',
    checks: [
      { name: 'an unknown event type', request: () => delivery(unknownType) },
      { name: 'unknown fields', request: () => delivery(unknownFields) },
      { name: 'a large body', request: () => delivery(largeBody) },
    ],
  }
}

/** Replaces both signature headers. Undefined removes them. */
function replaceSignatures(
  { headers, body }: SignedRequest,
  replace: (signature: string) => string | undefined,
): SignedRequest {
  const others = Object.entries(headers).filter(([name]) => !SIGNATURE_HEADERS.includes(name))
  const replaced = SIGNATURE_HEADERS.flatMap((name) => {
    const signature = replace(headers[name] ?? '')
    return signature === undefined ? [] : [[name, signature] as const]
  })
  return { headers: Object.fromEntries([...others, ...replaced]), body }
}

/** Forges a signature of the same length and alphabet. */
function changeFirstDigit(signature: string): string {
  return signature.replace(
    /^(v1,)?(.)/,
    (_, scheme = '', first) => `${scheme}${first === 'a' ? 'b' : 'a'}`,
  )
}

/** The same JSON, with a letter written as an escape sequence. */
function escapeLetters(payload: object): string {
  return JSON.stringify(payload).replaceAll('created', 'cr\\u0065ated')
}

function reverseFields(payload: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(payload).reverse()))
}
