import { setTimeout as delay } from 'node:timers/promises'

/** Between two notifications of a node. Announcements of many transactions share one. */
const INTERVAL_MS = 5

/** Notifies the other nodes after the commits of this one. In PostgreSQL, transactions of a
 *  database that use NOTIFY commit one after the other. If each change sent NOTIFY in its own
 *  transaction, only one change could commit at a time. */
export class Notifier {
  readonly #send: (messages: string[]) => Promise<unknown>
  readonly #pending = new Set<string>()
  #sending: Promise<void> | undefined

  constructor(send: (messages: string[]) => Promise<unknown>) {
    this.#send = send
  }

  /** Sends the message soon. Equal messages that wait at the same time are sent as one. */
  notify(message: string): void {
    this.#pending.add(message)
    this.#sending ??= this.#sendPending()
  }

  /** Resolves when nothing is left to send. */
  async flush(): Promise<void> {
    await this.#sending
  }

  async #sendPending(): Promise<void> {
    while (this.#pending.size > 0) {
      const messages = [...this.#pending]
      this.#pending.clear()
      // The other nodes also search the database regularly, and so find what a lost notification
      // announced.
      await this.#send(messages).catch(() => undefined)
      await delay(INTERVAL_MS)
    }
    this.#sending = undefined
  }
}
