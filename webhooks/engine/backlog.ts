/** Adds attempts to the queue, as many as fit into the quotas of their webhooks. */
import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { ATTEMPTS_QUEUED } from '../../records/due-work.ts'
import {
  listUnqueued,
  listUnqueuedWithinQuota,
  markQueued,
} from '../../records/scheduled-attempts.ts'
import type { Turns } from '../../runtime/turns.ts'
import type { Selected } from '../policy/fairness.ts'
import type { Queue } from '../queue/queue.ts'
import type { ImmediateAttempts } from './immediate-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { Leaser } from './leaser.ts'
import type { QueueLedger } from './queue-ledger.ts'
import type { ResultPoll } from './result-poll.ts'

interface BacklogOptions {
  db: Db
  queue: Queue
  ledger: QueueLedger
  inFlight: InFlight
  leaser: Leaser
  immediate: ImmediateAttempts
  resultPoll: ResultPoll
  leaseTurns: Turns
  /** How far ahead attempts are enqueued. Later ones stay in the records. */
  horizonMs: number
  now: () => Date
}

const BATCH_SIZE = 1_000
/** While any webhook is at its quota, a webhook that has no attempts in the queue yet gets at most
 *  this many in one batch. */
const MAX_PER_UNQUEUED_WEBHOOK = 64
/** A count of the attempts in the queue is valid for this long. */
const COUNT_VALID_MS = 500
/** When more attempts are in the queue without a queued mark (`queued_at` of the delivery), all of
 *  them get one. */
const MAX_UNMARKED = 8_192

/** Returns the listed attempts without those that were announced to `Enqueuer.onScheduled`
 *  (enqueue.ts), or soon may be: the enqueuer adds announced attempts itself. */
type LeaveOut = (listed: Attempt[], at: Date) => Attempt[]

export class Backlog {
  readonly #options: BacklogOptions

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** Enqueues attempts that `QueueLedger.takeQuota` has selected. */
  async enqueue({ attempts, urgent }: Selected<Attempt>, at: Date): Promise<void> {
    const { db, queue, ledger, leaser, immediate, leaseTurns } = this.#options
    if (attempts.length === 0) return
    // Attempts that are in flight without a job get one first. Otherwise another worker could lease
    // more attempts of their webhooks than the concurrency limit allows: pg-boss counts jobs.
    await leaseTurns.take(() => immediate.addJobs())
    await queue.attempts.add(attempts, at, urgent)
    const due = attempts.filter((attempt) => isDue(attempt, at))
    ledger.add(due)
    if (due.length > 0) {
      if (urgent.size > 0) leaser.onUrgent()
      else leaser.wake()
      // Wake workers that found the queue empty.
      db.notifyOtherNodes(ATTEMPTS_QUEUED.name)
    }
    if (ledger.unmarkedCount > MAX_UNMARKED) await ledger.mark(performance.now())
  }

  /** Enqueues the attempts that the records have up to the horizon. Returns whether fewer webhooks are
   *  at their quota now than after the last batch: then another call may add more. */
  async enqueueAll(leaveOut: LeaveOut): Promise<boolean> {
    const { ledger } = this.#options
    if (ledger.full.size > 0) await this.#countQueue()
    while (await this.#addBatch(leaveOut)) await this.#countQueue()
    const fullBefore = ledger.full.size
    if (ledger.ageMs >= COUNT_VALID_MS) await this.#countQueue()
    return ledger.full.size < fullBefore
  }

  /** Counts the attempts of each webhook in the queue. That decides which webhooks are at their
   *  quota. */
  async #countQueue(): Promise<void> {
    const { ledger, resultPoll } = this.#options
    // Other workers do not say which attempts they have finished.
    if (ledger.full.size > 0) await resultPoll.removeFinished()
    await ledger.count()
  }

  /** Returns whether another batch may add more. Adding an attempt twice, or in two processes, is
   *  harmless. */
  async #addBatch(leaveOut: LeaveOut): Promise<boolean> {
    const { db, ledger, now } = this.#options
    const at = now()
    const isLimitedToQuotas = ledger.full.size > 0
    const listed = await this.#listBatch(at)
    const backlog = leaveOut(listed, at)
    if (backlog.length === 0) return false
    const selected = ledger.takeQuota(backlog, at)
    const later = selected.attempts.filter((attempt) => !isDue(attempt, at))
    await this.enqueue(selected, at)
    // Attempts that are not due yet stay in the queue for long, so they get a queued mark at once.
    if (later.length > 0) await transaction(db, (trx) => markQueued(trx, later, at))
    // Attempts that are not due yet take no quota, so the next list may have further attempts.
    if (isLimitedToQuotas) return later.length > 0
    // If some did not fit, a webhook has reached its quota: the next list is limited to the quotas.
    return listed.length === BATCH_SIZE || selected.attempts.length < backlog.length
  }

  /** The attempts up to the horizon that are neither in the queue nor in flight. */
  #listBatch(at: Date): Promise<Attempt[]> {
    const { db, ledger, inFlight, horizonMs } = this.#options
    const until = new Date(at.getTime() + horizonMs)
    const withoutMark = [...ledger.listUnmarked(), ...inFlight.listWithoutJob()]
    const skip = withoutMark.map(({ deliveryId }) => deliveryId)
    if (ledger.full.size === 0) return listUnqueued(db, until, skip, BATCH_SIZE)
    const free = { byWebhook: ledger.freeQuota(), ofOthers: MAX_PER_UNQUEUED_WEBHOOK }
    return listUnqueuedWithinQuota(db, until, skip, free)
  }
}

export function isDue({ scheduledAt }: Attempt, at: Date): boolean {
  return scheduledAt <= at.getTime()
}
