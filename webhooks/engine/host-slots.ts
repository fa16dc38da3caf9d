import { mayUseHost } from '../policy/fairness.ts'
import { WebhookHolds } from './webhook-holds.ts'

/** A webhook stops waiting for a slot of its host after this long: its URL may name another host by
 *  now. */
const WAIT_MS = 2_000
const MAX_PROVEN_HOSTS = 10_000

/** How many slots of a host each account holds in this process, and which webhooks wait for one. */
export class HostSlots {
  /** The webhooks whose host has no slot for their account. */
  readonly waiting = new WebhookHolds(WAIT_MS)
  readonly #hosts = new Map<string, Map<string, number>>()
  /** By host: webhooks in the order in which they last began to wait. Some may no longer wait. */
  readonly #queues = new Map<string, Set<string>>()
  /** Hosts that have responded with 2xx to this process. */
  readonly #proven = new Set<string>()

  mayUse(host: string, accountId: string): boolean {
    const use = this.#hosts.get(host) ?? new Map<string, number>()
    return mayUseHost(use, accountId, this.#proven.has(host))
  }

  addWaiting(host: string, webhookId: string): void {
    const queue = this.#queues.get(host) ?? new Set<string>()
    queue.delete(webhookId)
    this.#queues.set(host, queue.add(webhookId))
    this.waiting.add(webhookId)
  }

  take(host: string, accountId: string): void {
    const use = this.#hosts.get(host) ?? new Map<string, number>()
    use.set(accountId, (use.get(accountId) ?? 0) + 1)
    this.#hosts.set(host, use)
  }

  /** Returns whether a webhook has waited for the slot. */
  free(host: string, accountId: string): boolean {
    const use = this.#hosts.get(host)
    const count = (use?.get(accountId) ?? 0) - 1
    if (count > 0) use?.set(accountId, count)
    else use?.delete(accountId)
    if (use?.size === 0) this.#hosts.delete(host)
    // If no attempt to the host is left, no later call would end the waiting of the other webhooks.
    return this.#endWaiting(host, this.#hosts.has(host) ? 1 : Number.POSITIVE_INFINITY) > 0
  }

  /** The host has responded with 2xx. Returns whether webhooks have waited for a slot of it. */
  prove(host: string): boolean {
    if (this.#proven.has(host)) return false
    for (const oldest of this.#proven) {
      if (this.#proven.size < MAX_PROVEN_HOSTS) break
      this.#proven.delete(oldest)
    }
    this.#proven.add(host)
    return this.#endWaiting(host, Number.POSITIVE_INFINITY) > 0
  }

  /** Frees all slots, and forgets the order of the waiting webhooks. */
  clear(): void {
    this.#hosts.clear()
    this.#queues.clear()
  }

  /** Ends the waiting of at most `maxCount` webhooks, oldest first. Returns how many. */
  #endWaiting(host: string, maxCount: number): number {
    const queue = this.#queues.get(host) ?? new Set<string>()
    let ended = 0
    for (const webhookId of queue) {
      if (ended >= maxCount) break
      queue.delete(webhookId)
      if (!this.waiting.has(webhookId)) continue
      this.waiting.remove(webhookId)
      ended++
    }
    if (queue.size === 0) this.#queues.delete(host)
    return ended
  }
}
