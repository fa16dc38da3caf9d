import type { Principal } from '../records/api-keys.ts'
import type { Sql } from '../records/database/statements.ts'
import { authenticator, hashToken } from './api-key.ts'
import type { RateLimiter, RateLimitState } from './rate-limit.ts'

export type Authentication =
  | {
      principal: Principal
      /** The state of the owner's rate limit, including this request. */
      quota: Promise<RateLimitState>
    }
  | { rejected: Principal; isSuspended: boolean }

const MAX_CACHED_KEYS = 10_000

/** Finds the owner of an API key and counts the request against their rate limit. Undefined when the key
 *  is malformed or unknown. A rejected key is not counted, so that nobody can use up the limit of its owner with it. */
export function countingAuthenticator(
  sql: Sql,
  requests: RateLimiter,
): (token: string) => Promise<Authentication | undefined> {
  const authenticate = authenticator(sql)
  /** Last known owner per key hash, so that the request is counted in parallel with the lookup. Just
   *  after a revocation a request may still be counted, but it is never served. */
  const owners = new Map<string, string>()

  function count(userId: string): Promise<RateLimitState> {
    const quota = requests.consume(userId)
    // Avoids an unhandled rejection when the request is refused before the quota is awaited.
    quota.catch(() => undefined)
    return quota
  }

  return async (token) => {
    const hash = hashToken(token)
    const owner = owners.get(hash)
    const early = owner === undefined ? undefined : count(owner)
    const status = await authenticate(token)
    if (!status || 'rejected' in status) {
      owners.delete(hash)
      return status
    }
    const { principal } = status
    const { userId } = principal
    if (owners.size >= MAX_CACHED_KEYS) owners.clear()
    owners.set(hash, userId)
    return { principal, quota: early && owner === userId ? early : count(userId) }
  }
}
