/** An HTTP client that keeps connections open, and sends a request again after 429. */
import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import { buffer as readBytes } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { parseJson } from '../model/json.ts'
import { authorizationOf, type ReceivedResponse, type Request } from './request.ts'

const TIMEOUT_MS = 30_000
/** The longest `Retry-After` that the client waits for. */
const MAX_WAIT_SECONDS = 90
/** Without a limit, a service that always responds with 429 would keep the tests waiting
 *  forever. */
const MAX_REPEATS = 10

/** RFC 9110 §9.2.2. */
const IDEMPOTENT_METHODS = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']

/** A reused connection broke before anything of the response arrived. The server may have closed it
 *  as idle. */
class ReusedConnectionBroke extends Error {
  override name = 'ReusedConnectionBroke'
}

/** Sends requests to one service. */
export class HttpClient {
  readonly #url: string
  readonly #repeatHeaders: string[]
  readonly #http: typeof http | typeof https
  /** Keeps connections open. */
  readonly #agent: http.Agent

  /** If the connection breaks, a request with one of the headers `repeatHeaders` may be sent twice,
   *  also a POST. */
  constructor(url: string, repeatHeaders: string[]) {
    this.#url = url
    this.#repeatHeaders = repeatHeaders
    this.#http = new URL(url).protocol === 'https:' ? https : http
    this.#agent = new this.#http.Agent({ keepAlive: true })
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Sends the request. After 429, calls `onLimited`, waits for `Retry-After` and sends the request
   *  again. Returns the 429 if `Retry-After` is missing or too long, or after too many repeats.
   *  Throws if no response arrives. */
  async exchange(
    request: Request,
    onLimited?: (response: ReceivedResponse) => void,
  ): Promise<ReceivedResponse> {
    for (let repeats = 0; ; repeats++) {
      const response = await this.#exchangeOnce(request)
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
      const canWait = seconds >= 0 && seconds <= MAX_WAIT_SECONDS && repeats < MAX_REPEATS
      if (response.status !== 429 || !canWait) return response
      onLimited?.(response)
      await delay(seconds * 1000)
    }
  }

  /** The server may close an idle connection at any time, so a request that must not be sent twice
   *  gets a new connection. Other requests use an open connection. If that connection breaks, they
   *  are sent again on a new one. */
  async #exchangeOnce(request: Request): Promise<ReceivedResponse> {
    if (!this.#isRepeatable(request)) return await this.#sendOnNewConnection(request)
    return await this.#send(request, this.#agent).catch((error) => {
      if (error instanceof ReusedConnectionBroke) return this.#sendOnNewConnection(request)
      throw error
    })
  }

  async #sendOnNewConnection(request: Request): Promise<ReceivedResponse> {
    // `keepAlive` avoids `Connection: close`, after which a server may reset the connection before
    // the server has read the whole body.
    const agent = new this.#http.Agent({ keepAlive: true })
    return await this.#send(request, agent).finally(() => agent.destroy())
  }

  #isRepeatable({ method, headers }: Request): boolean {
    return (
      IDEMPOTENT_METHODS.includes(method) || this.#repeatHeaders.some((name) => name in headers)
    )
  }

  async #send(request: Request, agent: http.Agent): Promise<ReceivedResponse> {
    const { method, path, headers, body, key } = request
    const startedAt = performance.now()
    const sent = this.#http.request(this.#url + path, {
      method,
      agent,
      headers: {
        Accept: '*/*',
        ...headers,
        ...(key === null ? {} : { Authorization: authorizationOf(request, key) }),
        ...(body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }),
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const received = once(sent, 'response') as Promise<[http.IncomingMessage]>
    // An error after the response has begun also reaches `readBytes`. Without a listener here, it
    // would end the process.
    sent.on('error', () => {})
    sent.end(body)
    const [response] = await received.catch((error) => {
      const isBroken = sent.reusedSocket && BROKEN_CONNECTION_CODES.includes(error.code)
      throw isBroken ? new ReusedConnectionBroke(error.message) : error
    })
    const bytes = await readBytes(response)
    const text = bytes.toString()
    return {
      status: response.statusCode ?? 0,
      headers: toHeaders(response.rawHeaders),
      bytes,
      text,
      json: parseJson(text),
      durationMs: performance.now() - startedAt,
    }
  }
}

const BROKEN_CONNECTION_CODES = ['ECONNRESET', 'EPIPE']

function toHeaders(rawHeaders: string[]): Headers {
  const headers = new Headers()
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '')
  return headers
}
