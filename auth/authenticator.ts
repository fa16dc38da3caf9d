import type { KeyStatus, Principal } from '../records/api-keys.ts'
import { findCountedPrincipal } from '../records/counted-keys.ts'
import type { Db } from '../records/database/open.ts'
import { authenticator, hashToken, isWellFormed } from './api-key.ts'
import { coalesce } from './coalesce.ts'
import { newRateLimiter, type RateLimit, type RateLimitState, stateAfter } from './rate-limit.ts'

export type Authentication =
  | {
      principal: Principal
      /** The state of the owner's rate limit, including this request. */
      rateLimit: RateLimitState
    }
  | Extract<KeyStatus, { rejected: Principal }>

/** When requests with a key wait for a statement, the next one waits this much longer for more of
 *  them. */
const GATHER_MS = 5

/** Finds the owner of an API key and counts the request against their rate limit. Undefined when
 *  the key is malformed or unknown. A rejected key is not counted, so that nobody can use up the
 *  limit of its owner with it. */
export function countingAuthenticator(
  db: Db,
  limit: RateLimit,
): (token: string) => Promise<Authentication | undefined> {
  return db.dialect === 'postgres' ? inOneStatement(db, limit) : inTwoSteps(db, limit)
}

/** Concurrent requests with the same key share a statement: see `coalesce`. */
function inOneStatement(db: Db, limit: RateLimit): ReturnType<typeof countingAuthenticator> {
  const find = coalesce(
    (tokenHash, requests) => findCountedPrincipal(db, tokenHash, { ...limit, requests }),
    GATHER_MS,
  )
  return async (token) => {
    if (!isWellFormed(token)) return undefined
    const { result, ...placeInBatch } = await find(hashToken(token))
    if (!result || 'rejected' in result) return result
    return {
      principal: result.principal,
      rateLimit: stateAfter(limit.points, result.window, placeInBatch),
    }
  }
}

function inTwoSteps(db: Db, limit: RateLimit): ReturnType<typeof countingAuthenticator> {
  const authenticate = authenticator(db.read)
  const rateLimiter = newRateLimiter(db, limit)
  return async (token) => {
    const status = await authenticate(token)
    if (!status || 'rejected' in status) return status
    return { ...status, rateLimit: await rateLimiter.consume(status.principal.userId) }
  }
}
