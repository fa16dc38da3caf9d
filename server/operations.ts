/** The operations of openapi.yaml: match, authenticate and count, limit, permit, read, validate, call, answer. Each step once, in this order. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Context as KoaContext } from 'koa'
import OpenAPIBackendModule, {
  type Document,
  type Context as OperationMatch,
} from 'openapi-backend'
import { authenticator, hashToken, isWellFormed, type Principal } from '../auth/api-key.ts'
import { networkOf, newRateLimiter, type RateLimitState } from '../auth/rate-limit.ts'
import { InvalidInput, Refused } from '../errors.ts'
import { handlers } from '../generated/handlers.ts'
import { type Operation, type OperationId, operations } from '../generated/operations.ts'
import { type AnyHandler, writeState } from '../operations/call.ts'
import { isNotImplemented } from '../operations/not-implemented.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, writeScope } from '../records/database/scope.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import {
  claimIdempotencyKey,
  keepAnswer,
  releaseIdempotencyKey,
} from '../records/idempotency-keys.ts'
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
          (_: OperationMatch, ctx: KoaContext) =>
            serve({
              services,
              id,
              operation: operations[id],
              handler: handlers[id] as unknown as AnyHandler,
              ctx,
              principal: ctx.state.principal,
            }),
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

/** One call of an operation, on its way through the steps. */
interface Call {
  services: OperationServices
  id: OperationId
  operation: Operation
  handler: AnyHandler
  ctx: KoaContext
  principal: Principal
}

async function serve(call: Call): Promise<void> {
  const { services, id, operation, handler, ctx, principal } = call
  ctx.set('Cache-Control', 'private, no-cache')
  limit(ctx, await ctx.state.counted)
  assertPermitted(ctx, operation, principal)
  const text = await readInput(ctx, id, operation)
  Object.assign(ctx.state, {
    now: services.now(),
    assertMatch(current: object) {
      const header = ctx.get('If-Match')
      if (header !== '' && !ifMatchHolds(header, etagOf(JSON.stringify(current))))
        ctx.throw(412, 'The record has changed since you read it.')
    },
  })

  if (operation.access === 'read') {
    ctx.state.scope = accountScope(
      { dialect: services.db.dialect, sql: services.db.read },
      principal.accountId,
    )
    await handler(ctx)
    answer(services, id, operation, ctx)
  } else {
    const key = operation.idempotent ? ctx.get('Idempotency-Key') : ''
    await (key === ''
      ? transaction(services.db, (trx) => run(call, trx))
      : runOnce(call, key, text))
  }
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

function assertPermitted(ctx: KoaContext, operation: Operation, principal: Principal): void {
  if (operation.access === 'write' && principal.accessLevel !== 'full_access')
    ctx.throw(403, 'This API key is Read Only.')
  if (operation.permission !== 'finance') return
  const isAllowed =
    principal.finance === 'write' || (principal.finance === 'read' && operation.access === 'read')
  if (!isAllowed)
    ctx.throw(
      403,
      `The owner of this API key has no Finance permission to ${operation.access} payments.`,
    )
}

/** Runs the handler. Its changes, its events and, with `runOnce`, the answer kept for repeats are committed together or not at all. */
async function run(
  { services, id, operation, handler, ctx, principal }: Call,
  trx: Trx,
): Promise<void> {
  Object.assign(ctx.state, writeState(writeScope(trx, principal.accountId), ctx.state.now))
  await handler(ctx)
  answer(services, id, operation, ctx)
}

/** What makes two requests the same for an `Idempotency-Key`. */
export function idempotencyFingerprint(method: string, url: string, body: string): string {
  return createHash('sha256').update(`${method} ${url}\n${body}`).digest('base64url')
}

/** As `run`, unless the key was used before: then its answer comes again. */
async function runOnce(call: Call, key: string, text: string): Promise<void> {
  const { services, ctx, principal } = call
  const fingerprint = idempotencyFingerprint(ctx.method, ctx.url, text)
  const claim = await claimIdempotencyKey(
    services.db,
    principal.userId,
    key,
    fingerprint,
    services.now().getTime(),
  )
  if (claim.kind === 'in_flight') stillWorking(ctx)
  if (claim.kind === 'other_request')
    throw new InvalidInput({ 'Idempotency-Key': ['was used for another request.'] })
  if (claim.kind === 'answered') {
    ctx.set(claim.answer.headers)
    ctx.set('Idempotent-Replayed', 'true')
    return sendJson(ctx, claim.answer.status, claim.answer.body)
  }
  try {
    await transaction(services.db, async (trx) => {
      await run(call, trx)
      const headers = Object.fromEntries(
        ['Location', 'ETag']
          .map((name) => [name, ctx.response.get(name)])
          .filter(([, value]) => value !== ''),
      )
      const kept = { status: ctx.status, headers, body: ctx.state.responseText ?? '' }
      if (!(await keepAnswer(trx, principal.userId, key, claim.lockedUntil, kept)))
        stillWorking(ctx)
    })
  } catch (error) {
    await releaseIdempotencyKey(services.db, principal.userId, key, claim.lockedUntil).catch(() => {
      services.log.warn(
        { requestId: ctx.state.requestId },
        'An idempotency key could not be released; it is free again in a minute',
      )
    })
    throw error
  }
}

function stillWorking(ctx: KoaContext): never {
  return ctx.throw(409, 'A request with this Idempotency-Key is still being worked on.', {
    headers: { 'Retry-After': '1' },
  })
}
