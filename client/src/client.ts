import createClient, {
  type Client,
  type ClientPathsWithMethod,
  createQuerySerializer,
  type FetchResponse,
  type MaybeOptionalInit,
} from 'openapi-fetch'
import type { paths } from '../../generated/openapi.ts'
import { MusterError } from './error.ts'
import { Gate } from './gate.ts'
import {
  type ListedRecord,
  type ListParameters,
  type ListPath,
  type ResultPage,
  walk,
} from './pages.ts'
import { fetchWithRetries } from './retry.ts'

export interface MusterOptions {
  /** For example `https://api.example.com`. */
  baseUrl: string
  /** Begins with `mst_`. A secret: use it on servers only. */
  apiKey: string
  /** The most retries of a call. A call is retried after 409, 429 or 503 if the response has
   *  `Retry-After`, and after a lost connection. A change that may have been made is retried only if
   *  it has an `Idempotency-Key`. Default: 3. */
  maxRetries?: number
  /** The longest time that one call waits between its attempts, in total. The time before the
   *  first attempt does not count. Default: two minutes, which is two windows of the rate limit. */
  maxWaitMs?: number
  /** The most calls in progress at once. Further calls wait, and begin in their order. Default: 10,
   *  as many as the service serves at once for each user. */
  maxConcurrentCalls?: number
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

type Api = Client<paths>
type Method = 'get' | 'post' | 'patch' | 'delete'

/** A 2xx or 304 response. `data` is undefined for 204 and 304; only a request with `If-None-Match`
 *  gets 304. */
export interface ApiResponse<Operation extends Record<string | number, unknown>, Init> {
  data:
    | Extract<FetchResponse<Operation, Init, `${string}/${string}`>, { error?: never }>['data']
    | (Init extends { params: { header: { 'If-None-Match': string } } } ? undefined : never)
  response: Response
}

type InitParameter<Init> = object extends Init ? [init?: Init] : [init: Init]

type Call<M extends Method> = <
  Path extends ClientPathsWithMethod<Api, M>,
  Init extends MaybeOptionalInit<paths[Path], M>,
>(
  path: Path,
  ...init: InitParameter<Init>
) => Promise<ApiResponse<Extract<paths[Path][M], Record<string | number, unknown>>, Init>>

/** `GET`, `POST`, `PATCH` and `DELETE` take a path of the contract with its parameters and body.
 *  All methods throw `MusterError` for status 400 and above. */
export interface Muster {
  GET: Call<'get'>
  /** Sends a random `Idempotency-Key` unless you set one, so that a retry cannot create a second
   *  record. */
  POST: Call<'post'>
  PATCH: Call<'patch'>
  DELETE: Call<'delete'>
  /** The records of a list from all pages: `for await (const task of
   *  muster.records('/public/v1/tasks'))`. The loop may change and delete the records. */
  records<Path extends ListPath>(
    path: Path,
    query?: ListParameters<Path>,
    options?: ListOptions,
  ): AsyncGenerator<ListedRecord<Path>, void, undefined>
  /** The pages of a list, each with `data` and `meta`. */
  pages<Path extends ListPath>(
    path: Path,
    query?: ListParameters<Path>,
    options?: ListOptions,
  ): AsyncGenerator<ResultPage<Path>, void, undefined>
}

/** The second signature of GET is for `getPage`, whose path has a generic type. */
interface Methods extends Pick<Muster, 'POST' | 'PATCH' | 'DELETE'> {
  GET: Call<'get'> & ((path: string, init: object) => Promise<{ data: unknown }>)
}

/** In the contract, every list is comma-separated text. */
const serializeValues = createQuerySerializer<Record<string, unknown>>({
  array: { style: 'form', explode: false },
})

/** openapi-fetch leaves out null, so that a filter with null would return all records. */
function serializeQuery(query: Record<string, unknown>): string {
  const entries = Object.entries(query).map(([name, value]) => [
    name,
    value === null ? 'null' : value,
  ])
  return serializeValues(Object.fromEntries(entries))
}

interface ListOptions {
  signal?: AbortSignal
}

/** A client of one service with one API key. */
export function createMuster(options: MusterOptions): Muster {
  const {
    baseUrl,
    apiKey,
    maxRetries = 3,
    maxWaitMs = 120_000,
    maxConcurrentCalls = 10,
    fetch = (request) => globalThis.fetch(request),
  } = options
  const api = createClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${apiKey}`, Accept: 'application/json' },
    // Text is a file, such as CSV: no other body is text.
    bodySerializer: (body) => (typeof body === 'string' ? body : JSON.stringify(body)),
    querySerializer: serializeQuery,
  })
  api.use({
    onRequest({ request }) {
      if (request.method === 'POST' && !request.headers.has('Idempotency-Key'))
        request.headers.set('Idempotency-Key', crypto.randomUUID())
    },
    async onResponse({ request, response }) {
      if (response.status >= 400)
        throw new MusterError(
          `${request.method} ${new URL(request.url).pathname}`,
          response,
          await response.text(),
        )
    },
  })

  // openapi-fetch types each result as data or an error. Here errors are thrown, so only data
  // remains.
  const gate = new Gate(maxConcurrentCalls)
  const { GET, POST, PATCH, DELETE } = withGate(api, gate, (request) =>
    fetchWithRetries(request, { fetch, maxRetries, maxWaitMs, gate }),
  )
  const getPage =
    <Path extends ListPath>(path: Path, { signal }: ListOptions) =>
    async (query: Record<string, unknown>): Promise<ResultPage<Path>> => {
      const { data } = await GET(path as string, { params: { query }, signal })
      return data as ResultPage<Path>
    }
  const pages: Muster['pages'] = (path, query, options = {}) => walk(getPage(path, options), query)
  return {
    GET,
    POST,
    PATCH,
    DELETE,
    pages,
    async *records(path, query, options) {
      for await (const { data } of pages(path, query, options)) yield* data
    },
  }
}

/** Each call has a place in the gate until its response has been read. The body of a call is
 *  serialised before the call waits, so that the caller may change it meanwhile. */
function withGate(api: Api, gate: Gate, send: (request: Request) => Promise<Response>): Methods {
  const limited =
    (call: (path: string, init?: object) => Promise<unknown>) =>
    async (path: string, init?: object): Promise<unknown> => {
      let hasPlace = false
      const fetch = async (request: Request): Promise<Response> => {
        await gate.enter(request.signal)
        hasPlace = true
        return send(request)
      }
      try {
        return await call(path, { fetch, ...init })
      } finally {
        if (hasPlace) gate.leave()
      }
    }
  const methods = ['GET', 'POST', 'PATCH', 'DELETE'] as const
  return Object.fromEntries(
    methods.map((method) => [method, limited(api[method] as Parameters<typeof limited>[0])]),
  ) as unknown as Methods
}
