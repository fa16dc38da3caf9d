/** Brings planned attempts into the queue shortly before they are due, and again when the queue has lost them. On PostgreSQL one process does
 *  it for all, and another takes over when it dies: two would queue the same. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { notifyOtherNodes, transaction } from '../../records/database/transaction.ts'
import { ATTEMPTS_QUEUED, type PlannedAttempt } from '../../records/due-work.ts'
import { holdLease, releaseLease } from '../../records/leases.ts'
import {
  countQueued,
  findNextQueuedDueAt,
  listOverdueQueued,
  listStillPlanned,
  listUnqueued,
  listUnqueuedOfEach,
  markNoneQueued,
  markQueued,
  planStuckInOrder,
} from '../../records/planned-attempts.ts'
import { queueQuota, selectWithinQuota, webhooksAtQuota } from '../policy/fairness.ts'
import type { Queue } from '../queue/queue.ts'
import { wakeable } from './wakeable.ts'

export interface Dispatcher {
  /** Attempts were planned: these, or it is to be looked which. */
  wake(planned?: PlannedAttempt[]): void
  /** The queue may have room: attempts of a webhook that had enough in it may follow. */
  refill(): void
  /** The queue was emptied: what it had is to be queued again. */
  refillAll(): void
  /** Their attempts are settled. */
  forget(deliveryIds: string[]): void
  stop(): Promise<void>
}

export interface DispatcherOptions {
  db: Db
  queue: Queue
  horizonMs: number
  now: () => Date
  log: Logger
  /** Does this process hold an attempt of the delivery? Then it will say when that is settled. */
  isHeld: (deliveryId: string) => boolean
  /** Called when the queue has attempts that are due. */
  onDue: () => void
}

const BATCH = 1_000
/** Finds what other processes have planned: on SQLite a command beside the server, which can wake nobody. */
const SWEEP_MS = 500
const REPAIR_MS = 5_000
/** A job is looked for when it was queued this long ago and is overdue this much. */
const REPAIR_QUEUED_MS = 15_000
const REPAIR_OVERDUE_MS = 5_000
const REPAIR_BATCH = 500
const REFILL_MS = 100
/** How often it is asked what others have settled, when that was nothing for a while. */
const ALONE_MS = 1_000
const A_WHILE_MS = 5_000
/** The timer for the next due time runs at most this often. */
const TIMER_MS = 5
/** Due attempts that are in the queue and not settled for so long are noted to be there, and so are any beyond so many. */
const NOTE_MS = 1_000
const UNNOTED = 8_192
const LEASE = 'dispatch'
const LEASE_MS = 4_000
const RENEWAL_MS = 1_000
/** About as long as it takes to queue what was planned. */
const FOLLOW_MS = 20

export async function startDispatcher({
  db,
  queue,
  horizonMs,
  now,
  log,
  isHeld,
  onDue,
}: DispatcherOptions): Promise<Dispatcher> {
  let isEmptied = db.dialect === 'sqlite'
  /** Due attempts that this process has queued and not noted in the records: nearly all are settled before that would be done. */
  const unnoted = new Map<string, { planned: PlannedAttempt; queuedAt: number }>()
  /** Due attempts of each webhook in the queue, as of the last look, and the part that each may have. */
  let queued = new Map<string, number>()
  /** What this process has just planned itself, which need not be looked for. */
  let handed: PlannedAttempt[] = []
  let mustLook = true
  let part = queueQuota(0)
  /** When it was last asked what others have settled, and when that was last anything. */
  let forgotAt = Number.NEGATIVE_INFINITY
  let othersAt = Number.NEGATIVE_INFINITY
  let crowded = new Set<string>()
  let crowdedAt = 0
  let refilling: NodeJS.Timeout | undefined
  let repairedAt = performance.now()
  let timer: NodeJS.Timeout | undefined
  const holder = randomUUID()
  let follow: NodeJS.Timeout | undefined
  let leads = db.dialect === 'sqlite'
  let asking: Promise<void> | undefined
  let askedAt = Number.NEGATIVE_INFINITY

  const loop = wakeable(
    async () => {
      if (!(await isLeader())) {
        handed = []
        // The one that leads may have no place for what was planned.
        follow ??= setTimeout(() => {
          follow = undefined
          onDue()
        }, FOLLOW_MS)
        return setTimer()
      }
      if (isEmptied) await forgetQueued()
      await queueHanded()
      if (!mustLook) return
      mustLook = false
      if (crowded.size > 0) await findCrowded()
      while (await queueRound()) await findCrowded()
      const were = crowded.size
      if (performance.now() - crowdedAt >= SWEEP_MS) await findCrowded()
      // What still waits of them comes before what is handed over.
      if (crowded.size < were) look()
      // Nobody tells what others settle.
      if (!isAlone()) refill()
      await setTimer()
      // What was planned just now need not wait for what can wait.
      await note(performance.now() - NOTE_MS)
      // Of the clock that nobody sets: the other may go back by an hour.
      if (performance.now() - repairedAt >= REPAIR_MS) await repair()
    },
    (error) => log.warn({ err: error }, 'planned attempts could not be queued, and will be soon'),
  )
  const look = (): void => {
    mustLook = true
    loop.wake()
  }
  const sweep = setInterval(look, SWEEP_MS)

  async function forgetQueued(): Promise<void> {
    await markNoneQueued(db)
    unnoted.clear()
    isEmptied = false
  }

  async function isLeader(): Promise<boolean> {
    const age = performance.now() - askedAt
    if (db.dialect === 'sqlite' || age < RENEWAL_MS) return leads
    asking ??= askLease().finally(() => {
      asking = undefined
    })
    // Nothing waits for a renewal in good time, which waits for the disk.
    if (leads && age < LEASE_MS / 2) {
      asking.catch(() => undefined)
      return true
    }
    await asking
    return leads
  }

  async function askLease(): Promise<void> {
    const askingAt = performance.now()
    try {
      leads = await holdLease(db, LEASE, holder, LEASE_MS)
      askedAt = askingAt
    } catch (error) {
      leads = false
      throw error
    } finally {
      // Whoever leads now finds them in the records.
      if (!leads) unnoted.clear()
    }
  }

  /** Queued twice, or by two processes, is queued once. True: there may be more. */
  async function queueRound(): Promise<boolean> {
    const at = now()
    const until = new Date(at.getTime() + horizonMs)
    const isFull = crowded.size > 0
    const listed = isFull
      ? await listUnqueuedOfEach(db, until, [...unnoted.keys()], part, queued)
      : await listUnqueued(db, until, [...unnoted.keys()], BATCH)
    if (listed.length === 0) return false
    const planned = takeQuota(listed, at.getTime())
    const [due, later] = partition(planned, ({ dueAt }) => dueAt <= at.getTime())
    await queue.add(planned, at)
    await areQueued(due)
    if (later.length > 0) await transaction(db, (trx) => markQueued(trx, later, at))
    // What is due later takes no room: behind it there may be others.
    return isFull ? later.length > 0 : listed.length === BATCH || planned.length < listed.length
  }

  /** The same without a look. What has no room, or waits behind others of its webhook, is found by one. */
  async function queueHanded(): Promise<void> {
    const at = now()
    const planned = handed.filter((attempt) => !unnoted.has(attempt.deliveryId))
    handed = []
    if (planned.length === 0) return
    const due = takeQuota(
      planned.filter(({ webhookId, dueAt }) => !crowded.has(webhookId) && dueAt <= at.getTime()),
      at.getTime(),
    )
    if (due.length < planned.length) mustLook = true
    await queue.add(due, at)
    await areQueued(due)
  }

  async function areQueued(due: PlannedAttempt[]): Promise<void> {
    for (const attempt of due)
      unnoted.set(attempt.deliveryId, { planned: attempt, queuedAt: performance.now() })
    if (due.length > 0) onDue()
    // Whoever had nothing left to claim sleeps.
    if (due.length > 0 && !isAlone()) await notifyOtherNodes(db, ATTEMPTS_QUEUED)
    if (unnoted.size > UNNOTED) await note(performance.now())
  }

  /** Notes what was queued until then. */
  async function note(until: number): Promise<void> {
    const entries = [...unnoted.values()].filter(({ queuedAt }) => queuedAt <= until)
    if (entries.length === 0) return
    const planned = entries.map((entry) => entry.planned)
    await transaction(db, (trx) => markQueued(trx, planned, now()))
    for (const entry of entries)
      if (unnoted.get(entry.planned.deliveryId) === entry) unnoted.delete(entry.planned.deliveryId)
  }

  /** Jobs vanish when the queue's tables do, or when a process is killed between the queue and the records. */
  async function repair(): Promise<void> {
    const at = now()
    repairedAt = performance.now()
    await planStuckInOrder(db, at, REPAIR_BATCH).catch((error: unknown) =>
      log.warn({ err: error }, 'an order could not be looked after, and will be soon'),
    )
    const overdueAt = new Date(at.getTime() - REPAIR_OVERDUE_MS)
    const overdue = await listOverdueQueued(
      db,
      overdueAt,
      new Date(at.getTime() - REPAIR_QUEUED_MS),
      REPAIR_BATCH,
    )
    if (overdue.length === 0) return
    await queue.add(overdue, at)
    await transaction(db, (trx) => markQueued(trx, overdue, at))
    onDue()
  }

  /** The webhooks that have their part of the queue wait. */
  async function findCrowded(): Promise<void> {
    crowdedAt = performance.now()
    if (db.dialect === 'postgres') await forgetSettled()
    queued = await countQueued(db, now())
    for (const { planned } of unnoted.values())
      queued.set(planned.webhookId, (queued.get(planned.webhookId) ?? 0) + 1)
    part = queueQuota(queued.size)
    crowded = webhooksAtQuota(queued, part)
  }

  function takeQuota(attempts: PlannedAttempt[], at: number): PlannedAttempt[] {
    const selected = selectWithinQuota(attempts, queued, part, at)
    for (const { webhookId, dueAt } of selected)
      if (dueAt <= at) queued.set(webhookId, (queued.get(webhookId) ?? 0) + 1)
    return selected
  }

  /** What other processes have settled. */
  async function forgetSettled(): Promise<void> {
    if (crowded.size === 0 || (isAlone() && performance.now() - forgotAt < ALONE_MS)) return
    const ofOthers = [...unnoted.values()]
      .map((entry) => entry.planned)
      .filter(({ deliveryId }) => !isHeld(deliveryId))
    const left = await listStillPlanned(db, ofOthers)
    forgotAt = performance.now()
    // Its own may have been claimed and settled meanwhile.
    const settled = ofOthers.filter(
      ({ deliveryId }) => !left.has(deliveryId) && unnoted.has(deliveryId) && !isHeld(deliveryId),
    )
    if (settled.length > 0) othersAt = forgotAt
    for (const { deliveryId } of settled) unnoted.delete(deliveryId)
  }

  const isAlone = (): boolean => performance.now() - othersAt > A_WHILE_MS

  /** Looks again, in a moment, whether attempts of crowded webhooks may follow. */
  function refill(): void {
    if (crowded.size === 0) return
    refilling ??= setTimeout(
      () => {
        refilling = undefined
        look()
      },
      Math.max(0, crowdedAt + REFILL_MS - performance.now()),
    )
  }

  async function setTimer(): Promise<void> {
    const at = now().getTime()
    const dueAt = await findNextQueuedDueAt(db, new Date(at))
    clearTimeout(timer)
    if (dueAt === undefined || dueAt - at > horizonMs) return
    // One more millisecond: timers may be early by a part of one.
    timer = setTimeout(
      () => {
        onDue()
        look()
      },
      Math.max(dueAt - at + 1, TIMER_MS),
    )
  }

  if (isEmptied) await forgetQueued()
  look()
  return {
    wake(planned) {
      if (planned === undefined || handed.length + planned.length > BATCH) return look()
      handed.push(...planned)
      loop.wake()
    },
    refillAll() {
      isEmptied = true
      look()
    },
    refill,
    forget(deliveryIds) {
      for (const id of deliveryIds) unnoted.delete(id)
    },
    async stop() {
      clearInterval(sweep)
      await loop.stop()
      await asking?.catch(() => undefined)
      clearTimeout(refilling)
      clearTimeout(timer)
      clearTimeout(follow)
      if (leads && db.dialect === 'postgres')
        await releaseLease(db, LEASE, holder).catch(() => undefined)
    },
  }
}

function partition<T>(items: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  const parts = Object.groupBy(items, (item) => (isFirst(item) ? 'first' : 'second'))
  return [parts.first ?? [], parts.second ?? []]
}
