/** Adds scheduled attempts to the queue shortly before they are due. Runs only in the leader. */
import type { Logger } from 'pino'
import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { ATTEMPTS_QUEUED } from '../../records/due-work.ts'
import {
  clearQueuedMarks,
  countQueued,
  findNextQueuedDueAt,
  listUnqueued,
  listUnqueuedWithinQuota,
  markQueued,
} from '../../records/scheduled-attempts.ts'
import { freeQuota, type QueueUse, type Selected, selectWithinQuota } from '../policy/fairness.ts'
import type { Queue } from '../queue/queue.ts'
import { RunLoop } from '../run-loop.ts'
import type { InFlight } from './in-flight.ts'
import { Leader } from './leader.ts'
import { Peers } from './peers.ts'
import { Realignment } from './realign.ts'
import { repair } from './repair.ts'
import type { Worker } from './worker.ts'
import { Workers } from './workers.ts'

export interface EnqueueOptions {
  db: Db
  queue: Queue
  inFlight: InFlight
  worker: Worker
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

/** The due attempts in the queue, as of the last count. */
interface QueueFill {
  /** By webhook ID, by account ID. */
  counts: Map<string, Map<string, number>>
  /** Webhooks that have reached their quota. */
  full: ReadonlySet<string>
  countedAtMs: number
}

export class Enqueuer {
  readonly #options: EnqueueOptions
  readonly #leader: Leader
  readonly #peers: Peers
  readonly #realignment: Realignment
  /** Undefined: workers have no sessions. */
  readonly #workers: Workers | undefined
  /** Without sessions, other workers could lease the jobs that this process adds for its attempts
   *  in flight. */
  readonly #mayStartAtOnce: boolean
  readonly #loop: RunLoop
  readonly #timers = new Map<'sweep' | 'refill' | 'due' | 'lease', NodeJS.Timeout>()
  /** Attempts that this process has just scheduled: they need no query. */
  #announced: Attempt[] = []
  #mustQuery = true
  #mustSweep = false
  #fill: QueueFill = { counts: new Map(), full: new Set(), countedAtMs: Number.NEGATIVE_INFINITY }
  #repairedAtMs = performance.now()
  /** The value of `queue.restarts()` for which the queued marks were last cleared. */
  #knownRestarts: number

  constructor(options: EnqueueOptions) {
    this.#options = options
    const { db, queue, inFlight, log } = options
    this.#leader = new Leader(db, queue.session, inFlight)
    this.#peers = new Peers(db, inFlight)
    this.#realignment = new Realignment(options)
    this.#workers = queue.session && new Workers({ db, jobs: queue.attempts, log })
    this.#mayStartAtOnce = db.dialect === 'sqlite' || queue.session !== undefined
    this.#knownRestarts = db.dialect === 'sqlite' ? -1 : 0
    this.#loop = new RunLoop(
      () => this.#run(),
      (error) => log.warn({ err: error }, 'Attempts could not be enqueued; trying again'),
    )
    this.#timers.set(
      'sweep',
      setInterval(() => this.#sweep(), SWEEP_MS),
    )
  }

  get isLeader(): boolean {
    return this.#leader.isLeader
  }

  async start(): Promise<void> {
    await this.#forgetLostJobs()
    this.#query()
  }

  /** Attempts were scheduled. Without a list, queries for them. Returns true in the leader: only it
   *  needs to know. */
  readonly onScheduled = (attempts?: Attempt[]): boolean => {
    if (!attempts || this.#announced.length + attempts.length > BATCH_SIZE) this.#mustQuery = true
    else this.#announced.push(...attempts)
    this.#loop.wake()
    return this.isLeader
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    await this.#realignment.stop()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    const { inFlight, worker, log } = this.#options
    // The next leader enqueues each attempt without a job.
    await worker.addJobs(inFlight.listWithoutJob()).catch((error: unknown) => {
      log.warn({ err: error }, 'The jobs of attempts in flight could not be added')
    })
    await this.#leader.stop()
  }

  #query(): void {
    this.#mustQuery = true
    this.#loop.wake()
  }

  #sweep(): void {
    this.#mustSweep = true
    this.#loop.wake()
  }

  async #run(): Promise<void> {
    if (!(await this.#leader.ensureLeadership())) {
      this.#announced = []
      this.#realignment.restart()
      this.#leaseSoon()
      return this.#setDueTimer(this.#options.now())
    }
    await this.#forgetLostJobs()
    await this.#enqueueAnnounced()
    if (!this.#mustQuery && !this.#mustSweep) return
    const minAgeMs = this.#mustQuery ? 0 : ANNOUNCED_WITHIN_MS
    this.#mustQuery = false
    this.#mustSweep = false
    const startedAt = this.#options.now()
    // First, because they count towards the concurrency limits of their webhooks.
    await this.#releaseEnded()
    await this.#enqueueBacklog(minAgeMs)
    await this.#setDueTimer(startedAt)
    // Last, so that they do not delay attempts that are due.
    await this.#mark(performance.now() - MARK_AFTER_MS)
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
    const { db, queue, inFlight } = this.#options
    const restarts = queue.restarts()
    if (restarts === this.#knownRestarts) return
    await clearQueuedMarks(db)
    inFlight.unmarked.clear()
    this.#knownRestarts = restarts
    this.#mustQuery = true
  }

  async #enqueueAnnounced(): Promise<void> {
    const { inFlight, now, worker } = this.#options
    const at = now()
    const announced = this.#announced.filter(({ deliveryId }) => !inFlight.unmarked.has(deliveryId))
    this.#announced = []
    const due = announced.filter(
      (attempt) => isDue(attempt, at) && !this.#fill.full.has(attempt.webhookId),
    )
    const mustWait = this.#mayStartAtOnce ? await worker.startAtOnce(due) : due
    const selected = this.#takeQuota(mustWait, at)
    // The rest are not due yet, or must wait behind the backlog of their webhook.
    const rest = announced.length - due.length + mustWait.length - selected.attempts.length
    if (rest > 0) this.#mustQuery = true
    if (selected.attempts.length === 0) return
    await this.#enqueue(selected, at)
    // Then the next announced attempts can start at once: these are not in the queue any more.
    await worker.leaseNow()
  }

  /** `minAgeMs`: see `isAwaitingAnnouncement`. */
  async #enqueueBacklog(minAgeMs: number): Promise<void> {
    if (this.#fill.full.size > 0) await this.#countQueued()
    while (await this.#enqueueBatch(minAgeMs)) await this.#countQueued()
    const fullBefore = this.#fill.full.size
    if (performance.now() - this.#fill.countedAtMs >= SWEEP_MS) await this.#countQueued()
    // Queue the backlog of webhooks that just fell below their quota before newly scheduled
    // attempts.
    if (this.#fill.full.size < fullBefore) this.#query()
    this.#refillLater()
  }

  /** Returns whether there may be more. Adding an attempt twice, or in two processes, is
   *  harmless. */
  async #enqueueBatch(minAgeMs: number): Promise<boolean> {
    const { db, inFlight, horizonMs, now } = this.#options
    const at = now()
    const until = new Date(at.getTime() + horizonMs)
    const { full } = this.#fill
    const skip = [
      ...inFlight.unmarked.deliveryIds(),
      ...inFlight.listWithoutJob().map(({ deliveryId }) => deliveryId),
    ]
    const hasFull = full.size > 0
    const free = { byWebhook: freeQuota(this.#queueUse), ofOthers: FIRST_PART }
    const listed = hasFull
      ? await listUnqueuedWithinQuota(db, until, skip, free)
      : await listUnqueued(db, until, skip, BATCH_SIZE)
    const announced = new Set(this.#announced.map(({ deliveryId }) => deliveryId))
    const backlog = listed.filter(
      (attempt) =>
        !announced.has(attempt.deliveryId) && !isAwaitingAnnouncement(attempt, at, minAgeMs),
    )
    if (backlog.length === 0) return false
    const selected = this.#takeQuota(backlog, at)
    const later = selected.attempts.filter((attempt) => !isDue(attempt, at))
    await this.#enqueue(selected, at)
    if (later.length > 0) await transaction(db, (trx) => markQueued(trx, later, at))
    // Later attempts take no quota, so there may be others behind them.
    if (hasFull) return later.length > 0
    return backlog.length === BATCH_SIZE || selected.attempts.length < backlog.length
  }

  async #enqueue({ attempts, urgent }: Selected<Attempt>, at: Date): Promise<void> {
    const { db, queue, inFlight, worker } = this.#options
    // First: pg-boss counts the attempts of a webhook by their jobs, when another worker leases the
    // new ones.
    if (attempts.length > 0) await worker.addJobs()
    await queue.attempts.add(attempts, at, urgent)
    const due = attempts.filter((attempt) => isDue(attempt, at))
    inFlight.unmarked.add(due)
    if (due.length > 0) {
      if (urgent.size > 0) worker.onUrgent()
      else worker.wake()
      // Wake workers that found the queue empty.
      db.notifyOtherNodes(ATTEMPTS_QUEUED.name)
    }
    if (inFlight.unmarked.size > MAX_UNMARKED) await this.#mark(performance.now())
  }

  /** Marks in the records what was enqueued up to `untilMs`. */
  async #mark(untilMs: number): Promise<void> {
    const { db, inFlight, now } = this.#options
    const attempts = inFlight.unmarked.list(untilMs)
    if (attempts.length === 0) return
    await transaction(db, (trx) => markQueued(trx, attempts, now()))
    inFlight.unmarked.remove(attempts)
    for (const { webhookId } of attempts) inFlight.marked?.add(webhookId)
  }

  async #releaseEnded(): Promise<void> {
    const { db, worker, log } = this.#options
    const released = await this.#workers?.releaseAttempts().catch((error: unknown) => {
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

  async #countQueued(): Promise<void> {
    const { db, inFlight, now } = this.#options
    const countedAtMs = performance.now()
    if (this.#fill.full.size > 0) await this.#peers.removeFinished()
    const counts: QueueFill['counts'] = new Map()
    const queued = await countQueued(db, now())
    for (const ofWebhook of queued) addCount(counts, ofWebhook, ofWebhook.count)
    inFlight.marked = new Set(queued.map(({ webhookId }) => webhookId))
    for (const attempt of inFlight.unmarked.list()) addCount(counts, attempt, 1)
    this.#fill = { counts, full: new Set(), countedAtMs }
    const full = [...freeQuota(this.#queueUse)].filter(([, free]) => free <= 0)
    this.#fill.full = new Set(full.map(([webhookId]) => webhookId))
  }

  get #queueUse(): QueueUse {
    return { accounts: this.#fill.counts, workers: this.#workers?.liveCount ?? 1 }
  }

  /** Selects the attempts that fit, and counts them. */
  #takeQuota(attempts: Attempt[], at: Date): Selected<Attempt> {
    const selected = selectWithinQuota(attempts, this.#queueUse, at.getTime())
    for (const attempt of selected.attempts)
      if (isDue(attempt, at)) addCount(this.#fill.counts, attempt, 1)
    return selected
  }

  /** Queries again once attempts may have left the queue, while a webhook is at its quota. */
  #refillLater(): void {
    clearTimeout(this.#timers.get('refill'))
    if (this.#fill.full.size === 0) return
    const { inFlight } = this.#options
    const leasedCount = inFlight.leasedCount
    const refill = (): void => {
      if (inFlight.leasedCount > leasedCount || this.#peers.areActive) this.#query()
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
      this.#query()
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

function addCount(
  counts: QueueFill['counts'],
  { accountId, webhookId }: Pick<Attempt, 'accountId' | 'webhookId'>,
  count: number,
): void {
  const webhooks = counts.get(accountId) ?? new Map<string, number>()
  webhooks.set(webhookId, (webhooks.get(webhookId) ?? 0) + count)
  counts.set(accountId, webhooks)
}
