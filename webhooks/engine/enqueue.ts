/** Adds scheduled attempts to the queue shortly before they are due. Runs only in the leader. */
import type { Logger } from 'pino'
import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { ATTEMPTS_QUEUED } from '../../records/due-work.ts'
import {
  clearQueuedMarks,
  findNextQueuedDueAt,
  listUnqueued,
  listUnqueuedWithinQuota,
  markQueued,
} from '../../records/scheduled-attempts.ts'
import type { Selected } from '../policy/fairness.ts'
import type { Queue } from '../queue/queue.ts'
import { RunLoop } from '../run-loop.ts'
import type { Turns } from '../turns.ts'
import type { ImmediateAttempts } from './immediate-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import { Peers } from './peers.ts'
import type { QueueContents } from './queue-contents.ts'
import { Realignment } from './realign.ts'
import { repair } from './repair.ts'
import type { Worker } from './worker.ts'
import type { Workers } from './workers.ts'

export interface EnqueueOptions {
  db: Db
  queue: Queue
  leader: Leader
  contents: QueueContents
  inFlight: InFlight
  worker: Worker
  immediate: ImmediateAttempts
  /** One lease at a time. */
  leases: Turns
  /** Undefined: workers have no sessions. */
  workers: Workers | undefined
  /** How far ahead attempts are enqueued. Later ones stay in the records. */
  horizonMs: number
  delaysMs: number[]
  now: () => Date
  log: Logger
}

const BATCH_SIZE = 1_000
/** Finds unannounced attempts: on SQLite a CLI command in another process cannot notify the
 *  server. */
const SWEEP_MS = 500
/** A sweep leaves younger first attempts to the announcement, which follows the commit. */
const ANNOUNCED_WITHIN_MS = 250
const REPAIR_MS = 5_000
/** How soon the queue is refilled after attempts of a webhook at its quota have left it. */
const REFILL_MS = 100
/** Minimum delay of the timer for the next queued attempt. */
const MIN_TIMER_MS = 5
/** Enqueued attempts that are not finished after this long are marked in the records. */
const MARK_AFTER_MS = 1_000
const MAX_UNMARKED = 8_192
/** About the time that the leader takes to enqueue announced attempts. */
const LEADER_ENQUEUE_MS = 20

/** A webhook that has none in the queue yet gets at most this many at first. */
const FIRST_PART = 64

/** Which attempts the next run looks for in the records: those that an announcement should have
 *  named by now, or all. */
type Search = 'none' | 'unannounced' | 'all'

export class Enqueuer {
  readonly #options: EnqueueOptions
  readonly #peers: Peers
  readonly #realignment: Realignment
  readonly #loop: RunLoop
  readonly #timers = new Map<'sweep' | 'refill' | 'due' | 'lease', NodeJS.Timeout>()
  /** Attempts that this process has just scheduled: they need no query. */
  #announced: Attempt[] = []
  #search: Search = 'all'
  #repairedAtMs = performance.now()
  /** The value of `queue.restarts()` for which the queued marks were last cleared. */
  #knownRestarts: number

  constructor(options: EnqueueOptions) {
    this.#options = options
    const { db, inFlight, contents, log } = options
    this.#peers = new Peers(db, inFlight, contents)
    this.#realignment = new Realignment(options)
    this.#knownRestarts = db.dialect === 'sqlite' ? -1 : 0
    this.#loop = new RunLoop(
      () => this.#run(),
      (error) => log.warn({ err: error }, 'Attempts could not be enqueued; trying again'),
    )
    this.#timers.set(
      'sweep',
      setInterval(() => this.#searchFor('unannounced'), SWEEP_MS),
    )
  }

  async start(): Promise<void> {
    await this.#forgetLostJobs()
    this.#searchFor('all')
  }

  /** Attempts were scheduled. Without a list, searches for them. Returns true in the leader: only it
   *  needs to know. */
  readonly onScheduled = (attempts?: Attempt[]): boolean => {
    if (attempts && this.#announced.length + attempts.length <= BATCH_SIZE) {
      this.#announced.push(...attempts)
      this.#loop.wake()
    } else this.#searchFor('all')
    return this.#options.leader.isLeader
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    await this.#realignment.stop()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    const { immediate, leader, log } = this.#options
    await immediate.handOver().catch((error: unknown) => {
      log.warn({ err: error }, 'The jobs of attempts in flight could not be added')
    })
    await leader.stop()
  }

  #searchFor(search: 'unannounced' | 'all'): void {
    if (this.#search !== 'all') this.#search = search
    this.#loop.wake()
  }

  async #run(): Promise<void> {
    const { leader, contents, now } = this.#options
    if (!(await leader.ensureLeadership())) {
      this.#announced = []
      this.#realignment.restart()
      this.#leaseSoon()
      return this.#setDueTimer(now())
    }
    await this.#forgetLostJobs()
    await this.#enqueueAnnounced()
    const search = this.#search
    if (search === 'none') return
    this.#search = 'none'
    const startedAt = now()
    // First, because they count towards the concurrency limits of their webhooks.
    await this.#releaseEnded()
    await this.#enqueueBacklog(search === 'all' ? 0 : ANNOUNCED_WITHIN_MS)
    await this.#setDueTimer(startedAt)
    // Last, so that they do not delay attempts that are due.
    await contents.mark(performance.now() - MARK_AFTER_MS)
    await this.#repair()
  }

  /** The leader may have no free slots, so try locally after a short delay. */
  #leaseSoon(): void {
    if (this.#timers.has('lease')) return
    const lease = (): void => {
      this.#timers.delete('lease')
      this.#options.worker.wake()
    }
    this.#timers.set('lease', setTimeout(lease, LEADER_ENQUEUE_MS))
  }

  /** An embedded queue is empty after a start or restart. */
  async #forgetLostJobs(): Promise<void> {
    const { db, queue, contents } = this.#options
    const restarts = queue.restarts()
    if (restarts === this.#knownRestarts) return
    await clearQueuedMarks(db)
    contents.forget()
    this.#knownRestarts = restarts
    this.#search = 'all'
  }

  async #enqueueAnnounced(): Promise<void> {
    const { contents, immediate, now, worker } = this.#options
    const at = now()
    const announced = this.#announced.filter(({ deliveryId }) => !contents.isUnmarked(deliveryId))
    this.#announced = []
    const due = announced.filter(
      (attempt) => isDue(attempt, at) && !contents.full.has(attempt.webhookId),
    )
    const mustWait = await immediate.start(due)
    const selected = contents.takeQuota(mustWait, at)
    // The rest are not due yet, or must wait behind the backlog of their webhook.
    const rest = announced.length - due.length + mustWait.length - selected.attempts.length
    if (rest > 0) this.#search = 'all'
    if (selected.attempts.length === 0) return
    await this.#enqueue(selected, at)
    // Then the next announced attempts can start at once: these are not in the queue any more.
    await worker.leaseNow()
  }

  /** `minAgeMs`: see `isAwaitingAnnouncement`. */
  async #enqueueBacklog(minAgeMs: number): Promise<void> {
    const { contents } = this.#options
    if (contents.full.size > 0) await this.#count()
    while (await this.#enqueueBatch(minAgeMs)) await this.#count()
    const fullBefore = contents.full.size
    if (contents.ageMs >= SWEEP_MS) await this.#count()
    // Queue the backlog of webhooks that just fell below their quota before newly scheduled
    // attempts.
    if (contents.full.size < fullBefore) this.#searchFor('all')
    this.#refillLater()
  }

  async #count(): Promise<void> {
    const { contents } = this.#options
    if (contents.full.size > 0) await this.#peers.removeFinished()
    await contents.count()
  }

  /** Returns whether there may be more. Adding an attempt twice, or in two processes, is
   *  harmless. */
  async #enqueueBatch(minAgeMs: number): Promise<boolean> {
    const { db, contents, now } = this.#options
    const at = now()
    const hasFull = contents.full.size > 0
    const listed = await this.#listBacklog(at)
    const announced = new Set(this.#announced.map(({ deliveryId }) => deliveryId))
    const backlog = listed.filter(
      (attempt) =>
        !announced.has(attempt.deliveryId) && !isAwaitingAnnouncement(attempt, at, minAgeMs),
    )
    if (backlog.length === 0) return false
    const selected = contents.takeQuota(backlog, at)
    const later = selected.attempts.filter((attempt) => !isDue(attempt, at))
    await this.#enqueue(selected, at)
    if (later.length > 0) await transaction(db, (trx) => markQueued(trx, later, at))
    // Later attempts take no quota, so there may be others behind them.
    if (hasFull) return later.length > 0
    return backlog.length === BATCH_SIZE || selected.attempts.length < backlog.length
  }

  /** The attempts up to the horizon that are neither in the queue nor in flight. */
  #listBacklog(at: Date): Promise<Attempt[]> {
    const { db, contents, inFlight, horizonMs } = this.#options
    const until = new Date(at.getTime() + horizonMs)
    const known = [...contents.listUnmarked(), ...inFlight.listWithoutJob()]
    const skip = known.map(({ deliveryId }) => deliveryId)
    if (contents.full.size === 0) return listUnqueued(db, until, skip, BATCH_SIZE)
    const free = { byWebhook: contents.freeQuota(), ofOthers: FIRST_PART }
    return listUnqueuedWithinQuota(db, until, skip, free)
  }

  async #enqueue({ attempts, urgent }: Selected<Attempt>, at: Date): Promise<void> {
    const { db, queue, contents, worker, immediate, leases } = this.#options
    if (attempts.length === 0) return
    // First: pg-boss counts the attempts of a webhook by their jobs, when another worker leases the
    // new ones.
    await leases.take(() => immediate.addJobs())
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

  async #releaseEnded(): Promise<void> {
    const { db, worker, workers, log } = this.#options
    const released = await workers?.releaseAttempts().catch((error: unknown) => {
      // Without it, their leases expire.
      log.warn({ err: error }, 'The attempts of ended workers could not be released; trying again')
    })
    if (!released) return
    worker.wake()
    db.notifyOtherNodes(ATTEMPTS_QUEUED.name)
  }

  async #repair(): Promise<void> {
    // Monotonic clock: wall time may jump.
    if (performance.now() - this.#repairedAtMs < REPAIR_MS) return
    this.#repairedAtMs = performance.now()
    const { db, queue, log, now, worker } = this.#options
    this.#realignment.wake()
    const repaired = await repair({ db, jobs: queue.attempts, log }, now())
    if (repaired > 0) worker.wake()
  }

  /** Searches again once attempts may have left the queue, while a webhook is at its quota. */
  #refillLater(): void {
    const { inFlight, contents } = this.#options
    clearTimeout(this.#timers.get('refill'))
    if (contents.full.size === 0) return
    const leasedCount = inFlight.leasedCount
    const refill = (): void => {
      if (inFlight.leasedCount > leasedCount || this.#peers.areActive) this.#searchFor('all')
      else this.#refillLater()
    }
    this.#timers.set('refill', setTimeout(refill, REFILL_MS))
  }

  /** Wakes the worker when the first attempt that is queued for a time after `since` is due. It may
   *  be due already: queueing takes time. */
  async #setDueTimer(since: Date): Promise<void> {
    const { db, now, horizonMs, worker } = this.#options
    const nextAt = await findNextQueuedDueAt(db, since)
    const at = now().getTime()
    clearTimeout(this.#timers.get('due'))
    if (nextAt === undefined || nextAt - at > horizonMs) return
    const onDue = (): void => {
      worker.wake()
      this.#searchFor('all')
    }
    // One more millisecond: a timer may fire a fraction too early.
    this.#timers.set('due', setTimeout(onDue, Math.max(nextAt - at + 1, MIN_TIMER_MS)))
  }
}

/** Whether it is a first attempt that has been due for less than `minAgeMs`. One in the future, of
 *  a node whose clock is ahead, has been announced. */
function isAwaitingAnnouncement(
  { number, scheduledAt }: Attempt,
  at: Date,
  minAgeMs: number,
): boolean {
  const ageMs = at.getTime() - scheduledAt
  return number === 1 && ageMs >= 0 && ageMs < minAgeMs
}

function isDue({ scheduledAt }: Attempt, at: Date): boolean {
  return scheduledAt <= at.getTime()
}
