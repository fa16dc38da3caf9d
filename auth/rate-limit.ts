import ipaddr from 'ipaddr.js'
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible'
import { Refused } from '../errors.ts'
import type { Db } from '../records/database/open.ts'
import { coalesce } from './coalesce.ts'

export class TooOften extends Refused {
  readonly retryAfterSeconds: number

  constructor(msBeforeNext: number) {
    const minutes = Math.max(1, Math.ceil(msBeforeNext / 60_000))
    super(`Too many attempts. Try again in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`)
    this.retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1_000))
  }
}

/** The state of one key in the current window. */
export interface RateLimitState {
  allowed: boolean
  limit: number
  remaining: number
  /** The end of the window, in milliseconds since the epoch. */
  resetAtMs: number
  msBeforeNext: number
}

export interface RateLimiter {
  /** Counts one request of `key`. */
  consume(key: string): Promise<RateLimitState>
  /** Sets the count of `key` to 0. */
  reset(key: string): Promise<void>
}

/** The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a
 *  subscriber has a whole /64. */
export function toNetwork(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  if (address.kind() === 'ipv4') return address.toString()
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

/** Allows `points` requests per key and window. All nodes share the counts in PostgreSQL; with SQLite
 *  there is one node, which counts in memory. Throws when the database is not available. */
export function newRateLimiter(
  db: Db,
  name: string,
  points: number,
  windowSeconds: number,
): RateLimiter {
  const options = { keyPrefix: name, points, duration: windowSeconds }
  const limiter: RateLimiterAbstract =
    db.dialect === 'sqlite'
      ? new RateLimiterMemory(options)
      : new RateLimiterPostgres({
          ...options,
          storeClient: db.write,
          storeType: 'knex',
          tableName: 'rate_limits',
          tableCreated: true,
          // Its timer would remove rows at times when nothing may be removed: see records/removal-run.ts.
          clearExpiredByTimeout: false,
        })
  // Concurrent requests of a client would wait for the same row one by one, so they are counted in one
  // statement.
  const consume = coalesce((key, requests) =>
    limiter.consume(key, requests).catch((refused: unknown) => {
      if (refused instanceof RateLimiterRes) return refused
      throw refused
    }),
  )
  return {
    async consume(key) {
      const { result, calls, index } = await consume(key)
      return stateOf(points, result.consumedPoints - (calls - 1 - index), result.msBeforeNext)
    },
    async reset(key) {
      await limiter.delete(key)
    },
  }
}

function stateOf(limit: number, consumed: number, millis: number): RateLimitState {
  const msBeforeNext = Math.max(0, millis)
  return {
    allowed: consumed <= limit,
    limit,
    remaining: Math.max(0, limit - consumed),
    resetAtMs: Date.now() + msBeforeNext,
    msBeforeNext,
  }
}
