import ipaddr from 'ipaddr.js'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { Refused } from '../errors.ts'
import type { Db } from '../records/database/open.ts'
import { countPoints, deletePoints, type RateLimitWindow } from '../records/rate-limits.ts'
import { coalesce } from '../runtime/coalesce.ts'

export class TooOften extends Refused {
  readonly retryAfterSeconds: number

  constructor(msBeforeNext: number) {
    const minutes = Math.max(1, Math.ceil(msBeforeNext / 60_000))
    super(`Too many attempts. Try again in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`)
    this.retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1_000))
  }
}

/** The state of one key in the current window. A key is a text that identifies whose requests are
 *  counted, for example a user ID or a network. It is not an API key. */
export interface RateLimitState {
  allowed: boolean
  limit: number
  remaining: number
  /** Until the end of the window. */
  msBeforeNext: number
}

export interface RateLimit {
  /** Limits with different names count separately. */
  name: string
  /** The most requests of one key in a window. */
  maxRequests: number
  windowSeconds: number
}

export interface RateLimiter {
  /** Counts one request of `key`. `maxRequests` replaces that of the rate limit. */
  consume(key: string, maxRequests?: number): Promise<RateLimitState>
  /** Sets the count of `key` to 0. */
  reset(key: string): Promise<void>
}

/** The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a
 *  subscriber has a whole /64. Returns any other text unchanged. */
export function toNetwork(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  if (address.kind() === 'ipv4') return address.toString()
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

/** Allows `maxRequests` per key and window. All nodes share the counts in PostgreSQL; with SQLite
 *  there is one node, which counts in memory. The methods of the limiter throw when PostgreSQL is
 *  not available. */
export function newRateLimiter(
  db: Db,
  { name, maxRequests, windowSeconds }: RateLimit,
): RateLimiter {
  const counts =
    db.dialect === 'postgres'
      ? sharedCounts(db, name, windowSeconds * 1_000)
      : memoryCounts(windowSeconds)
  // In PostgreSQL, concurrent requests of one key would wait for the same row one by one, so one
  // statement counts them.
  const addCoalesced = coalesce(counts.add)
  return {
    async consume(key, max = maxRequests) {
      const { result, ...position } = await addCoalesced(key)
      return stateAfter(max, result, position)
    },
    reset: counts.reset,
  }
}

interface Counts {
  add(key: string, requests: number): Promise<RateLimitWindow>
  reset(key: string): Promise<void>
}

function sharedCounts(db: Db, name: string, windowMs: number): Counts {
  return {
    add: (key, requests) => countPoints(db, `${name}:${key}`, requests, windowMs),
    reset: (key) => deletePoints(db, `${name}:${key}`),
  }
}

/** Only counts: `stateAfter` compares the count with the limit. */
function memoryCounts(windowSeconds: number): Counts {
  const limiter = new RateLimiterMemory({
    points: Number.MAX_SAFE_INTEGER,
    duration: windowSeconds,
  })
  return {
    async add(key, requests) {
      const { consumedPoints, msBeforeNext } = await limiter.consume(key, requests)
      return { points: consumedPoints, msLeft: msBeforeNext }
    },
    async reset(key) {
      await limiter.delete(key)
    },
  }
}

/** The state after the request at `index` (from 0) of the `calls` requests that were counted
 *  together. `points` includes all of these requests. */
export function stateAfter(
  limit: number,
  { points, msLeft }: RateLimitWindow,
  { calls, index }: { calls: number; index: number },
): RateLimitState {
  const consumed = points - (calls - 1 - index)
  return {
    allowed: consumed <= limit,
    limit,
    remaining: Math.max(0, limit - consumed),
    msBeforeNext: Math.max(0, msLeft),
  }
}
