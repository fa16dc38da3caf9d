/** One POST. The only file that sends requests out. */
import { type Agent, type Dispatcher, request } from 'undici'
import type { Outcome } from '../records/deliveries.ts'
import { BlockedAddress } from './egress.ts'

export interface SendResult {
  outcome: Outcome
  status: number | null
  responseHeaders: Record<string, string> | null
  responseBody: string | null
  /** A sentence for the person who looks at the delivery. Null: it succeeded. */
  error: string | null
  /** Epoch milliseconds. */
  startedAt: number
  durationMs: number
}

export interface SendRequest {
  url: string
  headers: Record<string, string>
  body: Buffer
  /** From the start of connecting to the end of the body. */
  timeoutMs: number
}

const MAX_BODY_BYTES = 16 * 1024
const MAX_HEADER_CHARACTERS = 16 * 1024

/** Sends one request and follows no redirect. Never throws: whatever happens is an outcome. */
export async function send(agent: Agent, { url, headers, body, timeoutMs }: SendRequest): Promise<SendResult> {
  const startedAt = Date.now()
  const started = performance.now()
  const deadline = AbortSignal.timeout(timeoutMs)
  let answer: Pick<SendResult, 'status' | 'responseHeaders' | 'responseBody'> = { status: null, responseHeaders: null, responseBody: null }
  const end = (outcome: Outcome, error: string | null): SendResult => {
    return { outcome, ...answer, error, startedAt, durationMs: Math.round(performance.now() - started) }
  }
  try {
    const response = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal: deadline })
    answer = { status: response.statusCode, responseHeaders: storableHeaders(response.headers), responseBody: null }
    const { text, timedOut } = await readBody(response.body, deadline)
    answer.responseBody = text
    if (timedOut) return end('timeout', `The response did not end within ${seconds(timeoutMs)}.`)
    if (response.statusCode >= 200 && response.statusCode < 300) return end('success', null)
    if (response.statusCode >= 300 && response.statusCode < 400)
      return end('http_error', `The endpoint redirected (${response.statusCode}). Redirects are not followed.`)
    return end('http_error', `The endpoint answered ${response.statusCode}.`)
  } catch (error) {
    const blocked = causes(error).find((cause) => cause instanceof BlockedAddress)
    if (blocked) return end('blocked', blocked.message)
    if (deadline.aborted) return end('timeout', `There was no response within ${seconds(timeoutMs)}.`)
    return end('unreachable', explain(error, url))
  }
}

/** The first 16 KiB. What comes after them, or goes wrong after the status has come, changes nothing: only the deadline does. */
async function readBody(body: Dispatcher.ResponseData['body'], deadline: AbortSignal): Promise<{ text: string; timedOut: boolean }> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      // Leaving the loop destroys the body, and with it the connection.
      if (bytes >= MAX_BODY_BYTES) break
    }
  } catch {
    return { text: storableText(chunks), timedOut: deadline.aborted }
  }
  return { text: storableText(chunks), timedOut: false }
}

function storableText(chunks: Buffer[]): string {
  const bytes = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES)
  // `stream` leaves out a character that the cut has halved.
  return storable(new TextDecoder().decode(bytes, { stream: true }))
}

function storableHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  let room = MAX_HEADER_CHARACTERS
  for (const [name, value] of Object.entries(headers)) {
    const text = storable(Array.isArray(value) ? value.join(', ') : (value ?? ''))
    room -= name.length + text.length
    if (room < 0) break
    kept[storable(name)] = text
  }
  return kept
}

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}

function seconds(ms: number): string {
  return ms === 1000 ? '1 second' : `${ms / 1000} seconds`
}

/** An error and what caused it; for an `AggregateError` (one address of several after the other) each of them. */
function causes(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth > 5) return []
  const inner = error instanceof AggregateError ? error.errors : []
  return [error, ...[error.cause, ...inner].flatMap((cause) => causes(cause, depth + 1))]
}

/** What the codes of Node's system, DNS, TLS and HTTP errors mean to the owner of an endpoint. */
const SENTENCES: Record<string, (host: string) => string> = {
  ECONNREFUSED: (host) => `Connection refused: nothing listens at ${host}.`,
  ECONNRESET: () => 'The endpoint closed the connection before it answered.',
  EPIPE: () => 'The endpoint closed the connection before it answered.',
  UND_ERR_SOCKET: () => 'The endpoint closed the connection before it answered.',
  ENOTFOUND: (host) => `The name ${host} could not be resolved.`,
  ENODATA: (host) => `The name ${host} could not be resolved.`,
  EAI_AGAIN: (host) => `The name ${host} could not be resolved at the moment.`,
  EHOSTUNREACH: (host) => `There is no route to ${host}.`,
  ENETUNREACH: (host) => `There is no route to ${host}.`,
  EADDRNOTAVAIL: (host) => `There is no route to ${host}.`,
  ETIMEDOUT: (host) => `The connection to ${host} timed out.`,
  UND_ERR_CONNECT_TIMEOUT: (host) => `The connection to ${host} timed out.`,
  CERT_HAS_EXPIRED: () => 'The certificate of the endpoint has expired.',
  CERT_NOT_YET_VALID: () => 'The certificate of the endpoint is not valid yet.',
  DEPTH_ZERO_SELF_SIGNED_CERT: () => 'The certificate of the endpoint is self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: () => 'The certificate of the endpoint was issued by an authority that is not trusted.',
  UNABLE_TO_GET_ISSUER_CERT: () => 'The certificate of the endpoint was issued by an authority that is not trusted.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: () => 'The endpoint does not send its whole certificate chain.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => 'The endpoint does not send its whole certificate chain.',
  ERR_TLS_CERT_ALTNAME_INVALID: (host) => `The certificate of the endpoint is not for ${host}.`,
  UND_ERR_HEADERS_OVERFLOW: () => 'The headers of the response are too large.',
}

function explain(error: unknown, url: string): string {
  const host = new URL(url).hostname
  const codes = causes(error).map((cause) => ('code' in cause ? String(cause.code) : ''))
  for (const code of codes) {
    const sentence = SENTENCES[code]
    if (sentence) return sentence(host)
  }
  if (codes.some((code) => code.startsWith('HPE_'))) return 'The endpoint answered with something that is not HTTP.'
  if (codes.some((code) => /^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code)))
    return 'A secure connection could not be made: the TLS handshake failed.'
  return storable(`The request failed: ${error instanceof Error ? error.message : String(error)}`)
}
