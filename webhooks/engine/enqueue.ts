/** Adds scheduled attempts to the queue shortly before they are due. Only the enqueuer of the
 *  leader adds them. In other processes, the enqueuer wakes the leaser when attempts are due. */
import type { Logger } from 'pino'
import type { Attempt } from '../../records/attempt.ts'
import type { Db } from '../../records/database/open.ts'
import { ATTEMPTS_QUEUED } from '../../records/due-work.ts'
import { clearQueuedMarks, findNextQueuedDueAt } from '../../records/scheduled-attempts.ts'
import { RunLoop } from '../../runtime/run-loop.ts'
import type { Turns } from '../../runtime/turns.ts'
import type { Queue } from '../queue/queue.ts'
import { Backlog, isDue } from './backlog.ts'
import { type ImmediateAttempts, START_PAUSE_MS } from './immediate-attempts.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import type { Leaser } from './leaser.ts'
import type { QueueLedger } from './queue-ledger.ts'
import { Realignment } from './realign.ts'
import { repair } from './repair.ts'
import { ResultPoll } from './result-poll.ts'
import type { WorkerSessions } from './worker-sessions.ts'

interface EnqueueOptions {
  db: Db
  queue: Queue
  leader: Leader
  ledger: QueueLedger
  inFlight: InFlight
  leaser: Leaser
  immediate: ImmediateAttempts
  leaseTurns: Turns
  /** Undefined: workers have no sessions, as with the embedded queue. */
  workerSessions: WorkerSessions | undefined
  /** How far ahead attempts are enqueued. Later ones stay in the records. */
  horizonMs: number
  /** The delays before attempts 2, 3 and so on. `Realignment` reschedules attempts that are
   *  scheduled later than these delays allow. */
  delaysMs: number[]
  now: () => Date
  log: Logger
}

/** With more announced attempts, a search of the records is cheaper. */
const MAX_ANNOUNCED = 1_000
/** How often the records are searched for attempts that nobody has announced: on SQLite a CLI
 *  command in another process cannot notify the server. */
const SWEEP_MS = 500
/** A first attempt that has been due for less than this may still be announced: the announcement
 *  follows the commit. */
const ANNOUNCED_WITHIN_MS = 250
const REPAIR_MS = 5_000
/** While a webhook is at its quota: how often to look whether attempts have left the queue. */
const REFILL_MS = 100
/** Minimum delay of the timer for the next queued attempt. */
const MIN_TIMER_MS = 5
/** Attempts that are in the queue for longer are marked in the records: see `QueueLedger`. */
const MARK_AFTER_MS = 1_000
/** About the time that the leader takes to enqueue announced attempts. */
const LEADER_ENQUEUE_MS = 20

/** Which attempts the next run looks for in the records. `overdue`: all except first attempts that
 *  may still be announced. */
type Search = 'none' | 'overdue' | 'all'

export class Enqueuer {
  readonly #options: EnqueueOptions
  readonly #resultPoll: ResultPoll
  readonly #backlog: Backlog
  readonly #realignment: Realignment
  readonly #loop: RunLoop
  readonly #timers = new Map<'sweep' | 'refill' | 'due' | 'lease' | 'later', NodeJS.Timeout>()
  /** Attempts that this process has just scheduled: they need no search. */
  #announced: Attempt[] = []
  #search: Search = 'all'
  #repairedAtMs = performance.now()
  /** The value of `queue.restarts()` for which the queued marks were last cleared. */
  #knownRestarts: number

  constructor(options: EnqueueOptions) {
    this.#options = options
    const { db, queue, inFlight, ledger, leaser, immediate, leaseTurns, log } = options
    const { horizonMs, delaysMs, now } = options
    const resultPoll = new ResultPoll(db, inFlight, ledger)
    this.#resultPoll = resultPoll
    this.#backlog = new Backlog({
      db,
      queue,
      ledger,
      inFlight,
      leaser,
      immediate,
      resultPoll,
      leaseTurns,
      horizonMs,
      now,
    })
    this.#realignment = new Realignment({ db, queue, delaysMs, now, log })
    // An embedded queue is empty when this process starts, as after a restart of the queue.
    this.#knownRestarts = db.dialect === 'sqlite' ? -1 : 0
    this.#loop = new RunLoop(
      () => this.#run(),
      (error) => log.warn({ err: error }, 'Attempts could not be enqueued; trying again'),
    )
    this.#timers.set(
      'sweep',
      setInterval(() => this.#searchFor('overdue'), SWEEP_MS),
    )
  }

  async start(): Promise<void> {
    await this.#forgetLostJobs()
    this.#searchFor('all')
  }

  /** Call this when attempts were scheduled. Without a list, or with too many, the records are
   *  searched for them. Returns whether this process is the leader: then no other process needs to
   *  be notified. */
  readonly onScheduled = (attempts?: Attempt[]): boolean => {
    if (attempts && this.#announced.length + attempts.length <= MAX_ANNOUNCED) {
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
      log.warn({ err: error }, 'Attempts in flight could not be handed over to the next leader')
    })
    await leader.stop()
  }

  #searchFor(search: 'overdue' | 'all'): void {
    if (this.#search !== 'all') this.#search = search
    this.#loop.wake()
  }

  async #run(): Promise<void> {
    const { leader, ledger, now } = this.#options
    if (!(await leader.ensureLeadership())) {
      this.#announced = []
      this.#realignment.forgetLastRun()
      this.#leaseSoon()
      return this.#setDueTimer(now())
    }
    await this.#forgetLostJobs()
    await this.#enqueueAnnounced()
    const search = this.#search
    if (search === 'none') return
    this.#search = 'none'
    const startedAt = now()
    // First, because the attempts of ended workers count towards the concurrency limits of their
    // webhooks.
    await this.#releaseAttemptsOfEndedWorkers()
    await this.#enqueueBacklog(search)
    await this.#setDueTimer(startedAt)
    // Queued marks and `#repair` come last, so that they do not delay attempts that are due.
    await ledger.mark(performance.now() - MARK_AFTER_MS)
    await this.#repair()
  }

  /** Wakes the leaser of this process when the leader has probably enqueued the announced attempts:
   *  the leader may have no free slots for them. */
  #leaseSoon(): void {
    if (this.#timers.has('lease')) return
    const lease = (): void => {
      this.#timers.delete('lease')
      this.#options.leaser.wake()
    }
    this.#timers.set('lease', setTimeout(lease, LEADER_ENQUEUE_MS))
  }

  /** Clears the queued marks when an embedded queue has lost its jobs, at a start or restart. */
  async #forgetLostJobs(): Promise<void> {
    const { db, queue, ledger } = this.#options
    const restarts = queue.restarts()
    if (restarts === this.#knownRestarts) return
    await clearQueuedMarks(db)
    ledger.forget()
    this.#knownRestarts = restarts
    this.#search = 'all'
  }

  /** Starts the announced attempts that can start at once, and enqueues other due ones within the
   *  quotas of their webhooks. `#run` then searches the records for the remaining ones. */
  async #enqueueAnnounced(): Promise<void> {
    const { ledger, immediate, now, leaser } = this.#options
    const at = now()
    const announced = this.#announced.filter(({ deliveryId }) => !ledger.isUnmarked(deliveryId))
    this.#announced = []
    const due = announced.filter((attempt) => isDue(attempt, at))
    const belowQuota = due.filter(({ webhookId }) => !ledger.full.has(webhookId))
    const notStarted = await immediate.start(belowQuota, at)
    this.#announceAgain(notStarted.later)
    const selected = ledger.takeQuota(notStarted.attempts, at)
    const hasRemaining =
      belowQuota.length < announced.length || selected.attempts.length < notStarted.attempts.length
    if (hasRemaining) this.#search = 'all'
    if (selected.attempts.length === 0) return
    await this.#backlog.enqueue(selected, at)
    // The next announced attempts of a webhook cannot start at once while it has attempts in the
    // queue.
    await leaser.leaseNow()
  }

  /** The next announcement, or a timer, tries again to start these. */
  #announceAgain(attempts: Attempt[]): void {
    clearTimeout(this.#timers.get('later'))
    if (attempts.length === 0) return
    this.#announced.unshift(...attempts)
    this.#timers.set('later', setTimeout(this.#loop.wake, START_PAUSE_MS))
  }

  async #enqueueBacklog(search: Search): Promise<void> {
    const minAgeMs = search === 'all' ? 0 : ANNOUNCED_WITHIN_MS
    const mayAddMore = await this.#backlog.enqueueAll((listed, at) => {
      const announced = new Set(this.#announced.map(({ deliveryId }) => deliveryId))
      return listed.filter(
        (attempt) =>
          !announced.has(attempt.deliveryId) && !isAwaitingAnnouncement(attempt, at, minAgeMs),
      )
    })
    // Webhooks that have fallen below their quota may have more backlog.
    if (mayAddMore) this.#searchFor('all')
    this.#refillLater()
  }

  async #releaseAttemptsOfEndedWorkers(): Promise<void> {
    const { db, leaser, workerSessions, log } = this.#options
    const released = await workerSessions?.releaseAttempts().catch((error: unknown) => {
      // If no later `#run` releases these attempts, their leases expire.
      log.warn({ err: error }, 'The attempts of ended workers could not be released; trying again')
    })
    if (!released) return
    leaser.wake()
    db.notifyOtherNodes(ATTEMPTS_QUEUED.name)
  }

  async #repair(): Promise<void> {
    // By the monotonic clock: the time of `now` may jump.
    if (performance.now() - this.#repairedAtMs < REPAIR_MS) return
    this.#repairedAtMs = performance.now()
    const { db, queue, log, now, leaser } = this.#options
    this.#realignment.wake()
    const repaired = await repair({ db, jobs: queue.attempts, log }, now())
    if (repaired > 0) leaser.wake()
  }

  /** While a webhook is at its quota, searches again once attempts may have left the queue. */
  #refillLater(): void {
    const { inFlight, ledger } = this.#options
    clearTimeout(this.#timers.get('refill'))
    if (ledger.full.size === 0) return
    const leasedBefore = inFlight.leasedCount
    const refill = (): void => {
      if (inFlight.leasedCount > leasedBefore || this.#resultPoll.othersAreActive)
        this.#searchFor('all')
      else this.#refillLater()
    }
    this.#timers.set('refill', setTimeout(refill, REFILL_MS))
  }

  /** Sets a timer for the earliest queued attempt that is scheduled after `since`. When that
   *  attempt is due, wakes the leaser and searches again. The attempt may be due already: queueing
   *  takes time. */
  async #setDueTimer(since: Date): Promise<void> {
    const { db, now, horizonMs, leaser } = this.#options
    const nextAt = await findNextQueuedDueAt(db, since)
    const at = now().getTime()
    clearTimeout(this.#timers.get('due'))
    if (nextAt === undefined || nextAt - at > horizonMs) return
    const onDue = (): void => {
      leaser.wake()
      this.#searchFor('all')
    }
    // One more millisecond: a timer may fire a fraction too early.
    this.#timers.set('due', setTimeout(onDue, Math.max(nextAt - at + 1, MIN_TIMER_MS)))
  }
}

/** Whether this is a first attempt that has been due for less than `minAgeMs`. A first attempt in
 *  the future comes from a node whose clock is ahead, and has been announced. */
function isAwaitingAnnouncement(
  { number, scheduledAt }: Attempt,
  at: Date,
  minAgeMs: number,
): boolean {
  const ageMs = at.getTime() - scheduledAt
  return number === 1 && ageMs >= 0 && ageMs < minAgeMs
}
