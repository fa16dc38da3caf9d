/** Serves the operations of openapi.yaml, in this order: authenticate and count (429), limit the
 *  requests in flight (429), match (openapi.ts: 404, 401, 405), authorize (403), read the input
 *  (415 to 422), execute, respond. */
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
import { type OperationId, operations } from '../generated/operations.ts'
import { isNotImplemented, throwNotImplemented } from '../handlers/call.ts'
import type { AccountQuotas } from '../operations/account-quota.ts'
import { assertIfMatch, recordTagOf } from '../operations/etag.ts'
import { execute } from '../operations/execute.ts'
import { idempotencyFingerprints, type KeysInUse } from '../operations/idempotency.ts'
import { assertPermitted } from '../operations/permissions.ts'
import type { ResponseChecker } from '../operations/response-check.ts'
import type { Principal } from '../records/api-keys.ts'
import type { Db } from '../records/database/open.ts'
import type { WebhookConfig } from '../webhooks/webhook-changes.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { limitInFlight } from './in-flight-requests.ts'
import { type ReadInput, readInput } from './input.ts'
import { serveApi } from './openapi.ts'
import { respondFromStore, sendResult, storableResponse } from './respond.ts'
import { withUpload } from './upload.ts'

interface OperationServices {
  db: Db
  config: Pick<
    Config,
    'quotas' | 'rateLimitWindowSeconds' | 'requestsInFlightPerUser' | 'isProduction'
  > &
    WebhookConfig
  log: Logger
  now: () => Date
  checkResponse: ResponseChecker
  keysInUse: KeysInUse
  quotas: AccountQuotas
}

/** The most requests that one network may send with keys that are well-formed but rejected. */
const REJECTED_REQUESTS_PER_MINUTE = 120

const BEARER_TOKEN = /^Bearer +([^ ]+)$/i

const operationIds = Object.keys(operations) as OperationId[]

/** The middleware for every path below /public. Throws `Refused` in production when a handler is
 *  not implemented. */
export function serveOperations(services: OperationServices): (ctx: Context) => Promise<void> {
  const authenticate = newAuthentication(services)
  const serveWithinLimit = limitInFlight(services.config.requestsInFlightPerUser)
  const serveMatched = serveApi({
    requireCaller,
    operationIds: listImplemented(services),
    serve: (id, ctx) => serve(services, id, ctx),
    async notImplemented(id, ctx) {
      await readPermitted(id, ctx)
      throwNotImplemented(id)
    },
  })
  return async (ctx) => {
    // openapi-backend authenticates known operations only, but every request counts.
    await authenticate(ctx)
    await serveWithinLimit(ctx, () => serveMatched(ctx))
  }
}

function requireCaller(ctx: Context): Principal {
  if (ctx.state.principal) return ctx.state.principal
  return ctx.throw(401, describeKeyProblem(ctx), {
    headers: { 'WWW-Authenticate': 'Bearer realm="Muster API"' },
  })
}

/** Repeats nothing that the client sent: it may be a secret. */
function describeKeyProblem(ctx: Context): string {
  const cure = 'Send the key in the header `Authorization: Bearer mst_…`'
  const header = ctx.get('Authorization').trim()
  const token = BEARER_TOKEN.exec(header)?.[1]
  if (ctx.state.isSuspended) return 'The account of this API key is suspended.'
  if (token !== undefined)
    return isWellFormed(token)
      ? 'The API key is unknown or revoked, or its owner is deactivated.'
      : 'The API key is malformed. Copy the whole key: it begins with mst_ and ends with _ and six characters.'
  if (/^Basic /i.test(header)) return `${cure}, not with the scheme Basic.`
  if (isWellFormed(header))
    return 'The word Bearer is missing before the API key: `Authorization: Bearer mst_…`.'
  if (ctx.get('X-API-Key') !== '') return `${cure}, not in X-API-Key.`
  return header === ''
    ? `The API key is missing. ${cure}.`
    : 'The Authorization header must have the form `Bearer mst_…`.'
}

/** Throws `Refused` in production unless all operations have a handler. */
function listImplemented({ config, log }: OperationServices): OperationId[] {
  const missing = operationIds.filter((id) => isNotImplemented(handlers[id]))
  if (missing.length === 0) return operationIds
  if (config.isProduction)
    throw new Refused(
      'These operations have no handler yet, and NODE_ENV is production: ' +
        `${missing.join(', ')}. Write handlers/*.ts.`,
    )
  log.warn(
    { operations: missing },
    'These operations respond with 501 until their handlers are written',
  )
  return operationIds.filter((id) => !missing.includes(id))
}

/** Reads the API key and stores its owner in the request's state. Throws 429 above the limit of the
 *  owner, or above that of rejected keys from one network. Below these limits, a request without a
 *  valid key passes: `requireCaller` refuses it. */
function newAuthentication({
  db,
  config,
  now,
}: OperationServices): (ctx: Context) => Promise<void> {
  const limit = (name: string, maxRequests: number): RateLimit => ({
    name,
    maxRequests,
    windowSeconds: config.rateLimitWindowSeconds,
  })
  const rejectedKeys = newRateLimiter(db, limit('unknown_keys', REJECTED_REQUESTS_PER_MINUTE))
  const authenticate = countingAuthenticator(
    db,
    limit('requests', config.quotas.requests_per_minute),
  )
  return async (ctx) => {
    const token = BEARER_TOKEN.exec(ctx.get('Authorization'))?.[1]
    if (token === undefined) return
    const found = await authenticate(token)
    if (found && 'principal' in found) {
      ctx.state.principal = found.principal
      applyRateLimit(ctx, found.rateLimit, now(), config.rateLimitWindowSeconds)
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

function applyRateLimit(
  ctx: Context,
  state: RateLimitState,
  now: Date,
  windowSeconds: number,
): void {
  ctx.set({
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(Math.ceil((now.getTime() + state.msBeforeNext) / 1000)),
    RateLimit: `"default";r=${state.remaining};t=${Math.ceil(state.msBeforeNext / 1000)}`,
    'RateLimit-Policy': `"default";q=${state.limit};w=${windowSeconds}`,
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
  const { fileType, ...read } = await readPermitted(id, ctx)
  if (fileType === undefined) return void (await run(services, id, ctx, read))
  const { accountId } = read.principal
  await withUpload(services, ctx, { accountId, mediaType: fileType }, ({ sha256, ...upload }) => {
    const input = { ...read.input, body: upload } as typeof read.input
    return run(services, id, ctx, { ...read, input, text: sha256 })
  })
}

/** Runs the operation. Returns whether an earlier request with the same idempotency key has run it. */
async function run(
  services: OperationServices,
  id: OperationId,
  ctx: Context,
  { principal, input, text, mergePatch }: Omit<Permitted, 'fileType'>,
): Promise<{ isReplay: boolean }> {
  const ifMatch = ctx.headers['if-match']
  const key = operations[id].idempotent ? ctx.get('Idempotency-Key') : ''
  const { accountId, userId } = principal
  const fingerprints = () => idempotencyFingerprints(ctx.method, ctx.url, text)
  const idempotency = key === '' ? undefined : { accountId, userId, key, ...fingerprints() }
  const query: Record<string, unknown> = input.query
  const { earlierResponse } = await execute(services, id, {
    input,
    caller: {
      ...principal,
      apiKey: {
        id: principal.keyId,
        rateLimit: {
          limit: principal.requestsPerMinute ?? services.config.quotas.requests_per_minute,
          window_seconds: services.config.rateLimitWindowSeconds,
        },
      },
    },
    ip: ctx.ip,
    requestId: ctx.state.requestId,
    isHead: ctx.method === 'HEAD',
    traceparent: ctx.state.traceparent,
    mergePatch,
    assertMatch: (current) => assertIfMatch(ifMatch, recordTagOf(current)),
    idempotency,
    respond(result) {
      sendResult(services, id, ctx, result, query)
      return storableResponse(ctx, operations[id])
    },
  })
  if (earlierResponse) respondFromStore(ctx, earlierResponse)
  return { isReplay: earlierResponse !== undefined }
}

type Permitted = ReadInput<OperationId> & { principal: Principal }

/** Throws 403, and the errors of `readInput`. */
async function readPermitted(id: OperationId, ctx: Context): Promise<Permitted> {
  const principal = requireCaller(ctx)
  ctx.set('Cache-Control', 'private, no-cache')
  assertPermitted(operations[id], principal)
  return { principal, ...(await readInput(ctx, id)) }
}
