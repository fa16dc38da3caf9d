/** Runs one function, never twice at once. Calls of `wake` during a run lead to one more run. */
export class RunLoop {
  readonly #run: () => Promise<void>
  readonly #onError: (error: unknown) => void
  #running: Promise<void> | undefined
  #mustRunAgain = false
  #isStopped = false

  /** `run` must handle everything that is due: several calls of `wake` may become one run. */
  constructor(run: () => Promise<void>, onError: (error: unknown) => void) {
    this.#run = run
    this.#onError = onError
  }

  /** Starts a run, or one more after the current run. Never throws; cheap to call often. */
  readonly wake = (): void => {
    this.#mustRunAgain = true
    if (!this.#isStopped) this.#running ??= this.#runUntilDone()
  }

  /** Wakes the loop, and resolves when nothing is left to run. */
  async run(): Promise<void> {
    this.wake()
    await this.#running
  }

  /** Starts no more runs; resolves when the current one has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #runUntilDone(): Promise<void> {
    do {
      this.#mustRunAgain = false
      await this.#run().catch(this.#onError)
    } while (this.#mustRunAgain && !this.#isStopped)
    this.#running = undefined
  }
}

export interface BackgroundWork {
  /** Runs the work now, or once more after the current run. */
  wake(): void
  stop(): Promise<void>
}

/** Runs `work` at every interval, and never twice at once. `stop` aborts the signal of `work`. */
export function repeat(
  intervalMs: number,
  work: (stopping: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): BackgroundWork {
  const stopping = new AbortController()
  const loop = new RunLoop(() => work(stopping.signal), onError)
  const timer = setInterval(loop.wake, intervalMs).unref()
  return {
    wake: loop.wake,
    stop() {
      clearInterval(timer)
      stopping.abort()
      return loop.stop()
    },
  }
}
