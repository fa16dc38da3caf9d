/** Limits how many tasks run at once. Further tasks wait in the order of their calls. */
export class Turns {
  readonly #atOnce: number
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(atOnce: number) {
    this.#atOnce = atOnce
    this.#free = atOnce
  }

  get isIdle(): boolean {
    return this.#free === this.#atOnce
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

/** Returns a function whose calls resolve one by one, each in a later turn of the event loop, so
 *  that the work after many concurrent calls does not block the process. Independent of `Turns`. */
export function oneEachTurn(): () => Promise<void> {
  let last = Promise.resolve()
  return () => {
    last = last.then(() => new Promise((resolve) => void setImmediate(resolve)))
    return last
  }
}
