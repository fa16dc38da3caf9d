import createClient, {
  type Client,
  type ClientPathsWithMethod,
  type FetchResponse,
  type MaybeOptionalInit,
} from 'openapi-fetch'
import type { paths } from '../../generated/openapi.ts'
import { MusterError } from './error.ts'
import { type ListPath, type ListQuery, type Page, type RecordOf, walk } from './pages.ts'
import { fetchPatiently } from './patience.ts'

export interface MusterOptions {
  /** Where the service is, such as `https://api.example.com`. */
  baseUrl: string
  /** Begins with `mst_`. It belongs on a server: whoever has it can do what it can. */
  apiKey: string
  /** How often a call is repeated when the service asks to wait, or the connection breaks. 3 by default; 0: never. */
  maxRetries?: number
  /** How long all pauses of one call may be together. A minute by default: what a used-up rate limit takes. */
  maxWaitMs?: number
  /** In the place of the global one. */
  fetch?: (request: Request) => Promise<Response>
}

type Api = Client<paths>
type Method = 'get' | 'post' | 'patch' | 'delete'

/** The body of the 2xx answer. It is not there for 204, nor for 304, which only a request with `If-None-Match` gets. */
export interface Answer<Operation extends Record<string | number, unknown>, Init> {
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
) => Promise<Answer<Extract<paths[Path][M], Record<string | number, unknown>>, Init>>

export interface Muster {
  /** Each takes a path of the contract, its parameters and body, and throws `MusterError` for any answer of 400 and above. */
  GET: Call<'get'>
  /** With an `Idempotency-Key` of its own unless you give one: repeats within the call do nothing twice. */
  POST: Call<'post'>
  PATCH: Call<'patch'>
  DELETE: Call<'delete'>
  /** All records of a list, page by page: `for await (const task of muster.records('/public/v1/tasks'))`. */
  records<Path extends ListPath>(
    path: Path,
    query?: ListQuery<Path>,
    options?: ListOptions,
  ): AsyncGenerator<RecordOf<Path>, void, undefined>
  /** The same, as whole pages: `data` and `meta`. */
  pages<Path extends ListPath>(
    path: Path,
    query?: ListQuery<Path>,
    options?: ListOptions,
  ): AsyncGenerator<Page<Path>, void, undefined>
}

interface ListOptions {
  signal?: AbortSignal
}

/** A client of one service with one key. Makes no request by itself. */
export function createMuster(options: MusterOptions): Muster {
  const {
    baseUrl,
    apiKey,
    maxRetries = 3,
    maxWaitMs = 60_000,
    fetch = (request) => globalThis.fetch(request),
  } = options
  const api = createClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${apiKey}`, Accept: 'application/json' },
    fetch: (request) => fetchPatiently(request, { fetch, maxRetries, maxWaitMs }),
    // Every list of the contract is one text with commas.
    querySerializer: { array: { style: 'form', explode: false } },
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

  const getPage =
    <Path extends ListPath>(path: Path, { signal }: ListOptions) =>
    async (query: Record<string, unknown>): Promise<Page<Path>> => {
      const { data } = await api.GET(path as never, { params: { query }, signal } as never)
      return data as unknown as Page<Path>
    }
  const pages: Muster['pages'] = (path, query, options = {}) => walk(getPage(path, options), query)
  return {
    GET: api.GET as unknown as Call<'get'>,
    POST: api.POST as unknown as Call<'post'>,
    PATCH: api.PATCH as unknown as Call<'patch'>,
    DELETE: api.DELETE as unknown as Call<'delete'>,
    pages,
    async *records(path, query, options) {
      for await (const { data } of pages(path, query, options)) yield* data
    },
  }
}
