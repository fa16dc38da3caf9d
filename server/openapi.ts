/** openapi-backend checks openapi.json, authenticates by the security requirements of operations
 *  and dispatches to `serve`. We replace the router of openapi-backend, which rebuilds the patterns
 *  of all paths for each request. The validation of openapi-backend is off, because it has neither
 *  our order of checks nor our messages. */
import { readFileSync } from 'node:fs'
import {
  type Document,
  OpenAPIBackend,
  OpenAPIRouter,
  type Operation,
  type ParsedRequest,
  type Request,
  type Context as SecurityContext,
} from 'openapi-backend'
import { type OperationId, operations } from '../generated/operations.ts'
import type { Context } from './context.ts'

/** Finds an operation by its method and path template: router.ts has matched the request already.
 *  Lists the operations only once. `OpenAPIRouter` itself lists them for each request, and for each
 *  handler at the start. */
class CompiledRouter extends OpenAPIRouter {
  readonly #byTemplate: Map<string, Operation>
  readonly #byId: Map<string, Operation>

  constructor(definition: Document) {
    super({ definition })
    const all = this.getOperations()
    this.#byTemplate = new Map(
      all.map((operation) => [`${operation.method} ${operation.path}`, operation]),
    )
    this.#byId = new Map(all.map((operation) => [operation.operationId ?? '', operation]))
  }

  override getOperation(id: string): Operation | undefined {
    return this.#byId.get(id)
  }

  override matchOperation({ method, path }: Request): Operation {
    const operation = this.#byTemplate.get(`${method} ${path}`)
    if (!operation) throw new Error(`${method} ${path} is not in openapi.json`)
    return operation
  }

  override parseRequest({ method, path }: Request): ParsedRequest {
    return { method, path, params: {}, query: {}, headers: {}, cookies: {}, requestBody: undefined }
  }
}

interface OperationDispatch {
  /** Throws 401 unless the request has a valid API key. */
  assertAuthenticated(ctx: Context): void
  serve(id: OperationId, ctx: Context): Promise<void>
}

export function newDispatcher({
  assertAuthenticated,
  serve,
}: OperationDispatch): (id: OperationId, ctx: Context) => Promise<void> {
  const api = new OpenAPIBackend({
    definition: JSON.parse(
      readFileSync(new URL('../generated/openapi.json', import.meta.url), 'utf8'),
    ) as Document,
    strict: true,
    validate: false,
    quick: true,
    securityHandlers: {
      apiKey: (_: SecurityContext, ctx: Context) => ctx.state.principal !== undefined,
    },
    handlers: {
      unauthorizedHandler: (_: SecurityContext, ctx: Context) => assertAuthenticated(ctx),
    },
  })
  const ready = api.init().then(() => {
    api.router = new CompiledRouter(api.definition)
    for (const id of Object.keys(operations) as OperationId[])
      api.register(id, (_: SecurityContext, ctx: Context) => serve(id, ctx))
  })
  return async (id, ctx) => {
    await ready
    const { method, path } = operations[id]
    await api.handleRequest({ method, path, headers: {} }, ctx)
  }
}
