/** One POST. The only file that sends requests out. */
import type { IncomingHttpHeaders } from 'node:http'
import { type Agent, type Dispatcher, errors } from 'undici'
import type { Outcome, Phases } from '../../records/attempts.ts'
import { BlockedAddress, type Connection, Trace, type TracedOptions } from './egress.ts'

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
export function send(agent: Agent, request: SendRequest): Promise<SendResult> {
  return new Promise((resolve) => {
    new Exchange(request, resolve).begin(agent)
  })
}

/** A request and what comes of it, as undici's handler of one: without streams and signals, of which nothing here has a use. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: SendRequest
  readonly #resolve: (result: SendResult) => void
  readonly #trace = new Trace()
  readonly #startedAt = Date.now()
  readonly #started = performance.now()
  readonly #timer: NodeJS.Timeout
  #controller: Dispatcher.DispatchController | undefined
  #connection: Connection | undefined
  #respondedAt: number | undefined
  #answer:
    | { status: number; responseHeaders: Record<string, string>; retryAfterAt: number | null }
    | undefined
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #interimResponses = 0
  #stoppedBy: Error | undefined
  #isOver = false

  constructor(request: SendRequest, resolve: (result: SendResult) => void) {
    this.#request = request
    this.#resolve = resolve
    this.#timer = setTimeout(() => this.#stop(new TimedOut()), request.timeoutMs)
  }

  begin(agent: Agent): void {
    const { url, headers, body } = this.#request
    const target = URL.parse(url)
    // Others are not stored; if one is, it goes nowhere.
    if (!target || !/^https?:$/.test(target.protocol)) {
      this.#end(
        new BlockedAddress('Nothing was sent: the URL is not a complete http or https address.'),
      )
      return
    }
    const path = `${target.pathname}${target.search}`
    const options: TracedOptions = {
      origin: target.origin,
      path,
      method: 'POST',
      headers,
      body,
      opaque: this.#trace,
    }
    agent.dispatch(options, this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#stoppedBy) controller.abort(this.#stoppedBy)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) {
      if (++this.#interimResponses > MAX_INTERIM_RESPONSES)
        this.#stop(new TooManyInterimResponses())
      return
    }
    this.#respondedAt = performance.now()
    this.#connection = this.#trace.connection
    this.#answer = {
      status,
      responseHeaders: storableHeaders(headers),
      retryAfterAt: retryAfterAt(status, headers, Date.now()),
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < MAX_BODY_BYTES) return
    this.#end()
    controller.abort(new Error('No more of an answer is kept'))
  }

  onResponseEnd(): void {
    this.#end()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(error)
  }

  #stop(reason: Error): void {
    this.#stoppedBy = reason
    // undici has a controller only once there is a connection.
    if (this.#controller) this.#controller.abort(reason)
    else this.#trace.connection?.abandon(reason)
    this.#end(reason)
  }

  #end(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    const ended = performance.now()
    this.#connection ??= this.#trace.connection
    const answer = this.#answer
      ? { ...this.#answer, responseBody: storableText(this.#chunks) }
      : NO_ANSWER
    this.#resolve({
      ...answer,
      ...this.#judge(error),
      startedAt: this.#startedAt,
      durationMs: Math.round(ended - this.#started),
      address: this.#connection?.address ?? null,
      phases: phasesOf(this.#connection, {
        started: this.#started,
        respondedAt: this.#respondedAt,
        ended,
      }),
    })
  }

  /** What goes wrong after the status has come changes nothing: only the deadline does. */
  #judge(error: Error | undefined): Pick<SendResult, 'outcome' | 'error'> {
    const { url, timeoutMs } = this.#request
    if (this.#answer) {
      const { status } = this.#answer
      if (this.#stoppedBy)
        return {
          outcome: 'timeout',
          error: `The response did not end within ${seconds(timeoutMs)}.`,
        }
      if (status >= 200 && status < 300) return { outcome: 'success', error: null }
      if (status >= 300 && status < 400)
        return {
          outcome: 'http_error',
          error: `The endpoint redirected (${status}). Redirects are not followed.`,
        }
      return { outcome: 'http_error', error: `The endpoint answered ${status}.` }
    }
    const blocked = causes(error).find((cause) => cause instanceof BlockedAddress)
    if (blocked) return { outcome: 'blocked', error: blocked.message }
    const host = new URL(url).hostname
    if (this.#stoppedBy instanceof TimedOut)
      return {
        outcome: 'timeout',
        error: `${missing(this.#connection, host)} within ${seconds(timeoutMs)}.`,
      }
    return { outcome: 'unreachable', error: explain(error, host) }
  }
}

const NO_ANSWER = { status: null, responseHeaders: null, responseBody: null, retryAfterAt: null }

/** How the time was spent: each phase until the next began, the last one until the end. */
function phasesOf(
  connection: Connection | undefined,
  {
    started,
    respondedAt,
    ended,
  }: { started: number; respondedAt: number | undefined; ended: number },
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
function retryAfterAt(status: number, headers: IncomingHttpHeaders, now: number): number | null {
  if (status !== 429 && status !== 503) return null
  const [value = ''] = [headers['retry-after']].flat()
  if (/^\d+$/.test(value)) return now + Math.min(Number(value), MAX_RETRY_AFTER_SECONDS) * 1000
  // §5.6.7: all three forms of a date begin with the day of the week and are in GMT, which the oldest does not say.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value)) return null
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(at) ? null : at
}

/** Beyond any sense: keeps the sum a date. */
const MAX_RETRY_AFTER_SECONDS = 1e9

/** The first 16 KiB. */
function storableText(chunks: Buffer[]): string {
  if (chunks.length === 0) return ''
  const bytes = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES)
  // `stream` leaves out a character that the cut has halved.
  return storable(new TextDecoder().decode(bytes, { stream: true }))
}

function storableHeaders(headers: IncomingHttpHeaders): Record<string, string> {
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
  SELF_SIGNED_CERT_IN_CHAIN: () =>
    'The certificate of the endpoint was issued by an authority that is not trusted.',
  UNABLE_TO_GET_ISSUER_CERT: () =>
    'The certificate of the endpoint was issued by an authority that is not trusted.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: () =>
    'The endpoint does not send its whole certificate chain.',
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
  if (error instanceof TooManyInterimResponses)
    return 'The endpoint sent only interim responses (1xx), more than 100 of them.'
  if (error instanceof errors.HTTPParserError)
    return 'The endpoint answered with something that is not HTTP/1.1.'
  if (error instanceof errors.ResponseContentLengthMismatchError)
    return 'The response is not as long as its Content-Length says.'
  if (error instanceof errors.SocketError && error.message === 'bad response')
    return 'The endpoint answered 100 Continue, which was not asked for.'
  if (error instanceof errors.SocketError && error.message === 'bad upgrade')
    return 'The endpoint answered 101 Switching Protocols, which was not asked for.'
  return undefined
}

function explain(error: unknown, host: string): string {
  const chain = causes(error)
  for (const cause of chain) {
    const sentence =
      explainProtocol(cause) ?? SENTENCES['code' in cause ? String(cause.code) : '']?.(host)
    if (sentence) return sentence
  }
  if (
    chain.some((cause) => 'code' in cause && /^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(String(cause.code)))
  )
    return 'A secure connection could not be made: the TLS handshake failed.'
  return storable(`The request failed: ${error instanceof Error ? error.message : String(error)}`)
}

/** What had not come when the time was up, without its end. */
function missing(connection: Connection | undefined, host: string): string {
  if (!connection || connection.readyAt !== undefined) return 'There was no response'
  if (connection.isNamed && connection.lookedUpAt === undefined)
    return `The name ${host} was not resolved`
  if (connection.connectedAt === undefined) return `There was no connection to ${host}`
  return `The TLS handshake with ${host} did not end`
}
