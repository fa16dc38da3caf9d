/** The request of a delivery, signed again with the current secret, and commands that verify the
 *  signature and send the request. */
import type { RecordedAttempt } from '../../../records/attempts.ts'
import type { Delivery } from '../../../records/deliveries.ts'
import { findSealedSecrets } from '../../../records/webhook-secrets.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import {
  openSecret,
  SecretUnreadable,
  type SigningKeys,
  signingKeys,
} from '../../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../../webhooks/transport/sign.ts'
import {
  newChildTraceparent,
  traceparentOfDelivery,
} from '../../../webhooks/transport/traceparent.ts'
import { deliveryCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { BASH_NOTE, needsBash, quoteForShell } from '../../shared/shell.ts'
import { bytes } from '../format.ts'
import type { Visit } from '../page.ts'
import { codeBlock, note } from '../ui.ts'

/** Stands for the value of a header that users added. */
const HIDDEN_VALUE = '(hidden)'

interface StoredRequest {
  /** Undefined: the body is no longer stored. */
  body?: Buffer
  /** Newest first. */
  attempts: RecordedAttempt[]
}

export async function deliveryProof(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
  { body, attempts: [newest] }: StoredRequest,
): Promise<Content> {
  if (!body) return false
  const keys = await readSigningKeys(visit, webhook.id)
  if (!keys)
    return note(
      'warn',
      'The signature cannot be shown because the signing secret cannot be read. Rotate the secret.',
    )
  const shownAt = newest ? new Date(newest.startedAt) : visit.now
  const hidden = Object.fromEntries(webhook.headerNames.map((name) => [name, HIDDEN_VALUE]))
  const shownHeaders = { ...hidden, ...deliveryHeaders(keys, delivery, body, shownAt) }
  const freshHeaders = { ...hidden, ...deliveryHeaders(keys, delivery, body, visit.now) }
  const trace = traceparentOfDelivery(delivery, delivery.traceparent)
  const text = body.toString('utf8')
  return [
    headersPart(shownHeaders, newest),
    verifyPart(text, body.length, shownHeaders['x-service-signature'] ?? ''),
    sendPart(webhook.url, { ...freshHeaders, traceparent: newChildTraceparent(trace) }, text),
  ]
}

function headersPart(headers: Record<string, string>, newest: RecordedAttempt | undefined): Html {
  const source = newest
    ? `The headers of attempt ${newest.number}`
    : 'The headers of an attempt made now'
  return html`<details>
    <summary>Headers</summary>
    <p class="muted">${source}, with signatures that are computed with the current secret.</p>
    ${codeBlock(headerLines(headers), 'request headers')}
  </details>`
}

export function headerLines(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
}

function verifyPart(text: string, byteSize: number, signature: string): Html {
  return html`<details>
    <summary>Verify the signature</summary>
    <p>
      The header <code>X-Service-Signature</code> is the hex HMAC-SHA256 of exactly this body
      (${bytes(byteSize)}, no trailing newline). The key is the signing secret, including
      <code>whsec_</code>.
    </p>
    ${codeBlock(text, 'request body')}
    <p>The signature:</p>
    ${codeBlock(signature, 'signature')}
    <p>To compute it, replace <code>whsec_…</code> with your secret. The output must match:</p>
    ${codeBlock(opensslCommand(text), 'openssl command')}
    ${needsBash(text) && html`<p class="muted">${BASH_NOTE}</p>`}
  </details>`
}

function sendPart(url: string, headers: Record<string, string>, text: string): Html {
  return html`<details>
    <summary>Send the request yourself</summary>
    <p>
      This command sends the same request to your endpoint, signed just now. The Standard Webhooks
      signature also covers the time: libraries accept it for five minutes.
    </p>
    ${codeBlock(deliveryCurlCommand(url, headers, text), 'curl command')}
    ${needsBash(url, text) && html`<p class="muted">${BASH_NOTE}</p>`}
  </details>`
}

/** Undefined if the secret cannot be read, or the webhook was deleted meanwhile. */
async function readSigningKeys(
  { scope, config }: Visit,
  webhookId: string,
): Promise<SigningKeys | undefined> {
  const sealed = await findSealedSecrets(scope, webhookId)
  if (!sealed) return undefined
  try {
    return signingKeys(openSecret(config.secretKeys, webhookId, sealed.current))
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined
    throw error
  }
}

/** A command that prints the value of `X-Service-Signature` for the body. The user inserts the
 *  secret. */
function opensslCommand(body: string): string {
  return [
    `SIGNING_SECRET='whsec_…'  # your secret`,
    `printf '%s' ${quoteForShell(body)} \\`,
    `  | openssl dgst -sha256 -hmac "$SIGNING_SECRET" -r | cut -d' ' -f1`,
  ].join('\n')
}
