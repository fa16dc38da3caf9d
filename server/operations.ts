/** Serves the operations of openapi.yaml: authenticate, limit, match, authorize, parse the input,
 *  execute, respond. */
import type { Logger } from 'pino'
import { isWellFormed } from '../auth/api-key.ts'
import { countingAuthenticator } from '../auth/authenticator.ts'
import {
  newRateLimiter,
  type RateLimit,
  type RateLimitState,
  toNetwork,
} from '../auth/rate-limit.ts'
import { Refused } from '../errors.ts'
import { handlers } from '../generated/handlers.ts'
import { type OperationId, type OperationRow, operations } from '../generated/operations.ts'
import { isNotImplemented } from '../handlers/call.ts'
import type { AccountQuotas } from '../operations/account-quota.ts'
import { etagOf, ifMatchHolds } from '../operations/etag.ts'
import { execute } from '../operations/execute.ts'
import { idempotencyFingerprint, type KeysInUse } from '../operations/idempotency.ts'
import { assertPermitted } from '../operations/permissions.ts'
import type { ResponseChecker } from '../operations/response-check.ts'
import type { Db } from '../records/database/open.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { limitInFlight } from './in-flight-requests.ts'
import { readInput } from './input.ts'
import { newDispatcher } from './openapi.ts'
import { respondFromStore, sendResult, storableResponse } from './respond.ts'
import { findOperation } from './router.ts'

interface OperationServices {
  db: Db
  config: Pick<Config, 'rateLimitPerMinute' | 'requestsInFlightPerUser' | 'isProduction'>
  log: Logger
  now: () => Date
  checkResponse: ResponseChecker
  keysInUse: KeysInUse
  quotas: AccountQuotas
}

const WINDOW_SECONDS = 60
/** The most requests that one network may send with keys that are well-formed but rejected. */
const REJECTED_REQUESTS_PER_MINUTE = 120

const operationIds = Object.keys(operations) as OperationId[]

/** The middleware for every path below /public. Throws `Refused` in production when a handler is
 *  not implemented. */
export function serveOperations(services: OperationServices): (ctx: Context) => Promise<void> {
  checkHandlersImplemented(services)
  const authenticate = newAuthentication(services)
  const serveWithinLimit = limitInFlight(services.config.requestsInFlightPerUser)
  const dispatch = newDispatcher({
    assertAuthenticated,
    serve: (id, ctx) => serve(services, id, ctx),
  })
  return async (ctx) => {
    await authenticate(ctx)
    await serveWithinLimit(ctx, async () => {
      const id = findOperation(ctx, assertAuthenticated)
      if (id !== undefined) await dispatch(id, ctx)
    })
  }
}

function assertAuthenticated(ctx: Context): void {
  if (ctx.state.principal) return
  const message = ctx.state.isSuspended
    ? 'The account of this API key is suspended.'
    : 'The API key is missing, malformed or revoked.'
  ctx.throw(401, message, { headers: { 'WWW-Authenticate': 'Bearer realm="Muster API"' } })
}

function checkHandlersImplemented({ config, log }: OperationServices): void {
  const missing = operationIds.filter((id) => isNotImplemented(handlers[id]))
  if (missing.length === 0) return
  if (config.isProduction)
    throw new Refused(
      'These operations have no handler yet, and NODE_ENV is production: ' +
        `${missing.join(', ')}. Write handlers/*.ts.`,
    )
  log.warn(
    { operations: missing },
    'These operations respond with 501 until their handlers are written',
  )
}

/** Reads the API key and stores its owner in the request's state. Throws 429 above the limit of the
 *  owner, or above that of rejected keys from one network. Below these limits, a request without a
 *  valid key passes: `assertAuthenticated` refuses it. */
function newAuthentication({
  db,
  config,
  now,
}: OperationServices): (ctx: Context) => Promise<void> {
  const limit = (name: string, maxRequests: number): RateLimit => ({
    name,
    maxRequests,
    windowSeconds: WINDOW_SECONDS,
  })
  const rejectedKeys = newRateLimiter(db, limit('unknown_keys', REJECTED_REQUESTS_PER_MINUTE))
  const authenticate = countingAuthenticator(db, limit('requests', config.rateLimitPerMinute))
  return async (ctx) => {
    const token = /^Bearer +([^ ]+)$/i.exec(ctx.get('Authorization'))?.[1]
    if (token === undefined) return
    const found = await authenticate(token)
    if (found && 'principal' in found) {
      ctx.state.principal = found.principal
      applyRateLimit(ctx, found.rateLimit, now())
      return
    }
    // Counts only keys that were looked up in the database.
    if (isWellFormed(token)) {
      const state = await rejectedKeys.consume(toNetwork(ctx.ip))
      if (!state.allowed) throwTooManyRequests(ctx, state)
    }
    ctx.state.rejectedPrincipal = found?.rejected
    ctx.state.isSuspended = found?.isOnlySuspended
  }
}

function applyRateLimit(ctx: Context, state: RateLimitState, now: Date): void {
  ctx.set({
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(Math.ceil((now.getTime() + state.msBeforeNext) / 1000)),
    RateLimit: `"default";r=${state.remaining};t=${Math.ceil(state.msBeforeNext / 1000)}`,
    'RateLimit-Policy': `"default";q=${state.limit};w=${WINDOW_SECONDS}`,
  })
  if (!state.allowed) throwTooManyRequests(ctx, state)
}

function throwTooManyRequests(ctx: Context, { msBeforeNext }: RateLimitState): never {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  const unit = seconds === 1 ? 'second' : 'seconds'
  return ctx.throw(429, `Too many requests. Try again in ${seconds} ${unit}.`, {
    headers: { 'Retry-After': String(seconds) },
  })
}

async function serve(services: OperationServices, id: OperationId, ctx: Context): Promise<void> {
  const operation: OperationRow = operations[id]
  const { principal } = ctx.state
  if (!principal) throw new Error(`${id} is served without authentication`)
  ctx.set('Cache-Control', 'private, no-cache')
  assertPermitted(operation, principal)
  const { input, text, mergePatch } = await readInput(ctx, id)
  const ifMatch = ctx.headers['if-match']
  const key = operation.idempotent ? ctx.get('Idempotency-Key') : ''
  const { userId } = principal
  const idempotency =
    key === ''
      ? undefined
      : { userId, key, fingerprint: idempotencyFingerprint(ctx.method, ctx.url, text) }
  const { earlierResponse } = await execute(services, id, {
    input,
    caller: {
      ...principal,
      apiKey: {
        id: principal.keyId,
        rateLimit: { limit: services.config.rateLimitPerMinute, window_seconds: WINDOW_SECONDS },
      },
    },
    requestId: ctx.state.requestId,
    traceparent: ctx.state.traceparent,
    mergePatch,
    isMatch: (current: object) => ifMatchHolds(ifMatch, etagOf(JSON.stringify(current))),
    idempotency,
    respond(result) {
      sendResult(services, id, ctx, result)
      return storableResponse(ctx)
    },
  })
  if (earlierResponse) respondFromStore(ctx, earlierResponse)
}
