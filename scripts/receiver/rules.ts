/** The rules that a webhook receiver must or should follow, and the requests that test them. */
import { randomBytes } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { eventTypes } from '../../generated/events.ts'
import type { Contract } from '../model/contract.ts'
import { type Delivery, listDeliveryHeaders } from '../words/deliveries.ts'
import {
  deliveryId,
  escapeLetters,
  forgeSignature,
  indent,
  newSigner,
  replaceSignatures,
  reverseFields,
  type Signer,
} from './deliveries.ts'
import {
  post,
  postAfterAbort,
  postBesideUpload,
  postChunked,
  postTwice,
  type Send,
  tolerateClose,
} from './requests.ts'

/** 413 stands for any 4xx status, or a closed connection. */
export type ExpectedStatus = '2xx' | '403' | '413'

export interface ReceiverCheck {
  /** The content of the request, as shown to the user. */
  name: string
  expected: ExpectedStatus
  /** Builds the request when it is sent, because the signature covers the time. */
  request: () => Delivery
  send: Send
}

/** A rule of service-spec §4 "Subscriber endpoint", §5 "Webhook signature" or asyncapi.yaml, or of
 *  the standard that the comment above its function names. */
export interface Rule {
  id: string
  title: string
  /** False: a recommendation. A receiver that ignores it gets all deliveries, but is open to
   *  attacks. */
  isRequired: boolean
  /** How to fix a receiver that breaks the rule. */
  advice: string
  checks: ReceiverCheck[]
}

/** service-spec §8: the response must arrive within this time. */
export const RESPONSE_TIMEOUT_MS = 15_000
/** Larger than any delivery today, smaller than the default body limit of web frameworks. */
const LARGE_TEXT_CHARACTERS = 64 * 1024
/** Larger than the default body limit of web frameworks. */
const OVERSIZED_TEXT_CHARACTERS = 16 * 1024 * 1024
const MINUTE_MS = 60_000

function accepts(name: string, request: () => Delivery, send: Send = post): ReceiverCheck {
  return { name, expected: '2xx', request, send }
}

function refuses(name: string, request: () => Delivery): ReceiverCheck {
  return { name, expected: '403', request, send: post }
}

/** All rules, in the order in which their requests must be sent. */
export function listRules(contract: Contract, secret: string, nextSecret?: string): Rule[] {
  const headers = listDeliveryHeaders(contract)
  const signer = newSigner(headers, secret)
  const first = signer.delivery()
  return [
    acceptsPost(first),
    abortedUpload(signer),
    missingSignature(signer),
    wrongSignature(signer),
    rawBody(signer),
    repeatedDelivery(signer, first),
    everyEventType(signer),
    unknownContent(signer),
    chunkedBody(signer),
    ...(nextSecret === undefined ? [] : [secretRotation(signer, newSigner(headers, nextSecret))]),
    lateDelivery(signer),
    oversizedBody(signer),
    // Last, because a receiver that breaks this rule no longer responds.
    heldUpload(signer),
  ]
}

function acceptsPost(first: Delivery): Rule {
  return {
    id: 'accepts-post',
    title: 'Accepts a delivery: responds 2xx to a POST with JSON within 15 seconds',
    isRequired: true,
    advice:
      'Verify the signature, store the delivery and respond. Process it afterwards, for ' +
      'example in a queue.',
    checks: [accepts('a delivery', () => first)],
  }
}

function abortedUpload({ delivery }: Signer): Rule {
  return {
    id: 'aborted-upload',
    title: 'Keeps running after an aborted upload',
    isRequired: true,
    advice:
      'Handle the error that reading the body throws. Anyone can abort an upload: it must not ' +
      'end the process.',
    checks: [accepts('a delivery after an aborted upload', () => delivery(), postAfterAbort)],
  }
}

function missingSignature({ delivery }: Signer): Rule {
  return {
    id: 'missing-signature',
    title: 'Responds 403 to an unsigned request',
    isRequired: true,
    advice:
      'Treat a missing X-Service-Signature like an empty one, which never matches. ' +
      'Do not process the request.',
    checks: [
      refuses('without a signature', () => replaceSignatures(delivery(), () => undefined)),
      refuses('with an empty signature', () => replaceSignatures(delivery(), () => '')),
    ],
  }
}

function wrongSignature({ delivery }: Signer): Rule {
  const otherSecret = `whsec_${randomBytes(32).toString('base64')}`
  const changeBody = (change: (text: string) => string): Delivery => {
    const original = delivery()
    return { ...original, body: change(original.body) }
  }
  return {
    id: 'wrong-signature',
    title: 'Responds 403 to a wrong signature',
    isRequired: true,
    advice:
      'Compare the whole of X-Service-Signature with the HMAC-SHA256 of the body, in constant ' +
      'time. Do not process the request.',
    checks: [
      refuses('with a forged signature', () => replaceSignatures(delivery(), forgeSignature)),
      refuses('with a truncated signature', () =>
        replaceSignatures(delivery(), (signature) => signature.slice(0, -8)),
      ),
      refuses('signed with another secret', () => delivery({}, { secret: otherSecret })),
      refuses('with a changed body', () =>
        changeBody((text) => text.replace('participant', 'particlpant')),
      ),
      refuses('with a truncated body', () => changeBody((text) => text.slice(0, -1))),
      refuses('with a space added to the body', () => changeBody((text) => `${text} `)),
    ],
  }
}

function rawBody({ delivery }: Signer): Rule {
  return {
    id: 'raw-body',
    title: 'Verifies the bytes it received, not JSON that it serialised again',
    isRequired: true,
    advice:
      'Compute the signature over the raw body, before any parser changes it: express.raw(), ' +
      'request.body, request.raw_post. Then use a JSON parser: fields have no order.',
    checks: [
      accepts('with unusual white space', () => delivery({}, { serialize: indent })),
      accepts('with unusual escapes', () => delivery({}, { serialize: escapeLetters })),
      accepts('with fields in another order', () => delivery({}, { serialize: reverseFields })),
      accepts('another delivery about the same record', () =>
        delivery({}, { serialize: reverseFields }),
      ),
    ],
  }
}

function repeatedDelivery({ sign, delivery }: Signer, first: Delivery): Rule {
  const later = new Date(Date.now() + 1_000)
  return {
    id: 'repeats',
    title: 'Accepts the same delivery again',
    isRequired: true,
    advice: 'Store the ID of each delivery in a unique index. Respond 2xx if it is already there.',
    checks: [
      accepts('the same delivery again', () => first),
      accepts('a later attempt of the same delivery', () =>
        sign(deliveryId(first), first.body, later),
      ),
      accepts('two attempts at the same time', () => delivery(), postTwice),
    ],
  }
}

function everyEventType({ delivery }: Signer): Rule {
  const test = { event_type: 'webhook.test', resource: { type: 'webhook', id: uuidv7() } }
  return {
    id: 'event-types',
    title: 'Accepts every event type',
    isRequired: true,
    advice:
      'Respond 2xx to event types that you do not use. Muster retries any other response, up to ' +
      'ten attempts.',
    checks: [
      ...Object.values(eventTypes).map(({ name, example }) =>
        accepts(name, () => delivery(example)),
      ),
      accepts('webhook.test', () => delivery(test)),
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
    isRequired: true,
    advice: 'Ignore unknown event types and fields. New ones are added without notice.',
    checks: [
      accepts('an unknown event type', () => delivery(unknownType)),
      accepts('unknown fields', () => delivery(unknownFields)),
      accepts('a large body', () => delivery(largeBody)),
    ],
  }
}

/** RFC 9112 §7.1: a recipient must be able to parse the chunked transfer coding. */
function chunkedBody({ delivery }: Signer): Rule {
  return {
    id: 'chunked-body',
    title: 'Accepts a chunked body',
    isRequired: true,
    advice:
      'Read the body to its end instead of Content-Length bytes. A proxy can send it with ' +
      'Transfer-Encoding: chunked.',
    checks: [accepts('a delivery in chunks', () => delivery(), postChunked)],
  }
}

function secretRotation(current: Signer, next: Signer): Rule {
  return {
    id: 'next-secret',
    title: 'Accepts the current and the next secret',
    isRequired: true,
    advice:
      'During a rotation, accept a delivery that either secret has signed. The next secret signs ' +
      'from the moment you activate it.',
    checks: [
      accepts('signed with the next secret', () => next.delivery()),
      accepts('signed with the current secret', () => current.delivery()),
    ],
  }
}

/** Standard Webhooks 1.0.0, "Verifying webhook authenticity". */
function lateDelivery({ delivery }: Signer): Rule {
  const deliveryFrom = (minutes: number): Delivery =>
    delivery({}, { at: new Date(Date.now() + minutes * MINUTE_MS) })
  const changeTime = ({ headers, ...rest }: Delivery): Delivery => ({
    ...rest,
    headers: { ...headers, 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) },
  })
  return {
    id: 'late-delivery',
    title: 'Responds 403 to a delivery that was not signed within the last 5 minutes',
    isRequired: false,
    advice:
      'Verify webhook-signature, which signs webhook-timestamp, and compare the timestamp with ' +
      'the clock. This stops replays of recorded deliveries.',
    checks: [
      refuses('signed 10 minutes ago', () => deliveryFrom(-10)),
      refuses('signed 10 minutes in the future', () => deliveryFrom(10)),
      refuses('with a new timestamp that is not signed', () => changeTime(deliveryFrom(-10))),
    ],
  }
}

function oversizedBody({ delivery }: Signer): Rule {
  const oversized = (): Delivery => delivery({ added: 'x'.repeat(OVERSIZED_TEXT_CHARACTERS) })
  const refusesBody = (name: string, send: Send): ReceiverCheck => ({
    name,
    expected: '413',
    request: oversized,
    send: tolerateClose(send),
  })
  return {
    id: 'oversized-body',
    title: 'Refuses a body of 16 MiB',
    isRequired: false,
    advice:
      'Stop storing the body at a limit, for example 1 MiB, and respond 413. Without a limit, ' +
      'anyone can fill your memory. Deliveries have less than 1 KiB today.',
    checks: [
      refusesBody('16 MiB', post),
      refusesBody('16 MiB in chunks', postChunked),
      accepts('a delivery after these bodies', () => delivery()),
    ],
  }
}

function heldUpload({ delivery }: Signer): Rule {
  return {
    id: 'held-upload',
    title: 'Accepts a delivery while another upload is unfinished',
    isRequired: true,
    advice:
      'Handle requests concurrently, and end an upload that takes longer than 10 seconds, so that ' +
      'one slow sender cannot stop all deliveries.',
    checks: [accepts('a delivery beside an unfinished upload', () => delivery(), postBesideUpload)],
  }
}
