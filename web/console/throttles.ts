/** Limits on guessing and probing, across all processes. */
import { createHash } from 'node:crypto'
import { newRateLimiter, type RateLimiter, TooOften } from '../../auth/rate-limit.ts'
import type { Db } from '../../records/database/open.ts'

const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

/** The most uses of a key in a window. */
const LIMITS = {
  /** Passwords tried for one email from one network. */
  sign_in: [5, 15 * MINUTE_S],
  /** Passwords tried from one network. */
  sign_in_ip: [50, 15 * MINUTE_S],
  /** Passwords tried for one email from all networks. Stops distributed guessing, and rarely locks
   *  the user out. */
  sign_in_account: [50, HOUR_S],
  /** Entries of the audit log about refused sign-ins of one user. Blocked sign-ins (too many wrong
   *  passwords) have a count of their own. */
  refused_sign_in_entry: [1, 15 * MINUTE_S],
  /** Valid sign-ups from one network: each tells whether an email is in use. */
  sign_up: [10, HOUR_S],
  /** Current passwords that a signed-in user enters before a sensitive change. */
  password: [5, 15 * MINUTE_S],
  /** The forms that invite a user or change an email tell whether an email is in use. */
  invite: [60, DAY_S],
  change_email: [10, DAY_S],
  /** Checks of the URL of a webhook while one user types. */
  webhook_url: [60, MINUTE_S],
  /** Test events of one webhook: each sends a request to its endpoint. */
  test_event: [10, MINUTE_S],
  /** Forms that one user sends. */
  form: [120, MINUTE_S],
} as const satisfies Record<string, readonly [maxRequests: number, windowSeconds: number]>

type ThrottleName = keyof typeof LIMITS

export interface Throttles {
  /** Counts one use of `key`. Above the limit, returns an error with a message for the user. */
  consume(name: ThrottleName, key: string): Promise<TooOften | undefined>
  /** Sets the count of `key` to 0. */
  reset(name: ThrottleName, key: string): Promise<void>
}

export function newThrottles(db: Db): Throttles {
  const limiters = Object.fromEntries(
    Object.entries(LIMITS).map(([name, [maxRequests, windowSeconds]]) => [
      name,
      newRateLimiter(db, { name, maxRequests, windowSeconds }),
    ]),
  ) as Record<ThrottleName, RateLimiter>
  return {
    async consume(name, key) {
      const { allowed, msBeforeNext } = await limiters[name].consume(hash(key))
      return allowed ? undefined : new TooOften(msBeforeNext)
    },
    reset: (name, key) => limiters[name].reset(hash(key)),
  }
}

/** Keys are hashed, so that all have the same length and the database table holds no email. */
function hash(key: string): string {
  return createHash('sha256').update(key).digest('base64url')
}
