import {
  type Attempt,
  type AttemptWith,
  NO_JOB,
  type Outcome,
  type SendResult,
} from '../../records/attempt.ts'
import type { DeliveryProgress } from '../../records/attempt-results.ts'
import type { DeliveryState } from '../../records/deliveries.ts'
import type { SlowWebhook } from '../../records/slow-webhooks.ts'
import {
  type EndpointHealth,
  healthAfter,
  isAtLimit,
  MAX_IN_FLIGHT,
  mayStart,
  NOT_SLOW,
  SHARED_SLOTS,
  SLOW_AFTER,
  type Slowness,
  slownessAfter,
} from '../policy/fairness.ts'
import { HostSlots } from './host-slots.ts'
import { PausedWebhooks } from './paused.ts'
import { Unmarked } from './unmarked.ts'

/** leased: this process owns the attempt. sending: its request is open. storing: its result is not
 *  stored yet. */
type Phase = 'leased' | 'sending' | 'storing'

interface Entry {
  attempt: AttemptWith<'lease'>
  phase: Phase
  /** Set when the URL is known. */
  host?: string
}

export interface EngineCounts {
  inFlight: number
  /** Webhooks whose signing secrets this process cannot read. */
  pausedWebhooks: number
  /** Attempts whose results are not stored yet. They are in flight, too. */
  resultsWaiting: number
  /** Attempts made since the start. */
  outcomes: Record<Outcome, number>
  /** Deliveries that ended since the start. */
  ended: Pick<Record<DeliveryState, number>, 'delivered' | 'failed'>
}

/** `limitReleased`: a webhook that was at its concurrency limit may have another attempt. */
export type SlotListener = (limitReleased: boolean) => void

const newEndpoint = (accountId: string): EndpointHealth => ({
  accountId,
  inFlight: 0,
  ...NOT_SLOW,
  quickAt: Number.NEGATIVE_INFINITY,
  hasResult: false,
})

const MAX_SLOW_HOSTS = 10_000

/** The state that the stages of the engine share: the attempts in flight in this process, and the
 *  health of their endpoints. */
export class InFlight {
  /** Here, because a finished attempt needs no mark. */
  readonly unmarked = new Unmarked()
  /** Webhooks with due attempts that are marked in the records as queued, as of the last count.
   *  Undefined until the leader has counted. */
  marked: Set<string> | undefined
  /** Whether this process leads now. */
  isLeader: () => boolean = () => false
  /** This process cannot read their signing secrets. */
  readonly paused = new PausedWebhooks()
  /** Their accounts are suspended. */
  readonly suspended = new PausedWebhooks()
  /** By job ID. */
  readonly #entries = new Map<string, Entry>()
  /** By delivery ID: two attempts of one delivery when the first was cancelled in flight. */
  readonly #byDelivery = new Map<string, Entry[]>()
  readonly #endpoints = new Map<string, EndpointHealth>()
  /** The slots of each account that has any: until then its webhooks are known, so that rounds can
   *  skip them. */
  readonly #slots = new Map<string, number>()
  readonly #hostSlots = new HostSlots()
  /** By host of an account: a webhook that is created again begins as slow. */
  readonly #slowHosts = new Map<string, Slowness>()
  readonly #outcomes = { success: 0, http_error: 0, timeout: 0, unreachable: 0, blocked: 0 }
  readonly #ended = { delivered: 0, failed: 0 }
  #leasedCount = 0
  #onSlotFree: SlotListener = () => undefined

  /** The one signal to the stages above: a slot is free, or a concurrency limit has risen. */
  onSlotFree(listener: SlotListener): void {
    this.#onSlotFree = listener
  }

  get freeSlots(): number {
    return MAX_IN_FLIGHT - this.#entries.size
  }

  /** Negative when accounts that hold few slots use the others, too. */
  get freeSharedSlots(): number {
    return SHARED_SLOTS - this.#entries.size
  }

  /** Leases since the start. */
  get leasedCount(): number {
    return this.#leasedCount
  }

  /** The webhooks that get no attempts from this process for now. */
  get pauses(): PausedWebhooks[] {
    return [this.paused, this.suspended, this.#hostSlots.waiting]
  }

  get endpoints(): ReadonlyMap<string, EndpointHealth> {
    return this.#endpoints
  }

  /** The slots of each account that holds any. */
  get slots(): ReadonlyMap<string, number> {
    return this.#slots
  }

  counts(): EngineCounts {
    return {
      inFlight: this.#entries.size,
      pausedWebhooks: this.paused.count(),
      resultsWaiting: [...this.#entries.values()].filter(({ phase }) => phase === 'storing').length,
      outcomes: { ...this.#outcomes },
      ended: { ...this.#ended },
    }
  }

  list(): AttemptWith<'lease'>[] {
    return [...this.#entries.values()].map(({ attempt }) => attempt)
  }

  /** The webhooks that may have due attempts in the queue which are not in flight in this process.
   *  Undefined in all workers but the leader: they do not know. */
  webhooksWithDue(): ReadonlySet<string> | undefined {
    const waiting = this.unmarked.list().filter(({ deliveryId }) => !this.has(deliveryId))
    return this.marked?.union(new Set(waiting.map(({ webhookId }) => webhookId)))
  }

  /** Another process leads now. */
  forgetQueue(): void {
    this.unmarked.clear()
    this.marked = undefined
  }

  /** Attempts that were started as soon as they were scheduled. */
  listWithoutJob(): AttemptWith<'lease'>[] {
    return this.list().filter(({ lease }) => lease.retryCount === NO_JOB)
  }

  /** Whether an attempt of the delivery is in flight in this process. */
  has(deliveryId: string): boolean {
    return this.#byDelivery.has(deliveryId)
  }

  /** Whether a request of the delivery is open or its result is not stored yet. */
  isSending(deliveryId: string): boolean {
    const entries = this.#byDelivery.get(deliveryId) ?? []
    return entries.some(({ phase, attempt }) => phase === 'sending' || attempt.result !== undefined)
  }

  /** Takes a slot for each leased attempt. Returns the attempts that were not in flight: when a
   *  lease has expired and this process leases the attempt again, only the lease is replaced. */
  add(attempts: AttemptWith<'lease'>[]): AttemptWith<'lease'>[] {
    this.#leasedCount += attempts.length
    const added: AttemptWith<'lease'>[] = []
    for (const attempt of attempts) {
      const known = this.#entries.get(attempt.lease.jobId)
      if (known) {
        known.attempt.lease.retryCount = attempt.lease.retryCount
        continue
      }
      const entry: Entry = { attempt, phase: 'leased' }
      const { deliveryId } = attempt
      this.#entries.set(attempt.lease.jobId, entry)
      this.#byDelivery.set(deliveryId, [...(this.#byDelivery.get(deliveryId) ?? []), entry])
      this.#changeHealth(attempt, ({ inFlight }) => ({ inFlight: inFlight + 1 }))
      added.push(attempt)
    }
    return added
  }

  /** The webhooks that were slow before this process started. */
  rememberSlow(webhooks: SlowWebhook[]): void {
    for (const webhook of webhooks) {
      const slowness: Slowness = {
        slowInARow: SLOW_AFTER,
        slowFailuresInARow: webhook.hasSucceeded ? 0 : SLOW_AFTER,
      }
      this.#changeHealth(webhook, () => ({ ...slowness, hasResult: true }))
      this.#slowHosts.set(slowHostKey(webhook.accountId, hostOf(webhook.url)), slowness)
    }
  }

  /** Whether a leased attempt to this URL may start. */
  mayStart(attempt: AttemptWith<'lease'>, url: string): boolean {
    const { webhookId, accountId, lease } = attempt
    const host = hostOf(url)
    const entry = this.#entries.get(lease.jobId)
    if (entry) entry.host = host
    const slowness = this.#slowHosts.get(slowHostKey(accountId, host))
    if (slowness) this.#changeHealth(attempt, (health) => (health.hasResult ? {} : slowness))
    if (!mayStart(this.#endpoints, webhookId)) return false
    const hasSlot = this.#hostSlots.mayUse(host, accountId)
    if (!hasSlot) this.#hostSlots.wait(host, webhookId)
    return hasSlot
  }

  startSending(attempt: AttemptWith<'lease'>): void {
    this.#setPhase(attempt, 'sending')
    const host = this.#entries.get(attempt.lease.jobId)?.host
    if (host !== undefined) this.#hostSlots.take(host, attempt.accountId)
  }

  /** The attempt has ended; with a response or an error its endpoint's health changes. */
  startStoring(attempt: AttemptWith<'lease'>): void {
    this.#setPhase(attempt, 'storing')
    const { result, webhookId } = attempt
    if (!result) return
    const slowBefore = this.#endpoints.get(webhookId)?.slowInARow ?? 0
    let limitReleased = false
    if ('sent' in result) {
      const { sent } = result
      this.#outcomes[sent.outcome]++
      this.#changeHealth(attempt, (health) => healthAfter(health, sent, performance.now()))
      limitReleased = this.#changeHost(attempt, sent)
    } else this.#changeHealth(attempt, () => NOT_SLOW)
    limitReleased ||= (this.#endpoints.get(webhookId)?.slowInARow ?? 0) < slowBefore
    if (limitReleased) this.#onSlotFree(true)
  }

  /** The results are stored. `progress`: what they led to. */
  finish(attempts: AttemptWith<'lease'>[], progress: DeliveryProgress[]): void {
    let limitReleased = false
    for (const attempt of attempts) {
      const health = this.#endpoints.get(attempt.webhookId)
      const wasAtLimit = health !== undefined && isAtLimit(health, performance.now())
      const wasWaitedFor = this.remove(attempt)
      limitReleased ||= wasAtLimit || wasWaitedFor
    }
    this.unmarked.remove(attempts)
    for (const { state } of progress)
      if (state === 'delivered' || state === 'failed') this.#ended[state]++
    this.#onSlotFree(limitReleased)
  }

  /** Frees the slot of an attempt that has ended, or that another process has leased since. Returns
   *  whether another webhook has waited for a slot of the host. */
  remove(attempt: AttemptWith<'lease'>): boolean {
    const { lease, deliveryId, accountId } = attempt
    const entry = this.#entries.get(lease.jobId)
    if (!entry) return false
    this.#entries.delete(lease.jobId)
    const hasHostSlot = entry.host !== undefined && entry.phase !== 'leased'
    const wasWaitedFor = hasHostSlot && this.#hostSlots.free(entry.host ?? '', accountId)
    const others = (this.#byDelivery.get(deliveryId) ?? []).filter((other) => other !== entry)
    if (others.length > 0) this.#byDelivery.set(deliveryId, others)
    else this.#byDelivery.delete(deliveryId)
    this.#changeHealth(attempt, ({ inFlight }) => ({ inFlight: inFlight - 1 }))
    return wasWaitedFor
  }

  /** Forgets all attempts at a stop: their leases are not renewed any more. */
  clear(): void {
    this.#entries.clear()
    this.#byDelivery.clear()
    this.#hostSlots.clear()
  }

  #setPhase(attempt: AttemptWith<'lease'>, phase: Phase): void {
    const entry = this.#entries.get(attempt.lease.jobId)
    if (entry) entry.phase = phase
  }

  /** Returns whether webhooks have waited for the first 2xx of the host. */
  #changeHost({ lease, accountId }: AttemptWith<'lease'>, sent: SendResult): boolean {
    const host = this.#entries.get(lease.jobId)?.host
    if (host === undefined) return false
    const key = slowHostKey(accountId, host)
    const slowness = slownessAfter(this.#slowHosts.get(key) ?? NOT_SLOW, sent)
    if (slowness.slowInARow === 0) this.#slowHosts.delete(key)
    else {
      if (this.#slowHosts.size >= MAX_SLOW_HOSTS) this.#slowHosts.clear()
      this.#slowHosts.set(key, slowness)
    }
    return sent.outcome === 'success' && this.#hostSlots.prove(host)
  }

  #changeHealth(
    { webhookId, accountId }: Pick<Attempt, 'webhookId' | 'accountId'>,
    change: (health: EndpointHealth) => Partial<EndpointHealth>,
  ): void {
    const before = this.#endpoints.get(webhookId) ?? newEndpoint(accountId)
    const health = { ...before, ...change(before) }
    this.#endpoints.set(webhookId, health)
    const slots = (this.#slots.get(accountId) ?? 0) + health.inFlight - before.inFlight
    this.#slots.set(accountId, slots)
    if (slots === 0) this.#forgetAccount(accountId)
  }

  /** Its slow endpoints are remembered. */
  #forgetAccount(accountId: string): void {
    this.#slots.delete(accountId)
    for (const [webhookId, health] of this.#endpoints)
      if (health.accountId === accountId && health.inFlight === 0 && health.slowInARow === 0)
        this.#endpoints.delete(webhookId)
  }
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? ''

const slowHostKey = (accountId: string, host: string): string => `${accountId} ${host}`
