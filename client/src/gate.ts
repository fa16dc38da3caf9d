import { sleep } from './sleep.ts'

/** Holds calls back until it is their turn. */
export class Gate {
  #freePlaces: number
  /** By the clock of `performance.now()`. */
  #openAt = 0
  /** Oldest first. Each begins a call. */
  readonly #waiting = new Set<() => void>()

  constructor(places: number) {
    this.#freePlaces = places
  }

  /** Takes a place, in the order of the calls. Rejects when the signal aborts; otherwise, call
   *  `leave` afterwards. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#freePlaces > 0) {
      this.#freePlaces--
      return
    }
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        this.#waiting.delete(begin)
        signal.removeEventListener('abort', abort)
        resolve()
      }
      const abort = (): void => {
        this.#waiting.delete(begin)
        reject(signal.reason)
      }
      this.#waiting.add(begin)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  leave(): void {
    const [next] = this.#waiting
    // The next call takes the place, so the number of free places does not change.
    if (next === undefined) this.#freePlaces++
    else next()
  }

  /** From now on, `opened` waits at least this long. */
  close(ms: number): void {
    this.#openAt = Math.max(this.#openAt, performance.now() + ms)
  }

  async opened(signal: AbortSignal): Promise<void> {
    for (;;) {
      const ms = this.#openAt - performance.now()
      if (ms <= 0) return
      await sleep(ms, signal)
    }
  }
}
