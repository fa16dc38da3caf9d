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

/** When this many hosts are remembered, a slow result of another host replaces them all, to bound
 *  the memory. */
const MAX_SLOW_HOSTS = 10_000
/** A webhook with slow attempts is forgotten after this long without an attempt: it may have been
 *  deleted. */
const REMEMBER_MS = 15 * 60_000

interface KnownEndpoint extends EndpointHealth {
  /** When a slot for the endpoint was last taken or freed. */
  usedAt: number
}

/** What this process knows of endpoints: the health of each webhook that has slow attempts or whose
 *  account has attempts in flight, and how many slots each account holds. */
export class Endpoints {
  readonly #nowMs: () => number
  /** By webhook ID. */
  readonly #health = new Map<string, KnownEndpoint>()
  /** By account ID. */
  readonly #slots = new Map<string, number>()
  /** By account and host. Outlives the webhook, so that deleting and creating it again does not
   *  make its host look quick. */
  readonly #slowHosts = new Map<string, Slowness>()

  /** `nowMs`: the monotonic clock. */
  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs
  }

  get health(): ReadonlyMap<string, EndpointHealth> {
    return this.#health
  }

  /** How many slots each account holds, without accounts that hold none. */
  get slots(): ReadonlyMap<string, number> {
    return this.#slots
  }

  /** Treats these webhooks and their hosts as slow from the start: they were slow before this
   *  process started. */
  rememberSlow(webhooks: SlowWebhook[]): void {
    for (const webhook of webhooks) {
      const slowness: Slowness = {
        slowInARow: SLOW_AFTER,
        slowFailuresInARow: webhook.hasSucceeded ? 0 : SLOW_AFTER,
      }
      Object.assign(this.#healthOf(webhook), slowness, { hasResult: true })
      const key = slowHostKey(webhook.accountId, webhook.host)
      // A host does not count as hanging if an attempt of any of its webhooks has succeeded.
      if (this.#slowHosts.get(key)?.slowFailuresInARow !== 0) this.#rememberHost(key, slowness)
    }
  }

  takeSlot(attempt: OfWebhook): void {
    this.#changeInFlight(attempt, 1)
    this.#slots.set(attempt.accountId, (this.#slots.get(attempt.accountId) ?? 0) + 1)
  }

  freeSlot(attempt: OfWebhook): void {
    this.#changeInFlight(attempt, -1)
    const slots = (this.#slots.get(attempt.accountId) ?? 0) - 1
    if (slots > 0) this.#slots.set(attempt.accountId, slots)
    else {
      this.#slots.delete(attempt.accountId)
      this.#forgetIdle()
    }
  }

  /** Call this when the host of an attempt is known. A webhook without a result is assumed to be as
   *  slow as its host. */
  assumeHealthOfHost(attempt: OfWebhook, host: string): void {
    const slowness = this.#slowHosts.get(slowHostKey(attempt.accountId, host))
    if (!slowness) return
    const health = this.#healthOf(attempt)
    if (!health.hasResult) Object.assign(health, slowness)
  }

  /** Returns whether a series of slow attempts has ended, so that the concurrency limit may have
   *  risen. `host`: undefined if the attempt has ended before its host was known. */
  recordResult(attempt: OfWebhook, host: string | undefined, sent: SendResult): boolean {
    if (host !== undefined) {
      const key = slowHostKey(attempt.accountId, host)
      this.#rememberHost(key, slownessAfter(this.#slowHosts.get(key) ?? NOT_SLOW, sent))
    }
    const before = this.#healthOf(attempt)
    const health = healthAfter(before, sent, this.#nowMs())
    this.#health.set(attempt.webhookId, health)
    return health.slowInARow < before.slowInARow
  }

  /** The attempt was not made, because its webhook is disabled or deleted. That ends a series of
   *  slow attempts. Returns whether there was such a series. */
  recordSkip(attempt: OfWebhook): boolean {
    const health = this.#healthOf(attempt)
    const hadSlowAttempts = hasSlowAttempts(health)
    Object.assign(health, NOT_SLOW)
    return hadSlowAttempts
  }

  #changeInFlight(attempt: OfWebhook, change: 1 | -1): void {
    const health = this.#healthOf(attempt)
    health.inFlight += change
    health.usedAt = this.#nowMs()
  }

  #healthOf({ webhookId, accountId }: OfWebhook): KnownEndpoint {
    const known = this.#health.get(webhookId)
    if (known) return known
    const health: KnownEndpoint = {
      accountId,
      inFlight: 0,
      ...NOT_SLOW,
      quickAt: Number.NEGATIVE_INFINITY,
      hasResult: false,
      usedAt: this.#nowMs(),
    }
    this.#health.set(webhookId, health)
    return health
  }

  #rememberHost(key: string, slowness: Slowness): void {
    if (slowness.slowInARow === 0) {
      this.#slowHosts.delete(key)
      return
    }
    const isNew = !this.#slowHosts.has(key)
    if (isNew && this.#slowHosts.size >= MAX_SLOW_HOSTS) this.#slowHosts.clear()
    this.#slowHosts.set(key, slowness)
  }

  /** Forgets the webhooks of accounts without slots, but webhooks with slow attempts only after
   *  `REMEMBER_MS`. While an account holds slots, `LeaseRounds` needs the health of all its
   *  webhooks to decide which of them to skip. */
  #forgetIdle(): void {
    const forgetBefore = this.#nowMs() - REMEMBER_MS
    for (const [webhookId, health] of this.#health) {
      if (this.#slots.has(health.accountId)) continue
      if (!hasSlowAttempts(health) || health.usedAt < forgetBefore) this.#health.delete(webhookId)
    }
  }
}

/** Whether an attempt was slow since the last response within `SLOW_ATTEMPT_MS` (fairness.ts). The
 *  endpoint counts as slow only after `SLOW_AFTER` such attempts. */
const hasSlowAttempts = ({ slowInARow }: EndpointHealth): boolean => slowInARow > 0

const slowHostKey = (accountId: string, host: string): string => `${accountId} ${host}`
