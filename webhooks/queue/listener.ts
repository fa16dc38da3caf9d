/** LISTEN on one channel. pg-boss reconnects by itself, but does not tell whether it is
 *  connected. */
import { randomUUID } from 'node:crypto'
import type { PgBoss } from 'pg-boss'

/** A notification that takes longer counts as lost. */
const PROBE_TIMEOUT_MS = 1_000

export class Listener {
  readonly #database: ReturnType<PgBoss['getDb']>
  readonly #channel: string
  /** The payload of a probe: a sender and a topic (records/database/announcements.ts). Other nodes
   *  ignore it, because no topic is named `probe`. */
  readonly #probe = `${randomUUID()} probe`
  #onProbe: () => void = () => undefined
  #probing: Promise<boolean> | undefined
  #subscription: { close(): Promise<void> } | undefined

  constructor(database: ReturnType<PgBoss['getDb']>, channel: string) {
    this.#database = database
    this.#channel = channel
  }

  /** Calls `onNotify` with the payload of each notification, and without one after each
   *  reconnection. */
  async start(onNotify: (payload?: string) => void): Promise<void> {
    const receive = (payload: string): void => {
      if (payload === this.#probe) this.#onProbe()
      else onNotify(payload)
    }
    this.#subscription = await this.#database.listen?.(this.#channel, receive, () => onNotify())
  }

  /** Sends a notification to this node and waits for it. False: it has not arrived in time. Rejects
   *  if it cannot be sent. */
  isConnected(): Promise<boolean> {
    this.#probing ??= this.#sendProbe().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async stop(): Promise<void> {
    await this.#subscription?.close()
  }

  async #sendProbe(): Promise<boolean> {
    const arrived = Promise.withResolvers<boolean>()
    this.#onProbe = () => arrived.resolve(true)
    const timeout = setTimeout(() => arrived.resolve(false), PROBE_TIMEOUT_MS)
    try {
      await this.#database.executeSql('select pg_notify($1, $2)', [this.#channel, this.#probe])
      return await arrived.promise
    } finally {
      clearTimeout(timeout)
    }
  }
}
