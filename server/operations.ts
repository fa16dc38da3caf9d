/** The operations of openapi.yaml: match, authenticate and count, limit, permit, read, validate, call, answer. Each step once, in this order. */
import { readFileSync } from 'node:fs'
import type { Context as KoaContext } from 'koa'
import OpenAPIBackendModule, {
  type Document,
  type Context as OperationMatch,
} from 'openapi-backend'
import { authenticator, hashToken, isWellFormed, type Principal } from '../auth/api-key.ts'
import { networkOf, newRateLimiter, type RateLimitState } from '../auth/rate-limit.ts'
import { Refused } from '../errors.ts'
import { handlers } from '../generated/handlers.ts'
import { type Operation, type OperationId, operations } from '../generated/operations.ts'
import { isNotImplemented } from '../handlers/call.ts'
import { execute } from '../operations/execute.ts'
import { idempotencyFingerprint, runOnce } from '../operations/idempotency.ts'
import { assertPermitted } from '../operations/permissions.ts'
import type { Db } from '../records/database/open.ts'
import type { Trx } from '../records/database/transaction.ts'
import type { StoredResponse } from '../records/idempotency-keys.ts'
import { type AnswerServices, answer, sendJson } from './answer.ts'
import type { Config } from './config.ts'
import { deprecationHeaders } from './deprecation.ts'
import { etagOf, ifMatchHolds } from './etag.ts'
import { compileRoutes, findOperation } from './router.ts'
import { readInput } from './validate.ts'

// The package is CommonJS: its default export arrives one level down.
const OpenAPIBackend = OpenAPIBackendModule.default ?? OpenAPIBackendModule

export interface OperationServices extends AnswerServices {
  db: Db
  config: Pick<Config, 'rateLimitPerMinute' | 'validateResponses' | 'isProduction'>
  now: () => Date
}

/** Of every limit here. */
const WINDOW_SECONDS = 60
/** Failed sign-ins with well-formed, unknown keys that one address may make in a minute. */
const UNKNOWN_KEYS_PER_MINUTE = 120
const MAX_KNOWN_OWNERS = 10_000
const UNAUTHORIZED = 'The API key is missing, malformed or revoked.'

const operationIds = Object.keys(operations) as OperationId[]

/** The middleware that serves every path of the contract, and answers 404 for all others below it.
 *  Throws `Refused` when an operation needs no API key, and in production when a handler is still to be written. */
export function serveOperations(services: OperationServices): (ctx: KoaContext) => Promise<void> {
  const { db, config } = services
  refusePublic()
  reportUnwritten(services)
  const match = compileRoutes(operations)
  const deprecations = new Map(operationIds.map((id) => [id, deprecationHeaders(operations[id])]))
  const authenticate = authenticator(db.read)
  const requests = newRateLimiter(db, 'requests', config.rateLimitPerMinute, WINDOW_SECONDS)
  const unknownKeys = newRateLimiter(db, 'unknown_keys', UNKNOWN_KEYS_PER_MINUTE, WINDOW_SECONDS)

  const api = new OpenAPIBackend({
    definition: JSON.parse(
      readFileSync(new URL('../generated/openapi.json', import.meta.url), 'utf8'),
    ) as Document,
    strict: true,
    validate: false,
    quick: true,
    handlers: {
      notFound: (_: OperationMatch, ctx: KoaContext) =>
        ctx.throw(404, 'There is nothing at this address.'),
      unauthorizedHandler: (found: OperationMatch, ctx: KoaContext) => refuse(found, ctx),
      ...Object.fromEntries(
        operationIds.map((id) => [
          id,
          (_: OperationMatch, ctx: KoaContext) => serve(services, id, ctx, ctx.state.principal),
        ]),
      ),
    },
    securityHandlers: {
      apiKey: async (_: OperationMatch, ctx: KoaContext) => {
        ctx.state.principal = await principalOf(ctx)
        return ctx.state.principal
      },
    },
  })
  const ready = api.init().then(() => {
    // Ours is compiled once; theirs is rebuilt for every request. The match was made before: see below.
    const documented = new Map(
      api.router.getOperations().map((operation) => [operation.operationId ?? '', operation]),
    )
    api.router.matchOperation = ((request: { operationId: string }) =>
      documented.get(request.operationId)) as never
    api.router.parseRequest = (request) =>
      ({
        ...request,
        params: {},
        query: {},
        headers: {},
        cookies: {},
        requestBody: undefined,
      }) as never
  })

  /** Whose key it was the last time, by its hash: the request is counted while that is looked up again. Some that come right after a key is revoked
   *  are still counted as its owner's, though none is served. */
  const owners = new Map<string, string>()

  function count(userId: string): Promise<RateLimitState> {
    const counted = requests.consume(userId)
    // Whoever is refused for another reason does not ask.
    counted.catch(() => undefined)
    return counted
  }

  async function principalOf(ctx: KoaContext): Promise<Principal | undefined> {
    const token = /^Bearer +([^ ]+)$/i.exec(ctx.get('Authorization'))?.[1]
    if (token === undefined) return undefined
    const hash = hashToken(token)
    const owner = owners.get(hash)
    const counted = owner === undefined ? undefined : count(owner)
    const principal = await authenticate(token)
    if (principal) {
      if (owners.size >= MAX_KNOWN_OWNERS) owners.clear()
      owners.set(hash, principal.userId)
      ctx.state.counted = owner === principal.userId ? counted : count(principal.userId)
    } else owners.delete(hash)
    // What cannot be a key costs no look-up, and is not counted.
    if (principal === undefined && isWellFormed(token)) {
      const state = await unknownKeys.consume(networkOf(ctx.ip))
      if (!state.allowed) tooManyRequests(ctx, state)
    }
    return principal
  }

  return async (ctx) => {
    await ready
    const operationId = findOperation(ctx, match)
    if (operationId === undefined) return
    ctx.set({ ...deprecations.get(operationId) })
    const method = operations[operationId].method.toUpperCase()
    await api.handleRequest({ method, path: ctx.path, headers: {}, operationId } as never, ctx)
  }
}

/** Whose records would it work on? */
function refusePublic(): void {
  const open = operationIds.filter((id) => operations[id].isPublic)
  if (open.length > 0)
    throw new Refused(
      `openapi.yaml leaves ${open.join(', ')} open to all, but an API key must say whose records to work on. Remove "security: []".`,
    )
}

function reportUnwritten({ config, log }: OperationServices): void {
  const unwritten = operationIds.filter((id) => isNotImplemented(handlers[id]))
  if (unwritten.length === 0) return
  if (config.isProduction)
    throw new Refused(
      `These operations have no handler yet, and NODE_ENV is production: ${unwritten.join(', ')}. Write handlers/*.ts.`,
    )
  log.warn(
    { operations: unwritten },
    'These operations answer 501 until their handlers are written',
  )
}

/** 401, or the error that kept us from knowing: openapi-backend would swallow it. */
function refuse(found: OperationMatch, ctx: KoaContext): void {
  const error = (found.security?.apiKey as { error?: unknown } | undefined)?.error
  if (error !== undefined) throw error
  ctx.throw(401, UNAUTHORIZED, { headers: { 'WWW-Authenticate': 'Bearer realm="Muster API"' } })
}

function tooManyRequests(ctx: KoaContext, { msBeforeNext }: RateLimitState): never {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  return ctx.throw(
    429,
    `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  )
}

/** Serves an authenticated request, from the rate limit to the response. */
async function serve(
  services: OperationServices,
  id: OperationId,
  ctx: KoaContext,
  principal: Principal,
): Promise<void> {
  const operation: Operation = operations[id]
  ctx.set('Cache-Control', 'private, no-cache')
  limit(ctx, await ctx.state.counted)
  assertPermitted(operation, principal)
  const { input, text } = await readInput(ctx, id)
  const ifMatch = ctx.get('If-Match')
  const execution = {
    input,
    caller: principal,
    isMatch: (current: object) =>
      ifMatch === '' || ifMatchHolds(ifMatch, etagOf(JSON.stringify(current))),
  }
  if (operation.access === 'read')
    return answer(services, id, ctx, await execute(services, id, execution))

  /** Responds in the transaction: a response that breaks the contract rolls the changes back. */
  const write = (store?: (trx: Trx) => Promise<void>): Promise<unknown> =>
    execute(services, id, {
      ...execution,
      async around({ trx }, work) {
        const result = await work()
        answer(services, id, ctx, result)
        await store?.(trx)
        return result
      },
    })
  const key = operation.idempotent ? ctx.get('Idempotency-Key') : ''
  if (key === '') return void (await write())
  const fingerprint = idempotencyFingerprint(ctx.method, ctx.url, text)
  const stored = await runOnce(
    services,
    { userId: principal.userId, key, fingerprint },
    (store) => write((trx) => store(trx, storableResponse(ctx))),
    () =>
      services.log.warn(
        { requestId: ctx.state.requestId },
        'An idempotency key could not be released; it expires in a minute',
      ),
  )
  if (stored === undefined) return
  ctx.set(stored.headers)
  ctx.set('Idempotent-Replayed', 'true')
  sendJson(ctx, stored.status, stored.body)
}

function storableResponse(ctx: KoaContext): StoredResponse {
  const headers = ['Location', 'ETag']
    .map((name): [string, string] => [name, ctx.response.get(name)])
    .filter(([, value]) => value !== '')
  const body = ctx.state.responseText ?? ''
  return { status: ctx.status, headers: Object.fromEntries(headers), body }
}

function limit(ctx: KoaContext, state: RateLimitState): void {
  ctx.set({
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(Math.ceil(state.resetAtMs / 1000)),
    RateLimit: `"default";r=${state.remaining};t=${Math.ceil(state.msBeforeNext / 1000)}`,
    'RateLimit-Policy': `"default";q=${state.limit};w=${WINDOW_SECONDS}`,
  })
  if (!state.allowed) tooManyRequests(ctx, state)
}
