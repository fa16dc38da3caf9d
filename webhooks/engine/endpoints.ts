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

type OfWebhook = Pick<Attempt, 'webhookId' | 'accountId'>

/** With more, all are forgotten: that bounds the memory. */
const MAX_SLOW_HOSTS = 10_000

/** The endpoints that this process knows: the health of each webhook that is slow or whose account
 *  has attempts in flight, and the slots of those accounts. */
export class Endpoints {
  /** By webhook ID. */
  readonly #health = new Map<string, EndpointHealth>()
  /** By account ID. */
  readonly #slots = new Map<string, number>()
  /** By host of an account: a webhook that is deleted and created again begins as slow. */
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
      const key = slowHostKey(webhook.accountId, webhook.host)
      // A host hangs only if no attempt to it has succeeded.
      if (this.#slowHosts.get(key)?.slowFailuresInARow !== 0) this.#rememberHost(key, slowness)
    }
  }

  takeSlot(attempt: OfWebhook): void {
    this.#healthOf(attempt).inFlight++
    this.#slots.set(attempt.accountId, (this.#slots.get(attempt.accountId) ?? 0) + 1)
  }

  freeSlot(attempt: OfWebhook): void {
    this.#healthOf(attempt).inFlight--
    const slots = (this.#slots.get(attempt.accountId) ?? 0) - 1
    if (slots > 0) this.#slots.set(attempt.accountId, slots)
    else this.#forgetAccount(attempt.accountId)
  }

  /** Call this when the host of an attempt is known. A webhook without a result is assumed to be as
   *  slow as its host. */
  assumeHealthOfHost(attempt: OfWebhook, host: string): void {
    const slowness = this.#slowHosts.get(slowHostKey(attempt.accountId, host))
    if (!slowness) return
    const health = this.#healthOf(attempt)
    if (!health.hasResult) Object.assign(health, slowness)
  }

  /** Returns whether a slow endpoint has become quicker, so that its concurrency limit rises.
   *  `host`: undefined if the attempt has ended before its host was known. */
  recordResult(attempt: OfWebhook, host: string | undefined, sent: SendResult): boolean {
    if (host !== undefined) {
      const key = slowHostKey(attempt.accountId, host)
      this.#rememberHost(key, slownessAfter(this.#slowHosts.get(key) ?? NOT_SLOW, sent))
    }
    const before = this.#healthOf(attempt)
    const health = healthAfter(before, sent, performance.now())
    this.#health.set(attempt.webhookId, health)
    return health.slowInARow < before.slowInARow
  }

  /** The attempt was not made, because its webhook is disabled or deleted: it is not slow any more.
   *  Returns whether it was. */
  recordSkip(attempt: OfWebhook): boolean {
    const health = this.#healthOf(attempt)
    const wasSlow = health.slowInARow > 0
    Object.assign(health, NOT_SLOW)
    return wasSlow
  }

  #healthOf({ webhookId, accountId }: OfWebhook): EndpointHealth {
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

  /** Forgets the webhooks of an account that holds no slots any more, except slow ones. Before, lease
   *  rounds need them all: they skip webhooks by their health. */
  #forgetAccount(accountId: string): void {
    this.#slots.delete(accountId)
    for (const [webhookId, health] of this.#health)
      if (health.accountId === accountId && health.inFlight === 0 && health.slowInARow === 0)
        this.#health.delete(webhookId)
  }
}

const slowHostKey = (accountId: string, host: string): string => `${accountId} ${host}`
