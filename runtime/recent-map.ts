/** A map of limited size: it forgets the entry that was not used for the longest time. */
export class RecentMap<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #maxSize: number

  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#maxSize) this.#entries.delete(oldest as Key)
  }
}
