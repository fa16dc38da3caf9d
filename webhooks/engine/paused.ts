/** How soon a paused webhook is read again. */
const RETRY_MS = 5000
/** A webhook without due attempts is not read again, so it is forgotten. */
const FORGET_MS = 3 * RETRY_MS

/** Webhooks that get no attempts from this process for now. Their attempts stay in the queue. */
export class PausedWebhooks {
  /** The time of the last read by the monotonic clock, by webhook ID. */
  readonly #readAtMs = new Map<string, number>()

  /** Returns whether the webhook was not paused before. */
  add(webhookId: string): boolean {
    const isNew = !this.#readAtMs.has(webhookId)
    this.#readAtMs.set(webhookId, performance.now())
    return isNew
  }

  remove(webhookId: string): void {
    this.#readAtMs.delete(webhookId)
  }

  count(): number {
    this.#forget()
    return this.#readAtMs.size
  }

  /** The webhooks whose attempts are not leased now. */
  list(): string[] {
    this.#forget()
    const since = performance.now() - RETRY_MS
    return [...this.#readAtMs].filter(([, readAtMs]) => readAtMs > since).map(([id]) => id)
  }

  #forget(): void {
    const since = performance.now() - FORGET_MS
    for (const [id, readAtMs] of this.#readAtMs) if (readAtMs < since) this.#readAtMs.delete(id)
  }
}
