import type { Attempt, SendResult } from '../../records/attempt.ts'
import type { SlowWebhook } from '../../records/slow-webhooks.ts'
import {
  type EndpointHealth,
  healthAfter,
  NOT_SLOW,
  SLOW_AFTER,
  type Slowness,
  slownessAfter,
} from '../policy/fairness.ts'

type Owner = Pick<Attempt, 'webhookId' | 'accountId'>

const MAX_SLOW_HOSTS = 10_000

/** The endpoints of the attempts in flight in this process, and those that are slow: their health
 *  and their slots. */
export class Endpoints {
  /** By webhook ID. */
  readonly #health = new Map<string, EndpointHealth>()
  /** By account ID. */
  readonly #slots = new Map<string, number>()
  /** By host of an account: a webhook that is created again begins as slow. */
  readonly #slowHosts = new Map<string, Slowness>()

  get health(): ReadonlyMap<string, EndpointHealth> {
    return this.#health
  }

  /** The slots of each account that holds any. */
  get slots(): ReadonlyMap<string, number> {
    return this.#slots
  }

  /** The webhooks that were slow before this process started. */
  rememberSlow(webhooks: SlowWebhook[]): void {
    for (const webhook of webhooks) {
      const slowness: Slowness = {
        slowInARow: SLOW_AFTER,
        slowFailuresInARow: webhook.hasSucceeded ? 0 : SLOW_AFTER,
      }
      Object.assign(this.#healthOf(webhook), slowness, { hasResult: true })
      this.#rememberHost(slowHostKey(webhook.accountId, webhook.host), slowness)
    }
  }

  takeSlot(attempt: Owner): void {
    this.#healthOf(attempt).inFlight++
    this.#slots.set(attempt.accountId, (this.#slots.get(attempt.accountId) ?? 0) + 1)
  }

  freeSlot(attempt: Owner): void {
    this.#healthOf(attempt).inFlight--
    const slots = (this.#slots.get(attempt.accountId) ?? 0) - 1
    if (slots > 0) this.#slots.set(attempt.accountId, slots)
    else this.#forgetAccount(attempt.accountId)
  }

  /** The host of an attempt is known: until its webhook has a result, it is as slow as the host. */
  assumeHealthOfHost(attempt: Owner, host: string): void {
    const slowness = this.#slowHosts.get(slowHostKey(attempt.accountId, host))
    if (!slowness) return
    const health = this.#healthOf(attempt)
    if (!health.hasResult) Object.assign(health, slowness)
  }

  /** Returns whether a slow endpoint has become quicker, so that its concurrency limit rises.
   *  `host`: undefined if the attempt has ended before its host was known. */
  recordResult(attempt: Owner, host: string | undefined, sent: SendResult): boolean {
    if (host !== undefined) {
      const key = slowHostKey(attempt.accountId, host)
      this.#rememberHost(key, slownessAfter(this.#slowHosts.get(key) ?? NOT_SLOW, sent))
    }
    const before = this.#healthOf(attempt)
    const health = healthAfter(before, sent, performance.now())
    this.#health.set(attempt.webhookId, health)
    return health.slowInARow < before.slowInARow
  }

  /** The webhook is disabled or deleted. Returns the same as `recordResult`. */
  recordSkip(attempt: Owner): boolean {
    const health = this.#healthOf(attempt)
    const wasSlow = health.slowInARow > 0
    Object.assign(health, NOT_SLOW)
    return wasSlow
  }

  #healthOf({ webhookId, accountId }: Owner): EndpointHealth {
    const known = this.#health.get(webhookId)
    if (known) return known
    const health: EndpointHealth = {
      accountId,
      inFlight: 0,
      ...NOT_SLOW,
      quickAt: Number.NEGATIVE_INFINITY,
      hasResult: false,
    }
    this.#health.set(webhookId, health)
    return health
  }

  #rememberHost(key: string, slowness: Slowness): void {
    if (slowness.slowInARow === 0) {
      this.#slowHosts.delete(key)
      return
    }
    if (this.#slowHosts.size >= MAX_SLOW_HOSTS) this.#slowHosts.clear()
    this.#slowHosts.set(key, slowness)
  }

  /** Until an account holds no slots, its webhooks are known, so that lease rounds can skip them.
   *  Its slow endpoints are remembered. */
  #forgetAccount(accountId: string): void {
    this.#slots.delete(accountId)
    for (const [webhookId, health] of this.#health)
      if (health.accountId === accountId && health.inFlight === 0 && health.slowInARow === 0)
        this.#health.delete(webhookId)
  }
}

const slowHostKey = (accountId: string, host: string): string => `${accountId} ${host}`
