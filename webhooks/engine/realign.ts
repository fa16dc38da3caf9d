import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import {
  rescheduleAttemptsBeyondDelays,
  rescheduleLateAttempts,
} from '../../records/late-attempts.ts'
import type { Queue } from '../queue/queue.ts'
import { RunLoop } from '../run-loop.ts'

export interface RealignOptions {
  db: Db
  queue: Queue
  delaysMs: number[]
  now: () => Date
  log: Logger
}

/** A smaller step back delays attempts by no more than this. */
const MAX_STEP_BACK_MS = 1_000
/** After a step back, other workers may still write times of the clock before, until they have read
 *  the new one and stored the results of attempts in flight. */
const THOROUGH_MS = 30_000

/** Realigns the schedule with the clock after the clock went back. Otherwise attempts that were
 *  scheduled before would wait until the clock is there again. */
export class Realignment {
  readonly #options: RealignOptions
  readonly #loop: RunLoop
  /** The time of the last run, and when that was by the monotonic clock. */
  #last: { timeMs: number; atMs: number } | undefined
  #thoroughUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: RealignOptions) {
    this.#options = options
    this.#loop = new RunLoop(
      () => this.#run(),
      (error) =>
        options.log.warn({ err: error }, 'The schedule could not be realigned; trying again'),
    )
  }

  /** Runs in the background: a run may read every scheduled attempt. */
  readonly wake = (): void => this.#loop.wake()

  /** The next run is the first of a new leader: the clock may have gone back before. */
  readonly restart = (): void => {
    this.#last = undefined
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  async #run(): Promise<void> {
    const { db, queue, delaysMs, now, log } = this.#options
    const at = now()
    const atMs = performance.now()
    if (this.#hasGoneBack(at)) this.#thoroughUntilMs = performance.now() + THOROUGH_MS
    const isThorough = performance.now() < this.#thoroughUntilMs
    const reschedule = isThorough ? rescheduleLateAttempts : rescheduleAttemptsBeyondDelays
    const rescheduled = await reschedule(db, { now: at, delaysMs })
    if (rescheduled > 0)
      log.warn(
        { attempts: rescheduled },
        'Attempts were rescheduled: the clock went back, or the delays are shorter now',
      )
    if (isThorough) await queue.realign()
    this.#last = { timeMs: at.getTime(), atMs }
  }

  #hasGoneBack(at: Date): boolean {
    if (!this.#last) return true
    const expected = this.#last.timeMs + performance.now() - this.#last.atMs
    return at.getTime() < expected - MAX_STEP_BACK_MS
  }
}
