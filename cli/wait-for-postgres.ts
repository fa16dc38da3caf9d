import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { errorCode, isUnavailable } from '../records/database/errors.ts'

const WAIT_MS = 60_000
const RETRY_MS = 1_000
const LOG_EVERY_MS = 5_000

export interface WaitOptions {
  log: Logger
  /** Ends the wait. */
  stopping?: AbortSignal
}

/** Runs `work`, and runs it again for up to a minute while PostgreSQL cannot be reached: PostgreSQL
 *  may start after this node, or restart. Throws the last error when the time is over or `stopping`
 *  aborts. */
export async function waitForPostgres<T>(
  work: () => Promise<T>,
  { log, stopping }: WaitOptions,
): Promise<T> {
  const beganAtMs = performance.now()
  let loggedAtMs = Number.NEGATIVE_INFINITY
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const waitedMs = performance.now() - beganAtMs
      if (!isUnavailable(error) || waitedMs + RETRY_MS > WAIT_MS || stopping?.aborted) throw error
      if (performance.now() - loggedAtMs >= LOG_EVERY_MS) {
        const secondsLeft = Math.round((WAIT_MS - waitedMs) / 1_000)
        const reason = (error as Error).message || errorCode(error)
        log.warn(
          { reason, seconds_left: secondsLeft },
          `PostgreSQL cannot be reached: ${reason}. Trying again for up to ${secondsLeft} s.`,
        )
        loggedAtMs = performance.now()
      }
      await delay(RETRY_MS, undefined, { signal: stopping }).catch(() => undefined)
    }
  }
}
