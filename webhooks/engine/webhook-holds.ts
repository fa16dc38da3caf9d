/** After this time, attempts of a webhook on hold are leased again, to see whether the hold has
 *  ended. */
const RETRY_MS = 5_000

/** Webhooks that get no attempts from this process for now. Their attempts stay in the queue. */
export class WebhookHolds {
  /** When the reason for the hold was last found, by webhook ID. Times are of the monotonic clock. */
  readonly #foundAtMs = new Map<string, number>()
  readonly #retryMs: number

  constructor(retryMs = RETRY_MS) {
    this.#retryMs = retryMs
  }

  /** Returns whether the webhook was not on hold before. */
  add(webhookId: string): boolean {
    const isNew = !this.#foundAtMs.has(webhookId)
    this.#foundAtMs.set(webhookId, performance.now())
    return isNew
  }

  remove(webhookId: string): void {
    this.#foundAtMs.delete(webhookId)
  }

  /** Whether the attempts of the webhook are to stay in the queue now. */
  has(webhookId: string): boolean {
    const foundAtMs = this.#foundAtMs.get(webhookId)
    return foundAtMs !== undefined && foundAtMs > performance.now() - this.#retryMs
  }

  /** Includes webhooks whose attempts are to be leased again, to see whether the hold has
   *  ended. */
  count(): number {
    this.#forget()
    return this.#foundAtMs.size
  }

  /** The webhooks whose attempts are to stay in the queue now. */
  list(): string[] {
    this.#forget()
    return [...this.#foundAtMs.keys()].filter((id) => this.has(id))
  }

  /** Forgets webhooks whose reason was last found long ago. Only an attempt can show the end of a
   *  hold, so a webhook without due attempts would stay on hold for ever. */
  #forget(): void {
    const since = performance.now() - 3 * this.#retryMs
    for (const [id, foundAtMs] of this.#foundAtMs) if (foundAtMs < since) this.#foundAtMs.delete(id)
  }
}
