import type { Attempt } from '../../records/attempt.ts'

/** The attempts that this process has enqueued as the leader, and whose deliveries do not say so
 *  yet (`queued_at`). Nearly all are finished before it would be written, which saves the write. */
export class Unmarked {
  /** By delivery ID. */
  readonly #entries = new Map<string, { attempt: Attempt; enqueuedAtMs: number }>()

  get size(): number {
    return this.#entries.size
  }

  has(deliveryId: string): boolean {
    return this.#entries.has(deliveryId)
  }

  deliveryIds(): string[] {
    return [...this.#entries.keys()]
  }

  /** The attempts enqueued up to `untilMs` of the monotonic clock. */
  list(untilMs = Number.POSITIVE_INFINITY): Attempt[] {
    return [...this.#entries.values()]
      .filter(({ enqueuedAtMs }) => enqueuedAtMs <= untilMs)
      .map(({ attempt }) => attempt)
  }

  add(attempts: Attempt[]): void {
    for (const attempt of attempts)
      this.#entries.set(attempt.deliveryId, { attempt, enqueuedAtMs: performance.now() })
  }

  /** Removes these attempts, but not later ones of the same deliveries. */
  remove(attempts: Attempt[]): void {
    for (const { deliveryId, scheduledAt } of attempts)
      if (this.#entries.get(deliveryId)?.attempt.scheduledAt === scheduledAt)
        this.#entries.delete(deliveryId)
  }

  clear(): void {
    this.#entries.clear()
  }
}
