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
import type { Selected } from '../policy/fairness.ts'
import type { Queue } from '../queue/queue.ts'
import type { Turns } from '../turns.ts'
import type { ImmediateAttempts } from './immediate-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { Peers } from './peers.ts'
import type { QueueContents } from './queue-contents.ts'
import type { Worker } from './worker.ts'

export interface QueueFillerOptions {
  db: Db
  queue: Queue
  contents: QueueContents
  inFlight: InFlight
  worker: Worker
  immediate: ImmediateAttempts
  peers: Peers
  leaseTurns: Turns
  /** How far ahead attempts are enqueued. Later ones stay in the records. */
  horizonMs: number
  now: () => Date
}

const BATCH_SIZE = 1_000
/** While webhooks are at their quota, a webhook without attempts in the queue gets at most this many
 *  in one batch. */
const FIRST_PART = 64
/** After this time, the attempts in the queue are counted again. */
const COUNT_AFTER_MS = 500
/** With more attempts in the queue that are not marked in the records, all are marked at once. */
const MAX_UNMARKED = 8_192

/** Leaves out the attempts that are enqueued otherwise. */
type Select = (listed: Attempt[], at: Date) => Attempt[]

export class QueueFiller {
  readonly #options: QueueFillerOptions

  constructor(options: QueueFillerOptions) {
    this.#options = options
  }

  /** Adds attempts that have taken their quota. */
  async add({ attempts, urgent }: Selected<Attempt>, at: Date): Promise<void> {
    const { db, queue, contents, worker, immediate, leaseTurns } = this.#options
    if (attempts.length === 0) return
    // Another worker may lease the new attempts at once. pg-boss counts the attempts of a webhook by
    // their jobs, so those in flight need theirs before.
    await leaseTurns.take(() => immediate.addJobs())
    await queue.attempts.add(attempts, at, urgent)
    const due = attempts.filter((attempt) => isDue(attempt, at))
    contents.add(due)
    if (due.length > 0) {
      if (urgent.size > 0) worker.onUrgent()
      else worker.wake()
      // Wake workers that found the queue empty.
      db.notifyOtherNodes(ATTEMPTS_QUEUED.name)
    }
    if (contents.unmarkedCount > MAX_UNMARKED) await contents.mark(performance.now())
  }

  /** Adds the attempts up to the horizon that the records have and `select` returns. Returns whether
   *  a webhook has fallen below its quota meanwhile: then there may be more. */
  async addBacklog(select: Select): Promise<boolean> {
    const { contents } = this.#options
    if (contents.full.size > 0) await this.#count()
    while (await this.#addBatch(select)) await this.#count()
    const fullBefore = contents.full.size
    if (contents.ageMs >= COUNT_AFTER_MS) await this.#count()
    return contents.full.size < fullBefore
  }

  /** Counts the attempts of each webhook in the queue, and so finds the webhooks at their quota. */
  async #count(): Promise<void> {
    const { contents, peers } = this.#options
    if (contents.full.size > 0) await peers.removeFinished()
    await contents.count()
  }

  /** Returns whether there may be more. Adding an attempt twice, or in two processes, is
   *  harmless. */
  async #addBatch(select: Select): Promise<boolean> {
    const { db, contents, now } = this.#options
    const at = now()
    const hasFull = contents.full.size > 0
    const listed = await this.#listBatch(at)
    const backlog = select(listed, at)
    if (backlog.length === 0) return false
    const selected = contents.takeQuota(backlog, at)
    const later = selected.attempts.filter((attempt) => !isDue(attempt, at))
    await this.add(selected, at)
    if (later.length > 0) await transaction(db, (trx) => markQueued(trx, later, at))
    // Attempts that are not due yet take no quota, so there may be others behind them.
    if (hasFull) return later.length > 0
    // If not all were selected, a webhook has reached its quota: the next batch leaves it out.
    return listed.length === BATCH_SIZE || selected.attempts.length < backlog.length
  }

  /** The attempts up to the horizon that are neither in the queue nor in flight. */
  #listBatch(at: Date): Promise<Attempt[]> {
    const { db, contents, inFlight, horizonMs } = this.#options
    const until = new Date(at.getTime() + horizonMs)
    const known = [...contents.listUnmarked(), ...inFlight.listWithoutJob()]
    const skip = known.map(({ deliveryId }) => deliveryId)
    if (contents.full.size === 0) return listUnqueued(db, until, skip, BATCH_SIZE)
    const free = { byWebhook: contents.freeQuota(), ofOthers: FIRST_PART }
    return listUnqueuedWithinQuota(db, until, skip, free)
  }
}

export function isDue({ scheduledAt }: Attempt, at: Date): boolean {
  return scheduledAt <= at.getTime()
}
