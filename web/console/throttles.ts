/** Limits on guessing and probing, across all processes. */
import { createHash } from 'node:crypto'
import { newRateLimiter, TooOften } from '../../auth/rate-limit.ts'
import type { Db } from '../../records/database/open.ts'

const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

/** How many points a key has, per window in seconds. */
const LIMITS = {
  /** Passwords tried for one email from one network. */
  sign_in: [5, 15 * MINUTE_S],
  sign_in_ip: [50, 15 * MINUTE_S],
  /** Across all IP addresses. Stops distributed guessing, and rarely locks the user out. */
  sign_in_account: [50, HOUR_S],
  /** Entries of the audit log about refused sign-ins, for each user and kind. */
  refused_sign_in_entry: [1, 15 * MINUTE_S],
  sign_up: [10, HOUR_S],
  /** Repeated passwords of a signed-in user: whoever finds an unlocked device must not guess it. */
  password: [5, 15 * MINUTE_S],
  /** This and the next tell whether an email is in use. */
  invite: [60, DAY_S],
  change_email: [10, DAY_S],
  webhook_url: [60, MINUTE_S],
  /** Test events of one webhook: each sends a request to its endpoint. */
  test_event: [10, MINUTE_S],
  /** Forms of one user. */
  form: [120, MINUTE_S],
} as const satisfies Record<string, readonly [points: number, windowSeconds: number]>

export type ThrottleName = keyof typeof LIMITS

export interface Throttles {
  /** Counts one use. Returns an error above the limit. */
  consume(name: ThrottleName, key: string): Promise<TooOften | undefined>
  reset(name: ThrottleName, key: string): Promise<void>
}

export function newThrottles(db: Db): Throttles {
  const limiters = new Map(
    Object.entries(LIMITS).map(([name, [points, windowSeconds]]) => [
      name,
      newRateLimiter(db, { name, points, windowSeconds }),
    ]),
  )
  return {
    async consume(name, key) {
      const state = await limiters.get(name)?.consume(hash(key))
      return state?.allowed ? undefined : new TooOften(state?.msBeforeNext ?? 0)
    },
    async reset(name, key) {
      await limiters.get(name)?.reset(hash(key))
    },
  }
}

/** Hashed keys have one length, and the table holds no email. */
function hash(key: string): string {
  return createHash('sha256').update(key).digest('base64url')
}
