import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { countQueued, markQueued } from '../../records/scheduled-attempts.ts'
import { freeQuota, type QueueUse, type Selected, selectWithinQuota } from '../policy/fairness.ts'
import type { InFlight } from './in-flight.ts'
import type { WorkerSessions } from './worker-sessions.ts'

interface QueueLedgerOptions {
  db: Db
  inFlight: InFlight
  /** Undefined: workers have no sessions, so they cannot be counted. */
  workerSessions: WorkerSessions | undefined
  now: () => Date
}

/** The due attempts in the queue. */
interface Count {
  /** How many there are, by account ID and webhook ID. */
  queued: Map<string, Map<string, number>>
  /** Webhooks that have reached their quota. */
  full: ReadonlySet<string>
  /** Webhooks with marked attempts in the queue. `QueueLedger` says which attempts get a queued
   *  mark. Undefined: not counted yet. */
  marked: Set<string> | undefined
  countedAtMs: number
}

const notCounted = (): Count => ({
  queued: new Map(),
  full: new Set(),
  marked: undefined,
  countedAtMs: Number.NEGATIVE_INFINITY,
})

/** What the leader knows of the attempts in the queue. A delivery has a queued mark (`queued_at`)
 *  only when its attempt stays in the queue for long: nearly all attempts finish sooner and need no
 *  such write. So the leader remembers the attempts that it has queued and not marked. */
export class QueueLedger {
  readonly #options: QueueLedgerOptions
  /** By delivery ID. */
  readonly #unmarked = new Map<string, { attempt: Attempt; queuedAtMs: number }>()
  #count = notCounted()

  constructor(options: QueueLedgerOptions) {
    this.#options = options
  }

  get unmarkedCount(): number {
    return this.#unmarked.size
  }

  isUnmarked(deliveryId: string): boolean {
    return this.#unmarked.has(deliveryId)
  }

  /** The unmarked attempts that were queued up to `untilMs` of the monotonic clock. */
  listUnmarked(untilMs = Number.POSITIVE_INFINITY): Attempt[] {
    return [...this.#unmarked.values()]
      .filter(({ queuedAtMs }) => queuedAtMs <= untilMs)
      .map(({ attempt }) => attempt)
  }

  /** Call this when attempts were queued. */
  add(attempts: Attempt[]): void {
    const queuedAtMs = performance.now()
    for (const attempt of attempts) this.#unmarked.set(attempt.deliveryId, { attempt, queuedAtMs })
  }

  /** Forgets attempts that are finished or marked, but not later ones of the same deliveries. */
  remove(attempts: Attempt[]): void {
    for (const { deliveryId, scheduledAt } of attempts)
      if (this.#unmarked.get(deliveryId)?.attempt.scheduledAt === scheduledAt)
        this.#unmarked.delete(deliveryId)
  }

  /** Call this when another process leads, or when the queue has lost all its jobs. */
  forget(): void {
    this.#unmarked.clear()
    this.#count = notCounted()
  }

  /** Stores a queued mark for each unmarked attempt that was queued up to `untilMs` of the
   *  monotonic clock. */
  async mark(untilMs: number): Promise<void> {
    const { db, now } = this.#options
    const attempts = this.listUnmarked(untilMs)
    if (attempts.length === 0) return
    await transaction(db, (trx) => markQueued(trx, attempts, now()))
    this.remove(attempts)
    for (const { webhookId } of attempts) this.#count.marked?.add(webhookId)
  }

  /** Counts the due attempts in the queue, and finds the webhooks that have reached their quota. */
  async count(): Promise<void> {
    const { db, now } = this.#options
    const countedAtMs = performance.now()
    const counted = await countQueued(db, now())
    const queued: Count['queued'] = new Map()
    for (const ofWebhook of counted) addTo(queued, ofWebhook, ofWebhook.count)
    for (const attempt of this.listUnmarked()) addTo(queued, attempt, 1)
    const marked = new Set(counted.map(({ webhookId }) => webhookId))
    this.#count = { queued, full: new Set(), marked, countedAtMs }
    const full = [...this.freeQuota()].filter(([, free]) => free <= 0)
    this.#count.full = new Set(full.map(([webhookId]) => webhookId))
  }

  /** Time since the last count. */
  get ageMs(): number {
    return performance.now() - this.#count.countedAtMs
  }

  /** Webhooks that have reached their quota, as of the last count. */
  get full(): ReadonlySet<string> {
    return this.#count.full
  }

  /** How many more attempts each webhook with attempts in the queue may have there. */
  freeQuota(): Map<string, number> {
    return freeQuota(this.#use)
  }

  /** Selects the attempts that fit into the quotas, and counts the due ones as queued. */
  takeQuota(attempts: Attempt[], at: Date): Selected<Attempt> {
    const selected = selectWithinQuota(attempts, this.#use, at.getTime())
    for (const attempt of selected.attempts)
      if (attempt.scheduledAt <= at.getTime()) addTo(this.#count.queued, attempt, 1)
    return selected
  }

  /** Whether the queue may have due attempts that are not in flight in this process. */
  mayHaveDue(): boolean {
    const { marked } = this.#count
    return !marked || marked.size > 0 || this.#listElsewhere().next().value !== undefined
  }

  /** The webhooks that may have due attempts in the queue that are not in flight in this process.
   *  Undefined before the first count. */
  webhooksWithDue(): ReadonlySet<string> | undefined {
    const { marked } = this.#count
    return marked?.union(new Set(this.#listElsewhere().map(({ webhookId }) => webhookId)))
  }

  /** The unmarked attempts that are not in flight in this process. */
  #listElsewhere(): IteratorObject<Attempt, undefined> {
    return this.#unmarked
      .values()
      .map(({ attempt }) => attempt)
      .filter(({ deliveryId }) => !this.#options.inFlight.has(deliveryId))
  }

  get #use(): QueueUse {
    return { accounts: this.#count.queued, workers: this.#options.workerSessions?.liveCount ?? 1 }
  }
}

function addTo(
  counts: Count['queued'],
  { accountId, webhookId }: Pick<Attempt, 'accountId' | 'webhookId'>,
  count: number,
): void {
  const webhooks = counts.get(accountId) ?? new Map<string, number>()
  webhooks.set(webhookId, (webhooks.get(webhookId) ?? 0) + count)
  counts.set(accountId, webhooks)
}
