/** Gathers the log lines of a database outage: every request and every worker loop reports it. */
import type { Logger, LoggerOptions } from 'pino'
import { isUnavailable } from '../records/database/errors.ts'

type LogMethodHook = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>

const INTERVAL_MS = 1_000
/** pino's number of the level `warn`. */
const WARN = 40

/** A pino hook: writes the first error of an outage, then at most one line a second, which counts
 *  the further errors by message. */
export function summariseOutages(): LogMethodHook {
  let isWaiting = false
  let repeated: Record<string, number> = {}

  function wait(log: Logger): void {
    isWaiting = true
    setTimeout(() => {
      isWaiting = false
      if (Object.keys(repeated).length === 0) return
      log.error({ repeated }, 'The database is still unavailable')
      repeated = {}
      wait(log)
    }, INTERVAL_MS).unref()
  }

  return function logMethod(input, method, level) {
    const [fields, message] = input as unknown[]
    if (level < WARN || !isUnavailable((fields as { err?: unknown } | undefined)?.err))
      return method.apply(this, input)
    if (!isWaiting) {
      wait(this)
      return method.apply(this, input)
    }
    repeated[String(message)] = (repeated[String(message)] ?? 0) + 1
  }
}
