/** Finds the owner of an API key, and counts requests against the owner's rate limit. */
import {
  type AcceptedKey,
  findPrincipal,
  type KeyStatus,
  type Principal,
  type RejectedKey,
} from '../records/api-keys.ts'
import { findCountedPrincipal } from '../records/counted-keys.ts'
import type { Db } from '../records/database/open.ts'
import type { Sql } from '../records/database/statements.ts'
import { coalesce } from '../runtime/coalesce.ts'
import { hashApiKey, isWellFormed } from './api-key.ts'
import { newRateLimiter, type RateLimit, type RateLimitState, stateAfter } from './rate-limit.ts'

/** Finds the status and the owner of a key by its token. Undefined: the token is malformed or
 *  unknown. */
type Authenticate = (token: string) => Promise<KeyStatus | undefined>

type CountingAuthenticate = (token: string) => Promise<Authentication | undefined>

interface CountedKey extends AcceptedKey {
  /** The state of the owner's rate limit, including this request. */
  rateLimit: RateLimitState
}

type Authentication = CountedKey | RejectedKey

/** Requests that arrive while a statement for their key runs share the next statement. The next
 *  statement begins this long after the running one has ended, so that more requests share it. */
const GATHER_MS = 5

/** As `authenticator`, but also counts each request against the rate limit of the owner. Requests
 *  with a rejected key are not counted: otherwise, anyone with such a key could use up the owner's
 *  limit. */
export function countingAuthenticator(db: Db, limit: RateLimit): CountingAuthenticate {
  return db.dialect === 'postgres' ? inOneStatement(db, limit) : inTwoSteps(db, limit)
}

/** Concurrent requests with the same key share a statement: see `coalesce`. */
function inOneStatement(db: Db, limit: RateLimit): CountingAuthenticate {
  const find = coalesce(
    (tokenHash, requestCount) =>
      findCountedPrincipal(db, tokenHash, { ...limit, requests: requestCount }),
    GATHER_MS,
  )
  return async (token) => {
    if (!isWellFormed(token)) return undefined
    const { result, ...placeInBatch } = await find(hashApiKey(token))
    if (!result || 'rejected' in result) return result
    return {
      principal: result.principal,
      rateLimit: stateAfter(limitOf(result.principal, limit), result.window, placeInBatch),
    }
  }
}

function inTwoSteps(db: Db, limit: RateLimit): CountingAuthenticate {
  const authenticate = authenticator(db.read)
  const rateLimiter = newRateLimiter(db, limit)
  return async (token) => {
    const status = await authenticate(token)
    if (!status || 'rejected' in status) return status
    const { principal } = status
    const rateLimit = await rateLimiter.consume(principal.userId, limitOf(principal, limit))
    return { principal, rateLimit }
  }
}

/** No limit is cached: one that an operator sets applies to the next request, on every node. */
function limitOf({ requestsPerMinute }: Principal, { maxRequests }: RateLimit): number {
  return requestsPerMinute ?? maxRequests
}

export function authenticator(sql: Sql): Authenticate {
  const find = coalesce((tokenHash) => findPrincipal(sql, tokenHash))
  return async (token) => (isWellFormed(token) ? (await find(hashApiKey(token))).result : undefined)
}
