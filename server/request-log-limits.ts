/** Keeps the request log small. Each node counts by itself, in memory. */
import { DAY_MS } from '../records/time-units.ts'

const REPEAT_MS = 60_000
const MAX_REMEMBERED_KEYS = 10_000

/** Finds requests with 429 that follow a stored request with 429 of the same API key within a
 *  minute. */
export class RepeatFinder {
  /** The last stored request with 429, by API key. */
  readonly #stored = new Map<string, { id: string; at: number }>()

  /** The ID of the stored request that this one repeats. Undefined if it repeats none: the caller
   *  stores this request, and later requests can repeat it if it has 429. */
  find({ id, apiKeyId, status, at }: AnsweredRequest): string | undefined {
    if (status !== 429) return undefined
    const earlier = this.#stored.get(apiKeyId)
    if (earlier && Math.abs(at - earlier.at) < REPEAT_MS) return earlier.id
    if (this.#stored.size >= MAX_REMEMBERED_KEYS) this.#stored.clear()
    this.#stored.set(apiKeyId, { id, at })
    return undefined
  }
}

interface AnsweredRequest {
  id: string
  apiKeyId: string
  status: number
  at: number
}

/** Counts the bytes that each account uses in the current day (UTC). */
export class DailyBytes {
  readonly #limit: number
  readonly #used = new Map<string, number>()
  #day = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts the bytes and returns true. False: they would exceed the limit, and do not count. */
  use(accountId: string, bytes: number, now: Date): boolean {
    const day = Math.floor(now.getTime() / DAY_MS)
    if (day !== this.#day) this.#used.clear()
    this.#day = day
    const used = (this.#used.get(accountId) ?? 0) + bytes
    if (used > this.#limit) return false
    this.#used.set(accountId, used)
    return true
  }
}
