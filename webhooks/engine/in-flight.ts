import { type Attempt, type AttemptWith, NO_JOB, type Outcome } from '../../records/attempt.ts'
import type { DeliveryProgress } from '../../records/attempt-results.ts'
import type { DeliveryState } from '../../records/deliveries.ts'
import { isAtLimit, MAX_IN_FLIGHT, mayStart, SHARED_SLOTS } from '../policy/fairness.ts'
import { Endpoints } from './endpoints.ts'
import { HostSlots } from './host-slots.ts'
import { WebhookHolds } from './webhook-holds.ts'

/** leased: this process owns the attempt. sending: its request is open. storing: its result is not
 *  stored yet. */
type Phase = 'leased' | 'sending' | 'storing'

interface Entry {
  attempt: AttemptWith<'lease'>
  phase: Phase
  /** Set when the webhook has been read. */
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
type SlotListener = (limitReleased: boolean) => void

/** The attempts in flight in this process. The parts of the engine share this object, and an
 *  attempt changes its phase only here. */
export class InFlight {
  readonly endpoints = new Endpoints()
  /** Webhooks whose signing secrets this process cannot read. */
  readonly unreadable = new WebhookHolds()
  /** Webhooks whose accounts are suspended. */
  readonly suspended = new WebhookHolds()
  /** By job ID. */
  readonly #entries = new Map<string, Entry>()
  /** By delivery ID. A delivery has two entries when an attempt was cancelled in flight and the
   *  next one has been leased. */
  readonly #byDelivery = new Map<string, Entry[]>()
  readonly #hostSlots = new HostSlots()
  readonly #outcomes: Record<Outcome, number> = {
    success: 0,
    http_error: 0,
    timeout: 0,
    unreachable: 0,
    invalid_response: 0,
    blocked: 0,
  }
  readonly #ended = { delivered: 0, failed: 0 }
  #leasedCount = 0
  #onSlotFree: SlotListener = () => undefined

  /** Sets the only listener. It is called when a slot is free or a concurrency limit has risen. */
  onSlotFree(listener: SlotListener): void {
    this.#onSlotFree = listener
  }

  get freeSlots(): number {
    return MAX_IN_FLIGHT - this.#entries.size
  }

  /** Negative when accounts that hold few slots use slots that are not shared. */
  get freeSharedSlots(): number {
    return SHARED_SLOTS - this.#entries.size
  }

  /** How many leases this process has had since its start. */
  get leasedCount(): number {
    return this.#leasedCount
  }

  get holds(): WebhookHolds[] {
    return [this.unreadable, this.suspended, this.#hostSlots.waiting]
  }

  counts(): EngineCounts {
    return {
      inFlight: this.#entries.size,
      pausedWebhooks: this.unreadable.count(),
      resultsWaiting: [...this.#entries.values()].filter(({ phase }) => phase === 'storing').length,
      outcomes: { ...this.#outcomes },
      ended: { ...this.#ended },
    }
  }

  list(): AttemptWith<'lease'>[] {
    return [...this.#entries.values()].map(({ attempt }) => attempt)
  }

  /** Attempts that were started without a job, and have got none since. */
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
      const { lease, deliveryId } = attempt
      const known = this.#entries.get(lease.jobId)
      if (known) {
        known.attempt.lease.retryCount = lease.retryCount
        continue
      }
      const entry: Entry = { attempt, phase: 'leased' }
      this.#entries.set(lease.jobId, entry)
      this.#byDelivery.set(deliveryId, [...(this.#byDelivery.get(deliveryId) ?? []), entry])
      this.endpoints.takeSlot(attempt)
      added.push(attempt)
    }
    return added
  }

  /** Call this when the host of a leased attempt is known. Returns whether the attempt may start.
   *  If the host has no free slot, the webhook waits for one. */
  askToStart(attempt: AttemptWith<'lease'>, host: string): boolean {
    const entry = this.#entries.get(attempt.lease.jobId)
    if (entry) entry.host = host
    this.endpoints.assumeHealthOfHost(attempt, host)
    if (!mayStart(this.endpoints.health, attempt.webhookId)) return false
    const hasSlot = this.#hostSlots.mayUse(host, attempt.accountId)
    if (!hasSlot) this.#hostSlots.addWaiting(host, attempt.webhookId)
    return hasSlot
  }

  startSending(attempt: AttemptWith<'lease'>): void {
    const entry = this.#setPhase(attempt, 'sending')
    if (entry?.host !== undefined) this.#hostSlots.take(entry.host, attempt.accountId)
  }

  /** Call this when the attempt has ended. A result changes the health of the endpoint. */
  startStoring(attempt: AttemptWith<'lease'>): void {
    const entry = this.#setPhase(attempt, 'storing')
    if (attempt.result && this.#record(attempt, attempt.result, entry?.host)) this.#onSlotFree(true)
  }

  /** Call this when the results of the attempts are stored. `progress` has an entry for the
   *  delivery of each new result. */
  finish(attempts: AttemptWith<'lease'>[], progress: DeliveryProgress[]): void {
    const nowMs = performance.now()
    let limitReleased = false
    for (const attempt of attempts) {
      const health = this.endpoints.health.get(attempt.webhookId)
      if (health && isAtLimit(health, nowMs)) limitReleased = true
      if (this.remove(attempt)) limitReleased = true
    }
    for (const { state } of progress)
      if (state === 'delivered' || state === 'failed') this.#ended[state]++
    this.#onSlotFree(limitReleased)
  }

  /** Frees the slot of an attempt that has ended, or that this process no longer owns. Returns
   *  whether a webhook has waited for a slot of the host. */
  remove(attempt: AttemptWith<'lease'>): boolean {
    const { lease, deliveryId, accountId } = attempt
    const entry = this.#entries.get(lease.jobId)
    if (!entry) return false
    this.#entries.delete(lease.jobId)
    const others = (this.#byDelivery.get(deliveryId) ?? []).filter((other) => other !== entry)
    if (others.length > 0) this.#byDelivery.set(deliveryId, others)
    else this.#byDelivery.delete(deliveryId)
    this.endpoints.freeSlot(attempt)
    const { host, phase } = entry
    return host !== undefined && phase !== 'leased' && this.#hostSlots.free(host, accountId)
  }

  /** Forgets all attempts at a stop: their leases are not renewed any more. */
  clear(): void {
    this.#entries.clear()
    this.#byDelivery.clear()
    this.#hostSlots.clear()
  }

  #setPhase(attempt: AttemptWith<'lease'>, phase: Phase): Entry | undefined {
    const entry = this.#entries.get(attempt.lease.jobId)
    if (entry) entry.phase = phase
    return entry
  }

  /** Returns whether a webhook may have more attempts now: its endpoint has become quicker, or its
   *  host has responded with 2xx for the first time. */
  #record(
    attempt: Attempt,
    result: NonNullable<Attempt['result']>,
    host: string | undefined,
  ): boolean {
    if (!('sent' in result)) return this.endpoints.recordSkip(attempt)
    const { outcome } = result.sent
    this.#outcomes[outcome]++
    const isQuicker = this.endpoints.recordResult(attempt, host, result.sent)
    const isProven = outcome === 'success' && host !== undefined && this.#hostSlots.prove(host)
    return isQuicker || isProven
  }
}
