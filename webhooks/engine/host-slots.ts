import { mayUseHost } from '../policy/fairness.ts'

/** The attempts in flight in this process by host and account. */
export class HostSlots {
  readonly #hosts = new Map<string, Map<string, number>>()

  mayUse(host: string, accountId: string): boolean {
    return mayUseHost(this.#hosts.get(host) ?? new Map(), accountId)
  }

  take(host: string, accountId: string): void {
    const use = this.#hosts.get(host) ?? new Map<string, number>()
    use.set(accountId, (use.get(accountId) ?? 0) + 1)
    this.#hosts.set(host, use)
  }

  free(host: string, accountId: string): void {
    const use = this.#hosts.get(host)
    const count = (use?.get(accountId) ?? 0) - 1
    if (count > 0) use?.set(accountId, count)
    else use?.delete(accountId)
    if (use?.size === 0) this.#hosts.delete(host)
  }

  clear(): void {
    this.#hosts.clear()
  }
}
