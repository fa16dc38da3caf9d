/** Brings planned attempts into the queue shortly before they are due, and again when the queue has lost them. */
import type { Logger } from 'pino'
import { type Db, transaction } from '../records/db.ts'
import {
  findNextQueuedDueAt,
  listCrowdedWebhookIds,
  listOverdueQueued,
  listUnqueued,
  markNoneQueued,
  markQueued,
} from '../records/deliveries.ts'
import type { Queue } from './queue.ts'
import { wakeable } from './wakeable.ts'

export interface Dispatcher {
  /** Attempts were planned. */
  wake(): void
  /** The queue has room: attempts of a webhook that had too many in it may follow. */
  refill(): void
  stop(): Promise<void>
}

export interface DispatcherOptions {
  db: Db
  queue: Queue
  now: () => Date
  log: Logger
  /** Called when the queue has attempts that are due. */
  onDue: () => void
}

/** How far ahead attempts are queued. What is due later waits in the records, where it costs a fetch nothing. */
const HORIZON_MS = 5 * 60_000
const BATCH = 1_000
/** Finds what other processes have planned: on SQLite a command beside the server, which can wake nobody. */
const SWEEP_MS = 500
const REPAIR_MS = 5_000
/** A job is looked for when it was queued this long ago and is overdue this much. */
const REPAIR_QUEUED_MS = 15_000
const REPAIR_OVERDUE_MS = 5_000
const REPAIR_BATCH = 500
/** Due attempts of one webhook in the queue, about. More would only lengthen every fetch while its endpoint is slow. */
const CROWD = 4_000
const REFILL_MS = 100
/** The timer for the next due time runs at most this often. */
const TIMER_MS = 5

export async function startDispatcher({ db, queue, now, log, onDue }: DispatcherOptions): Promise<Dispatcher> {
  if (db.dialect === 'sqlite') await markNoneQueued(db)

  let crowded: string[] = []
  let crowdedAt = 0
  let repairedAt = now().getTime()
  let timer: NodeJS.Timeout | undefined

  const loop = wakeable(
    async () => {
      if (now().getTime() - repairedAt >= REPAIR_MS) await repair()
      while ((await queueRound()) === BATCH) await findCrowded()
      await setTimer()
    },
    (error) => log.warn({ err: error }, 'planned attempts could not be queued, and will be soon'),
  )
  const sweep = setInterval(loop.wake, SWEEP_MS)

  async function queueRound(): Promise<number> {
    const at = now()
    const planned = await listUnqueued(db.read, new Date(at.getTime() + HORIZON_MS), crowded, BATCH)
    if (planned.length === 0) return 0
    await queue.add(planned, at)
    if (planned.some(({ dueAt }) => dueAt <= at.getTime())) onDue()
    // After the announcement: the first POST need not wait for this. Queued twice, or by two processes, is queued once.
    await transaction(db, (trx) => markQueued(trx, planned, at))
    return planned.length
  }

  /** Jobs vanish when the queue's tables do, or when a process is killed between the queue and the records. */
  async function repair(): Promise<void> {
    const at = now()
    repairedAt = at.getTime()
    if (crowded.length > 0) await findCrowded()
    const overdueAt = new Date(at.getTime() - REPAIR_OVERDUE_MS)
    const overdue = await listOverdueQueued(db, overdueAt, new Date(at.getTime() - REPAIR_QUEUED_MS), REPAIR_BATCH)
    if (overdue.length === 0) return
    await queue.add(overdue, at)
    await transaction(db, (trx) => markQueued(trx, overdue, at))
    onDue()
  }

  async function findCrowded(): Promise<void> {
    crowdedAt = Date.now()
    crowded = await listCrowdedWebhookIds(db, CROWD, now())
  }

  async function setTimer(): Promise<void> {
    const at = now().getTime()
    const dueAt = await findNextQueuedDueAt(db, new Date(at))
    clearTimeout(timer)
    if (dueAt === undefined || dueAt - at > HORIZON_MS) return
    // One more millisecond: timers may be early by a part of one.
    timer = setTimeout(
      () => {
        onDue()
        loop.wake()
      },
      Math.max(dueAt - at + 1, TIMER_MS),
    )
  }

  loop.wake()
  return {
    wake: loop.wake,
    refill() {
      if (crowded.length === 0 || Date.now() - crowdedAt < REFILL_MS) return
      crowdedAt = Date.now()
      findCrowded().then(loop.wake, () => undefined)
    },
    async stop() {
      clearInterval(sweep)
      await loop.stop()
      clearTimeout(timer)
    },
  }
}
