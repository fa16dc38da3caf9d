/** Gathers the log lines of a database outage: every request and every worker loop reports it. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger, LoggerOptions } from 'pino'
import { isContention, isUnavailable } from '../records/database/errors.ts'

type LogMethodHook = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>

const CHECK_MS = 500
/** After this time without an error, the log asks the database whether the outage has ended. */
const QUIET_MS = 1_500
/** The time of the first summary. Each further one waits twice as long, so that a day has 17. */
const FIRST_SUMMARY_MS = 1_000
/** The most different texts of errors in a summary. */
const MAX_TEXTS = 5
const MAX_CHARACTERS = 200
/** pino's numbers of the levels. */
const WARN = 40
const FATAL = 60

const probes = new WeakMap<Logger, () => Promise<unknown>>()

/** `probe` rejects while the database is unavailable. */
export function setOutageProbe(log: Logger, probe: () => Promise<unknown>): void {
  probes.set(log, probe)
}

/** A pino hook: writes the first error of an outage, then a few summaries of the further errors, and
 *  a line when the outage has ended. */
export function summariseOutages(): LogMethodHook {
  let outage: Outage | undefined
  return function logMethod(input, method, level) {
    if (level < WARN || level >= FATAL) return method.apply(this, input)
    const [fields, message] = input as unknown[]
    const error = toError((fields as { err?: unknown } | undefined)?.err)
    if (!isUnavailable(error)) return method.apply(this, input)
    if (outage) return outage.add(String(message), error)
    if (isContention(error)) return method.apply(this, input)
    method.call(this, { ...(fields as object), outage: 'began' }, String(message))
    outage = new Outage(this)
    outage.watch().finally(() => {
      outage = undefined
    })
  }
}

/** pg-boss reports some errors as plain objects with the same fields. */
function toError(error: unknown): Error {
  return error instanceof Error ? error : Object.assign(new Error(), error)
}

class Outage {
  readonly #log: Logger
  readonly #startedAtMs = performance.now()
  #failedAtMs = this.#startedAtMs
  /** How often each message was left out since the last line, and the texts of the errors. */
  #repeated: Record<string, number> = {}
  #errors = new Set<string>()

  constructor(log: Logger) {
    this.#log = log
  }

  add(message: string, error: Error): void {
    this.#failedAtMs = performance.now()
    this.#repeated[message] = (this.#repeated[message] ?? 0) + 1
    // pg-boss adds the ID of its worker. knex puts the statement before the text.
    const text = error.message.replace(/ \(Queue: .*\)$/, '').slice(-MAX_CHARACTERS)
    if (this.#errors.size < MAX_TEXTS) this.#errors.add(text)
  }

  /** Resolves when the outage has ended. */
  async watch(): Promise<void> {
    let summaryMs = FIRST_SUMMARY_MS
    let summaryAtMs = this.#startedAtMs + summaryMs
    while (!this.#isQuiet() || !(await this.#hasEnded())) {
      await delay(CHECK_MS, undefined, { ref: false })
      if (performance.now() < summaryAtMs) continue
      this.#summarise()
      summaryMs *= 2
      summaryAtMs += summaryMs
    }
    const seconds = Math.round((this.#failedAtMs - this.#startedAtMs) / 100) / 10
    this.#log.warn(
      { outage: 'ended', seconds, ...this.#takeRepeated() },
      'The database is available again',
    )
  }

  #isQuiet(): boolean {
    return performance.now() - this.#failedAtMs >= QUIET_MS
  }

  async #hasEnded(): Promise<boolean> {
    await probes
      .get(this.#log)?.()
      .catch(() => {
        this.#failedAtMs = performance.now()
      })
    return this.#isQuiet()
  }

  #summarise(): void {
    const { repeated, errors } = this.#takeRepeated()
    if (errors.length > 0)
      this.#log.error({ repeated, errors }, 'The database is still unavailable')
  }

  #takeRepeated() {
    const taken = { repeated: this.#repeated, errors: [...this.#errors] }
    this.#repeated = {}
    this.#errors = new Set()
    return taken
  }
}
