import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import {
  rescheduleAttemptsBeyondDelays,
  rescheduleLateAttempts,
} from '../../records/late-attempts.ts'
import { RunLoop } from '../../runtime/run-loop.ts'
import type { Queue } from '../queue/queue.ts'

interface RealignOptions {
  db: Db
  queue: Queue
  delaysMs: number[]
  now: () => Date
  log: Logger
}

/** A smaller step back of the clock is ignored: it delays attempts by no more than this. */
const MAX_STEP_BACK_MS = 1_000
/** How long the runs of `Realignment` are thorough after a step back of the clock: until the other
 *  workers have read the clock again and recorded the results of their attempts in flight, they may
 *  still schedule attempts too late. */
const THOROUGH_MS = 30_000

/** Reschedules attempts that are scheduled too late. When the clock goes back, attempts that were
 *  scheduled before would be late by the size of the step. So runs are thorough then: they compare
 *  each attempt with its own delay, and correct the times in the queue. A run that is not thorough
 *  finds only attempts that are later than the longest delay from now, for example because
 *  `delaysMs` was shortened. */
export class Realignment {
  readonly #options: RealignOptions
  readonly #loop: RunLoop
  /** When the last run began, by the clock of the schedule and by the monotonic clock. */
  #lastRun: { clockMs: number; monotonicMs: number } | undefined
  /** By the monotonic clock. */
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

  /** Makes the next run thorough. Call this while another process leads: the clock may go back
   *  between the last run of that leader and the first run of this one. */
  readonly forgetLastRun = (): void => {
    this.#lastRun = undefined
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  async #run(): Promise<void> {
    const { db, queue, delaysMs, now, log } = this.#options
    const startedAt = now()
    const monotonicMs = performance.now()
    const clockMs = startedAt.getTime()
    if (this.#hasGoneBack(clockMs, monotonicMs)) this.#thoroughUntilMs = monotonicMs + THOROUGH_MS
    const isThorough = monotonicMs < this.#thoroughUntilMs
    const reschedule = isThorough ? rescheduleLateAttempts : rescheduleAttemptsBeyondDelays
    const rescheduled = await reschedule(db, { now: startedAt, delaysMs })
    if (rescheduled > 0)
      log.warn(
        { attempts: rescheduled },
        'Attempts were rescheduled: the clock went back, or the delays are shorter now',
      )
    if (isThorough) await queue.realign()
    this.#lastRun = { clockMs, monotonicMs }
  }

  /** Without a last run, the clock may have gone back. */
  #hasGoneBack(clockMs: number, monotonicMs: number): boolean {
    if (!this.#lastRun) return true
    const expectedMs = this.#lastRun.clockMs + monotonicMs - this.#lastRun.monotonicMs
    return clockMs < expectedMs - MAX_STEP_BACK_MS
  }
}
