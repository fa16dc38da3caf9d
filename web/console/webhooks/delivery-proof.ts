/** The exact request of a delivery, with commands that verify its signature and send it again. */
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

interface SentRequest {
  /** Undefined: the body is no longer stored. */
  body?: Buffer
  /** Newest first. */
  attempts: RecordedAttempt[]
}

export async function deliveryProof(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
  { body, attempts: [last] }: SentRequest,
): Promise<Content> {
  if (!body) return false
  const keys = await readSigningKeys(visit, webhook.id)
  if (!keys)
    return note(
      'warn',
      'The signature cannot be shown because the signing secret cannot be read. Rotate the secret.',
    )
  const sentAt = last ? new Date(last.startedAt) : visit.now
  const sentHeaders = deliveryHeaders(keys, delivery, body, sentAt)
  const freshHeaders = deliveryHeaders(keys, delivery, body, visit.now)
  const trace = traceparentOfDelivery(delivery, delivery.traceparent)
  const text = body.toString('utf8')
  return [
    headersPart(sentHeaders, last),
    verifyPart(text, body.length, sentHeaders['x-service-signature'] ?? ''),
    sendPart(webhook.url, { ...freshHeaders, traceparent: newChildTraceparent(trace) }, text),
  ]
}

function headersPart(headers: Record<string, string>, last: RecordedAttempt | undefined): Html {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const source = last ? `Headers of attempt ${last.number}` : 'Headers of an attempt made now'
  return html`<details>
    <summary>Headers</summary>
    <p class="muted">${source}, signed with the current secret.</p>
    ${codeBlock(lines.join('\n'), 'request headers')}
  </details>`
}

function verifyPart(text: string, byteSize: number, signature: string): Html {
  return html`<details>
    <summary>Verify this</summary>
    <p>
      The header <code>X-Service-Signature</code> is the hex HMAC-SHA256 of exactly this body
      (${bytes(byteSize)}, no trailing newline), keyed with the full signing secret.
    </p>
    ${codeBlock(text, 'request body')}
    <p>The signature is</p>
    ${codeBlock(signature, 'signature')}
    <p>Replace <code>whsec_…</code> with your secret; the output must match:</p>
    ${codeBlock(opensslCommand(text), 'openssl command')}
    ${needsBash(text) && html`<p class="muted">${BASH_NOTE}</p>`}
  </details>`
}

function sendPart(url: string, headers: Record<string, string>, text: string): Html {
  return html`<details>
    <summary>Send it yourself</summary>
    <p>
      Sends the same request to your endpoint, signed just now. Signature libraries accept it for
      five minutes.
    </p>
    ${codeBlock(deliveryCurlCommand(url, headers, text), 'curl command')}
    ${needsBash(url, text) && html`<p class="muted">${BASH_NOTE}</p>`}
  </details>`
}

/** Undefined: the secret cannot be read. */
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

/** Prints the value of `X-Service-Signature` for the body. The secret is left to the reader. */
function opensslCommand(body: string): string {
  return [
    `SIGNING_SECRET='whsec_…'  # your secret`,
    `printf '%s' ${quoteForShell(body)} \\`,
    `  | openssl dgst -sha256 -hmac "$SIGNING_SECRET" -r | cut -d' ' -f1`,
  ].join('\n')
}
