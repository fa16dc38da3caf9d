/** One POST. The only file that sends requests out. */
import { type Agent, type Dispatcher, errors, request } from 'undici'
import type { Outcome, Phases } from '../records/deliveries.ts'
import { BlockedAddress, type Connection, Trace } from './egress.ts'

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
  /** The IP address that was connected to, when one was. */
  address: string | null
  /** They add up to the duration: the last one lasts until the end, however it came. Null: no connection was begun. */
  phases: Phases | null
  /** When a 429 or 503 asked to be tried again, in epoch milliseconds. */
  retryAfterAt: number | null
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
/** More than one a second, within any deadline. */
const MAX_INTERIM_RESPONSES = 100

class TimedOut extends Error {}
class TooManyInterimResponses extends Error {}

/** Sends one request and follows no redirect. Never throws: whatever happens is an outcome. */
export async function send(agent: Agent, { url, headers, body, timeoutMs }: SendRequest): Promise<SendResult> {
  const startedAt = Date.now()
  const started = performance.now()
  const trace = new Trace()
  let connection: Connection | undefined
  let respondedAt: number | undefined
  let answer: Pick<SendResult, 'status' | 'responseHeaders' | 'responseBody' | 'retryAfterAt'> = NO_ANSWER
  let interimResponses = 0

  const stop = new AbortController()
  const stopWith = (reason: Error): void => {
    stop.abort(reason)
    // undici hears of the signal only once there is a connection.
    trace.connection?.abandon(reason)
  }
  const timer = setTimeout(() => stopWith(new TimedOut()), timeoutMs)
  const onInfo = (): void => {
    if (++interimResponses > MAX_INTERIM_RESPONSES) stopWith(new TooManyInterimResponses())
  }
  const end = (outcome: Outcome, error: string | null): SendResult => {
    clearTimeout(timer)
    const ended = performance.now()
    const phases = phasesOf(connection, { started, respondedAt, ended })
    return { outcome, ...answer, error, startedAt, durationMs: Math.round(ended - started), address: connection?.address ?? null, phases }
  }

  try {
    const response = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal: stop.signal, onInfo, opaque: trace })
    respondedAt = performance.now()
    connection = trace.connection
    answer = {
      status: response.statusCode,
      responseHeaders: storableHeaders(response.headers),
      responseBody: null,
      retryAfterAt: retryAfterAt(response, Date.now()),
    }
    const { text, timedOut } = await readBody(response.body, stop.signal)
    answer.responseBody = text
    if (timedOut) return end('timeout', `The response did not end within ${seconds(timeoutMs)}.`)
    if (response.statusCode >= 200 && response.statusCode < 300) return end('success', null)
    if (response.statusCode >= 300 && response.statusCode < 400)
      return end('http_error', `The endpoint redirected (${response.statusCode}). Redirects are not followed.`)
    return end('http_error', `The endpoint answered ${response.statusCode}.`)
  } catch (error) {
    connection = trace.connection
    const blocked = causes(error).find((cause) => cause instanceof BlockedAddress)
    if (blocked) return end('blocked', blocked.message)
    if (!isWebAddress(url)) return end('blocked', 'Nothing was sent: the URL is not a complete http or https address.')
    const host = new URL(url).hostname
    if (stop.signal.reason instanceof TimedOut) return end('timeout', `${missing(connection, host)} within ${seconds(timeoutMs)}.`)
    return end('unreachable', explain(error, host))
  }
}

const NO_ANSWER = { status: null, responseHeaders: null, responseBody: null, retryAfterAt: null }

/** How the time was spent: each phase until the next began, the last one until the end. */
function phasesOf(
  connection: Connection | undefined,
  { started, respondedAt, ended }: { started: number; respondedAt: number | undefined; ended: number },
): Phases | null {
  if (!connection) return null
  const phases: Phases = { dns: null, connect: null, tls: null, first_byte: null, body: null }
  const isNew = connection.startedAt >= started
  const steps: { phase: keyof Phases; happens: boolean; doneAt: number | undefined }[] = [
    { phase: 'dns', happens: isNew && connection.isNamed, doneAt: connection.lookedUpAt },
    { phase: 'connect', happens: isNew, doneAt: connection.connectedAt },
    { phase: 'tls', happens: isNew && connection.isSecure, doneAt: connection.readyAt },
    { phase: 'first_byte', happens: true, doneAt: respondedAt },
    { phase: 'body', happens: true, doneAt: ended },
  ]
  let since = started
  for (const { phase, happens, doneAt } of steps) {
    if (!happens) continue
    phases[phase] = Math.round(((doneAt ?? ended) - since) * 10) / 10
    if (doneAt === undefined) break
    since = doneAt
  }
  return phases
}

/** RFC 9110 §10.2.3: seconds, or a date. Null when there is none that can be read. */
function retryAfterAt({ statusCode, headers }: Dispatcher.ResponseData<unknown>, now: number): number | null {
  if (statusCode !== 429 && statusCode !== 503) return null
  const [value = ''] = [headers['retry-after']].flat()
  if (/^\d+$/.test(value)) return now + Math.min(Number(value), MAX_RETRY_AFTER_SECONDS) * 1000
  // §5.6.7: all three forms of a date begin with the day of the week and are in GMT, which the oldest does not say.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value)) return null
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(at) ? null : at
}

/** Beyond any sense: keeps the sum a date. */
const MAX_RETRY_AFTER_SECONDS = 1e9

/** The first 16 KiB. What comes after them, or goes wrong after the status has come, changes nothing: only the deadline does. */
async function readBody(body: Dispatcher.ResponseData['body'], stop: AbortSignal): Promise<{ text: string; timedOut: boolean }> {
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
    return { text: storableText(chunks), timedOut: stop.aborted }
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
  // One certificate alone: which of the two it is cannot be told.
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () =>
    'The certificate of the endpoint was issued by an authority that is not trusted, or the endpoint does not send its whole chain.',
  ERR_TLS_CERT_ALTNAME_INVALID: (host) => `The certificate of the endpoint is not for ${host}.`,
  // undici's own, of a status below 100.
  ERR_ASSERTION: () => 'The endpoint answered with something that is not HTTP/1.1.',
  UND_ERR_HEADERS_OVERFLOW: () => 'The headers of the response are too large.',
}

/** What undici refuses about a response, by its own class or message. */
function explainProtocol(error: Error): string | undefined {
  if (error instanceof TooManyInterimResponses) return 'The endpoint sent only interim responses (1xx), more than 100 of them.'
  if (error instanceof errors.HTTPParserError) return 'The endpoint answered with something that is not HTTP/1.1.'
  if (error instanceof errors.ResponseContentLengthMismatchError) return 'The response is not as long as its Content-Length says.'
  if (error instanceof errors.SocketError && error.message === 'bad response')
    return 'The endpoint answered 100 Continue, which was not asked for.'
  if (error instanceof errors.SocketError && error.message === 'bad upgrade')
    return 'The endpoint answered 101 Switching Protocols, which was not asked for.'
  return undefined
}

function explain(error: unknown, host: string): string {
  const chain = causes(error)
  for (const cause of chain) {
    const sentence = explainProtocol(cause) ?? SENTENCES['code' in cause ? String(cause.code) : '']?.(host)
    if (sentence) return sentence
  }
  if (chain.some((cause) => 'code' in cause && /^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(String(cause.code))))
    return 'A secure connection could not be made: the TLS handshake failed.'
  return storable(`The request failed: ${error instanceof Error ? error.message : String(error)}`)
}

/** What had not come when the time was up, without its end. */
function missing(connection: Connection | undefined, host: string): string {
  if (!connection || connection.readyAt !== undefined) return 'There was no response'
  if (connection.isNamed && connection.lookedUpAt === undefined) return `The name ${host} was not resolved`
  if (connection.connectedAt === undefined) return `There was no connection to ${host}`
  return `The TLS handshake with ${host} did not end`
}

/** Others are not stored; if one is, it goes nowhere. */
function isWebAddress(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}
