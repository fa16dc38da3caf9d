/** Limits how many tasks run at once. The others wait in the order of their calls. */
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
