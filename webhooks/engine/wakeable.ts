/** Work that is done in one place at a time, and again whenever somebody wakes it. */
export interface Wakeable {
  /** Starts the work, or has it done once more when it is under way. Never throws, cheap to call often. */
  wake(): void
  /** No more work; resolves when what is under way has ended. */
  stop(): Promise<void>
}

/** `work` must look at everything there is to do: many wakes may become one run. */
export function wakeable(work: () => Promise<void>, onError: (error: unknown) => void): Wakeable {
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  async function run(): Promise<void> {
    do {
      again = false
      await work().catch(onError)
    } while (again && !stopped)
    running = undefined
  }

  return {
    wake() {
      again = true
      if (!stopped) running ??= run()
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
