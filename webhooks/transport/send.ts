/** Sends one request. No other file sends requests to endpoints. */
import { AssertionError } from 'node:assert'
import type { IncomingHttpHeaders } from 'node:http'
import { type Agent, type Dispatcher, errors } from 'undici'
import type { Phases, SendResult } from '../../records/attempt.ts'
import { BlockedAddress } from './egress.ts'
import { type Connection, Trace, type TracedOptions } from './guarded-agent.ts'
import { StatusReader } from './status-reader.ts'
import { ProxyFailed } from './tunnel.ts'

interface SendRequest {
  accountId: string
  url: string
  headers: Record<string, string>
  body: Buffer
  /** From the start of connecting to the status. The rest is read until the same deadline. */
  timeoutMs: number
}

const MAX_BODY_BYTES = 16 * 1024
const MAX_HEADER_CHARACTERS = 16 * 1024
/** More than one per second for the longest `WEBHOOK_TIMEOUT_MS`, which is a minute. */
const MAX_INTERIM_RESPONSES = 100

class TimedOut extends Error {}
class TooManyInterimResponses extends Error {}

/** Sends one request and follows no redirects. Never throws: every failure is an outcome. */
export function send(agent: Agent, request: SendRequest): Promise<SendResult> {
  return new Promise((resolve) => {
    new Exchange(request, resolve).start(agent)
  })
}

/** A request and its response, as a dispatch handler of undici: the streams and abort signals of
 *  `undici.request` are not needed here and cost time. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: SendRequest
  readonly #resolve: (result: SendResult) => void
  readonly #trace: Trace
  readonly #startedAtEpochMs = Date.now()
  /** Like all later times, in milliseconds of `performance.now()`. */
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #controller: Dispatcher.DispatchController | undefined
  #connection: Connection | undefined
  #respondedAt: number | undefined
  /** Knows the status, too, if the rest of the response is not valid. */
  readonly #statusReader = new StatusReader()
  #response: { status: number; responseHeaders: Record<string, string> } | undefined
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #interimResponses = 0
  #stoppedBy: Error | undefined
  #isOver = false

  constructor(request: SendRequest, resolve: (result: SendResult) => void) {
    this.#request = request
    this.#trace = new Trace(request.accountId)
    this.#resolve = resolve
    this.#timer = setTimeout(() => this.#stop(new TimedOut()), request.timeoutMs)
  }

  start(agent: Agent): void {
    const { url, headers, body } = this.#request
    const target = URL.parse(url)
    // Only complete http and https URLs are stored; this is a second check.
    if (!target || !/^https?:$/.test(target.protocol)) {
      this.#end(
        new BlockedAddress('Nothing was sent: the URL is not a complete http or https URL.'),
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
    const { connection } = this.#trace
    if (connection) connection.statusReader = this.#statusReader
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
    this.#response = { status, responseHeaders: storableHeaders(headers) }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < MAX_BODY_BYTES) return
    this.#end()
    controller.abort(new Error('The rest of the response is not stored'))
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
    const endedAt = performance.now()
    this.#connection ??= this.#trace.connection
    const status = this.#response?.status ?? this.#statusReader.status ?? null
    this.#resolve({
      status,
      responseHeaders: this.#response?.responseHeaders ?? null,
      responseBody: this.#response ? storableText(this.#chunks) : null,
      ...(status === null ? this.#explain(error) : judge(status)),
      startedAt: this.#startedAtEpochMs,
      durationMs: Math.round(endedAt - this.#startedAt),
      address: this.#connection?.address ?? null,
      phases: measurePhases(this.#connection, {
        startedAt: this.#startedAt,
        respondedAt: this.#respondedAt,
        endedAt,
      }),
    })
  }

  /** Why there is no status. */
  #explain(error: Error | undefined): Verdict {
    const chain = causes(error)
    const blocked = chain.find((cause) => cause instanceof BlockedAddress)
    if (blocked) return { outcome: 'blocked', error: blocked.message }
    const { url, timeoutMs } = this.#request
    const host = new URL(url).hostname
    if (this.#stoppedBy instanceof TimedOut)
      return {
        outcome: 'timeout',
        error: `${unfinishedStep(this.#connection, host)} within ${formatSeconds(timeoutMs)}.`,
      }
    const problem = chain.map(explainProtocol).find((sentence) => sentence !== undefined)
    if (problem !== undefined) return { outcome: 'invalid_response', error: problem }
    return { outcome: 'unreachable', error: explainConnection(chain, host) }
  }
}

type Verdict = Pick<SendResult, 'outcome' | 'error'>

/** The status decides the outcome, whatever follows it (service-spec §6 "Delivery rules"). */
function judge(status: number): Verdict {
  if (status < 300) return { outcome: 'success', error: null }
  const error =
    status < 400
      ? `The endpoint redirected (${status}). Redirects are not followed.`
      : `The endpoint responded with status ${status}.`
  return { outcome: 'http_error', error }
}

/** Each phase lasts until the next one starts, and the last phase until the attempt ends. */
function measurePhases(
  connection: Connection | undefined,
  {
    startedAt,
    respondedAt,
    endedAt,
  }: { startedAt: number; respondedAt: number | undefined; endedAt: number },
): Phases | null {
  if (!connection) return null
  const phases: Phases = { dns: null, connect: null, tls: null, first_byte: null, body: null }
  const isNew = connection.startedAt >= startedAt
  const steps: { phase: keyof Phases; happens: boolean; doneAt: number | undefined }[] = [
    { phase: 'dns', happens: isNew && connection.isNamed, doneAt: connection.lookedUpAt },
    { phase: 'connect', happens: isNew, doneAt: connection.connectedAt },
    { phase: 'tls', happens: isNew && connection.isSecure, doneAt: connection.readyAt },
    { phase: 'first_byte', happens: true, doneAt: respondedAt },
    { phase: 'body', happens: true, doneAt: endedAt },
  ]
  let since = startedAt
  for (const { phase, happens, doneAt } of steps) {
    if (!happens) continue
    phases[phase] = Math.round(((doneAt ?? endedAt) - since) * 10) / 10
    if (doneAt === undefined) break
    since = doneAt
  }
  return phases
}

function storableText(chunks: Buffer[]): string {
  if (chunks.length === 0) return ''
  const bytes = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES)
  // `stream` drops an incomplete character at the end.
  return storable(new TextDecoder().decode(bytes, { stream: true }))
}

function storableHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const stored: Record<string, string> = {}
  let free = MAX_HEADER_CHARACTERS
  for (const [name, value] of Object.entries(headers)) {
    const text = storable(Array.isArray(value) ? value.join(', ') : (value ?? ''))
    const size = name.length + text.length
    if (size > free) continue
    free -= size
    stored[storable(name)] = text
  }
  return stored
}

/** PostgreSQL stores neither NUL nor a lone surrogate. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}

function formatSeconds(ms: number): string {
  return ms === 1000 ? '1 second' : `${ms / 1000} seconds`
}

/** An error and its causes. An `AggregateError` has one error per IP address that was tried. */
function causes(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth > 5) return []
  const inner = error instanceof AggregateError ? error.errors : []
  return [error, ...[error.cause, ...inner].flatMap((cause) => causes(cause, depth + 1))]
}

/** Error codes of Node (system, DNS, TLS) and undici, explained to the owner of the
 *  endpoint. */
const SENTENCES: Record<string, (host: string) => string> = {
  ECONNREFUSED: (host) => `Connection refused: nothing listens at ${host}.`,
  ECONNRESET: () => 'The endpoint closed the connection before it responded.',
  EPIPE: () => 'The endpoint closed the connection before it responded.',
  UND_ERR_SOCKET: () => 'The endpoint closed the connection before it responded.',
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
  // With a single certificate, both causes look the same.
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () =>
    'The certificate is from an authority that is not trusted, or its chain is incomplete.',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: () => 'The endpoint asks for a client certificate.',
  ERR_TLS_CERT_ALTNAME_INVALID: (host) => `The certificate of the endpoint is not for ${host}.`,
}

const NOT_HTTP = [
  errors.HTTPParserError,
  errors.ResponseContentLengthMismatchError,
  // undici throws it for a status below 100.
  AssertionError,
]

/** Explains a response that has no valid status line. Undefined: the error is of another kind. */
function explainProtocol(error: Error): string | undefined {
  if (error instanceof TooManyInterimResponses)
    return 'The endpoint sent only interim responses (1xx), more than 100 of them.'
  if (error instanceof errors.HeadersOverflowError)
    return 'The headers of the interim responses (1xx) are too large.'
  if (error instanceof errors.SocketError && error.message === 'bad upgrade')
    return 'The endpoint responded with 101 Switching Protocols, which was not requested.'
  const isNotHttp = NOT_HTTP.some((kind) => error instanceof kind)
  return isNotHttp ? 'The response is not valid HTTP/1.1.' : undefined
}

function explainConnection(chain: Error[], host: string): string {
  const proxyFailure = chain.find((cause) => cause instanceof ProxyFailed)
  if (proxyFailure) return proxyFailure.message
  const code = (cause: Error): string => ('code' in cause ? String(cause.code) : '')
  const sentence = chain.map((cause) => SENTENCES[code(cause)]).find((each) => each !== undefined)
  if (sentence) return sentence(host)
  if (chain.some((cause) => /^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code(cause))))
    return 'The TLS handshake failed.'
  return storable(`The request failed: ${chain[0]?.message}`)
}

/** The step that was not finished at the deadline, as the start of a sentence. */
function unfinishedStep(connection: Connection | undefined, host: string): string {
  if (!connection || connection.readyAt !== undefined) return 'There was no response'
  if (connection.isNamed && connection.lookedUpAt === undefined)
    return `The name ${host} was not resolved`
  if (connection.connectedAt === undefined) return `No connection to ${host} was established`
  return `The TLS handshake with ${host} did not finish`
}
