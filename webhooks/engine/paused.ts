/** How soon a paused webhook is read again. */
const RETRY_MS = 5000

/** Webhooks that get no attempts from this process for now. Their attempts stay in the queue. */
export class PausedWebhooks {
  /** The time of the last read by the monotonic clock, by webhook ID. */
  readonly #readAtMs = new Map<string, number>()
  readonly #retryMs: number

  constructor(retryMs = RETRY_MS) {
    this.#retryMs = retryMs
  }

  /** Returns whether the webhook was not paused before. */
  add(webhookId: string): boolean {
    const isNew = !this.#readAtMs.has(webhookId)
    this.#readAtMs.set(webhookId, performance.now())
    return isNew
  }

  remove(webhookId: string): void {
    this.#readAtMs.delete(webhookId)
  }

  /** Whether its attempts are not leased now. */
  has(webhookId: string): boolean {
    return (this.#readAtMs.get(webhookId) ?? 0) > performance.now() - this.#retryMs
  }

  count(): number {
    this.#forget()
    return this.#readAtMs.size
  }

  /** The webhooks whose attempts are not leased now. */
  list(): string[] {
    this.#forget()
    return [...this.#readAtMs.keys()].filter((id) => this.has(id))
  }

  #forget(): void {
    // A webhook without due attempts is not read again.
    const since = performance.now() - 3 * this.#retryMs
    for (const [id, readAtMs] of this.#readAtMs) if (readAtMs < since) this.#readAtMs.delete(id)
  }
}
