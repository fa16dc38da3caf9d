/** Counts the attempts of this process for the health of webhooks. The counts are stored in the
 *  background, so that storing a result needs no additional SQL statement. A crash loses the counts
 *  of the last seconds. */
import type { Logger } from 'pino'
import type { AttemptWith } from '../../records/attempt.ts'
import { type CountedAttempt, countAttempts } from '../../records/attempt-counts.ts'
import { isUnavailable } from '../../records/database/errors.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { RunLoop } from '../../runtime/run-loop.ts'

const STORE_EVERY_MS = 1_000
/** Attempts are counted in batches, so that this process does other work between two batches. */
const MAX_BATCH = 5_000

export class AttemptCounter {
  readonly #db: Db
  readonly #log: Logger
  readonly #loop: RunLoop
  #waiting: CountedAttempt[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(db: Db, log: Logger) {
    this.#db = db
    this.#log = log
    this.#loop = new RunLoop(
      () => this.#store(),
      (error) => log.error({ err: error }, 'Attempts could not be counted'),
    )
  }

  /** Counts attempts whose results are stored, except skipped attempts and test events. */
  add(attempts: AttemptWith<'result'>[]): void {
    for (const { accountId, webhookId, result } of attempts) {
      if (!('sent' in result) || result.isTest) continue
      const { outcome, status, durationMs } = result.sent
      const { endedAt } = result
      this.#waiting.push({ accountId, webhookId, endedAt, durationMs, outcome, status })
    }
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(this.#loop.wake, STORE_EVERY_MS)
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#loop.wake()
    await this.#loop.stop()
    // The last `#store` has set the timer again if the database was unavailable.
    clearTimeout(this.#timer)
  }

  /** While the database is unavailable, the attempts stay in `#waiting`, and a timer tries
   *  again. */
  async #store(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH)
      try {
        await transaction(this.#db, (trx) => countAttempts(trx, batch))
      } catch (error) {
        if (!isUnavailable(error)) throw error
        this.#waiting.unshift(...batch)
        this.#timer = setTimeout(this.#loop.wake, STORE_EVERY_MS)
        this.#log.warn(
          { err: error, attempts: this.#waiting.length },
          'Attempts could not be counted; trying again',
        )
        return
      }
    }
  }
}
