/** openapi-backend takes each request for the API to the handler of its operation. Its validation is
 *  off: with it a create takes 8 µs of CPU here, with the generated validators 2 µs, and only these
 *  keep our order of checks and our messages. */
import { readFileSync } from 'node:fs'
import {
  type Context as ApiContext,
  type Document,
  OpenAPIBackend,
  OpenAPIRouter,
  type Operation,
  type ParsedRequest,
  type Request,
} from 'openapi-backend'
import { type OperationId, operations } from '../generated/operations.ts'
import type { Context } from './context.ts'
import { deprecationHeaders } from './deprecation.ts'

const MAX_URL_BYTES = 8 * 1024

interface Api {
  /** Returns the caller. Throws 401 unless the request has a valid API key. */
  requireCaller(ctx: Context): object | string
  /** The operations that `serve` serves. */
  operationIds: readonly OperationId[]
  serve(id: OperationId, ctx: Context): Promise<void>
  /** Serves the other operations. */
  notImplemented?(id: OperationId, ctx: Context): Promise<void>
}

/** Serves all paths of openapi.yaml. Throws 414, 400, 404, 401 and 405, in this order, and what
 *  `serve` throws. OPTIONS needs no API key. */
export function serveApi(api: Api): (ctx: Context) => Promise<void> {
  const definition: Document = JSON.parse(
    readFileSync(new URL('../generated/openapi.json', import.meta.url), 'utf8'),
  )
  const router = new CompiledRouter({ definition })
  const backend = new OpenAPIBackend({
    definition,
    strict: true,
    validate: false,
    quick: true,
    securityHandlers: { apiKey: (_: ApiContext, ctx: Context) => api.requireCaller(ctx) },
    handlers: {
      preRoutingHandler: (_, ctx: Context) => assertReadableUrl(ctx),
      postRoutingHandler: storeOperation,
      notFound: (_, ctx: Context) => ctx.throw(404, 'There is nothing at this URL.'),
      methodNotAllowed(_, ctx: Context) {
        const headers = { Allow: router.allow(ctx.path) }
        if (ctx.method === 'OPTIONS') {
          ctx.set(headers)
          ctx.status = 204
          return
        }
        api.requireCaller(ctx)
        ctx.throw(405, `${ctx.method} is not possible here. Use ${headers.Allow}.`, { headers })
      },
      unauthorizedHandler({ security }) {
        throw security.apiKey.error
      },
      notImplemented: ({ operation }, ctx: Context) =>
        api.notImplemented?.(operation.operationId as OperationId, ctx),
    },
  })
  const ready = backend.init().then(() => {
    backend.router = router
    for (const id of api.operationIds)
      backend.register(id, (_: ApiContext, ctx: Context) => api.serve(id, ctx))
  })
  return async (ctx) => {
    await ready
    await backend.handleRequest(ctx.request as Request, ctx)
  }
}

function assertReadableUrl(ctx: Context): void {
  if (ctx.url.length > MAX_URL_BYTES) ctx.throw(414, 'The URL is longer than 8 KiB.')
  try {
    decodeURIComponent(ctx.path)
  } catch {
    ctx.throw(400, 'The URL has a broken percent-encoding.')
  }
}

/** Sets the headers of a deprecated operation here, so that error responses have them, too. */
function storeOperation({ operation, request }: Partial<ApiContext>, ctx: Context): void {
  if (!operation) return
  const id = operation.operationId as OperationId
  ctx.state.operationId = id
  ctx.state.pathParameters = request?.params
  ctx.set(deprecationHeaders(operations[id]))
}

interface Route {
  pattern: RegExp
  parameters: string[]
  /** By method, in lower case. HEAD has the operation of GET. */
  operations: Map<string, Operation>
  /** The documented methods, HEAD if GET is documented, and OPTIONS. */
  allow: string
}

/** Finds operations by a map of fixed paths and one compiled pattern per path template. The router
 *  of openapi-backend lists all operations and compiles all patterns for each request. */
class CompiledRouter extends OpenAPIRouter {
  /** By path template. The one with fewer parameters takes precedence. */
  readonly #routes = new Map(
    [...Map.groupBy(this.getOperations(), ({ path }) => path)]
      .map(([path, operations]): [string, Route] => [path, newRoute(path, operations)])
      .sort(([, one], [, other]) => one.parameters.length - other.parameters.length),
  )

  /** openapi-backend calls `methodNotAllowed` for an error that begins with 405, and `notFound` for
   *  others. */
  override matchOperation({ method, path }: Request): Operation {
    const route = this.#findRoute(path)
    if (!route) throw new Error('404')
    const operation = route.operations.get(method.toLowerCase())
    if (!operation) throw new Error('405')
    return operation
  }

  /** Parses only the path: input.ts reads the query and the body after the checks that come before
   *  these. */
  override parseRequest({ method, path }: Request, operation?: Operation): ParsedRequest {
    const route = operation && this.#routes.get(operation.path)
    const values = route?.pattern.exec(path)?.slice(1).map(decodeURIComponent)
    const params = Object.fromEntries(
      route?.parameters.map((name, index) => [name, values?.[index]]) ?? [],
    )
    return { method, path, params, query: {}, headers: {}, cookies: {}, requestBody: undefined }
  }

  allow(path: string): string {
    return this.#findRoute(path)?.allow ?? ''
  }

  #findRoute(path: string): Route | undefined {
    return this.#routes.get(path) ?? this.#routes.values().find(({ pattern }) => pattern.test(path))
  }
}

const TEMPLATE_PARAMETER = /\{(.*?)\}/g

function newRoute(path: string, documented: Operation[]): Route {
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(TEMPLATE_PARAMETER, '([^/]+)')
  const operations = new Map(documented.map((operation) => [operation.method, operation]))
  const get = operations.get('get')
  if (get) operations.set('head', get)
  return {
    pattern: new RegExp(`^${source}$`),
    parameters: [...path.matchAll(TEMPLATE_PARAMETER)].map(([, name = '']) => name),
    operations,
    allow: [...operations.keys(), 'options'].join(', ').toUpperCase(),
  }
}
