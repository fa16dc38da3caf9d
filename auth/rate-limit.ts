import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Db } from '../records/db.ts'

/** Where a user stands in the running window. */
export interface RateLimitState {
  allowed: boolean
  limit: number
  remaining: number
  /** When the window ends. */
  resetAtMs: number
  msBeforeNext: number
}

export interface RateLimiter {
  /** Counts one request of `key`. */
  consume(key: string): Promise<RateLimitState>
}

/** `points` requests per window of `windowSeconds` for each key. On PostgreSQL one count for all nodes; on the embedded
 *  database there is one server, which counts in its memory. Throws when the count cannot be kept. */
export function newRateLimiter(db: Db, name: string, points: number, windowSeconds: number): RateLimiter {
  const options = { keyPrefix: name, points, duration: windowSeconds }
  const limiter: RateLimiterAbstract =
    db.dialect === 'sqlite'
      ? new RateLimiterMemory(options)
      : new RateLimiterPostgres({ ...options, storeClient: db.write, storeType: 'knex', tableName: 'rate_limits', tableCreated: true })
  return {
    async consume(key) {
      try {
        return stateOf(true, points, await limiter.consume(key))
      } catch (refused) {
        if (refused instanceof RateLimiterRes) return stateOf(false, points, refused)
        throw refused
      }
    },
  }
}

function stateOf(allowed: boolean, limit: number, result: RateLimiterRes): RateLimitState {
  const msBeforeNext = Math.max(0, result.msBeforeNext)
  return { allowed, limit, remaining: Math.max(0, result.remainingPoints), resetAtMs: Date.now() + msBeforeNext, msBeforeNext }
}
