/** The delivery engine: dispatch → queue → pump → settle. */
import type { Logger } from 'pino'
import type { Outcome } from '../../records/attempts.ts'
import { NOTIFY_CHANNEL } from '../../records/database/announcements.ts'
import type { Db } from '../../records/database/open.ts'
import type { DeliveryState } from '../../records/deliveries.ts'
import { ATTEMPTS_QUEUED, ATTEMPTS_SCHEDULED, JOBS_DUE } from '../../records/due-work.ts'
import { findOldestDueAt } from '../../records/planned-attempts.ts'
import { type BackgroundJobs, type Queue, type QueueBackend, startQueue } from '../queue/queue.ts'
import { type Cidr, guardedAgent } from '../transport/egress.ts'
import { secretOpener } from '../transport/secret.ts'
import { type Dispatcher, startDispatcher } from './dispatch.ts'
import { type Pump, startPump } from './pump.ts'
import { startSettler } from './settle.ts'
import { wakeable } from './wakeable.ts'

export type { BackgroundJobs } from '../queue/queue.ts'

export interface EngineConfig {
  /** Ranges that webhooks may reach although they are not public. */
  webhookAllowAddresses: Cidr[]
  /** Delays before attempts 2, 3 and so on, each counted from the end of the attempt before. */
  webhookRetryDelaysMs: number[]
  /** The longest that one attempt may take, from the start of connecting to the end of the body. */
  webhookTimeoutMs: number
  /** Encrypts webhook signing secrets at rest. */
  secretKey: string
}

export interface EngineOptions {
  db: Db
  /** Where PostgreSQL is, when the records are there. */
  databaseUrl?: string
  backend?: QueueBackend
  /** Where the embedded queue may keep what makes its next start quicker. */
  cacheDir?: string
  config: EngineConfig
  log: Logger
  now?: () => Date
  /** How far ahead attempts are queued. What is due later waits in the records, where it costs a fetch nothing. */
  horizonMs?: number
  /** Background work, each on a queue of its name. */
  jobs?: Record<string, BackgroundJobs>
}

export interface EngineStats {
  /** Attempts that this process holds: being sent, or their results not stored yet. */
  claimed: number
  /** Attempts made since the start. */
  outcomes: Record<Outcome, number>
  /** Deliveries that ended since the start. */
  ended: Pick<Record<DeliveryState, number>, 'delivered' | 'failed'>
}

export interface Engine {
  /** Can attempts be queued? Never throws. */
  ready(): Promise<boolean>
  /** Looks for due attempts and jobs now. Not needed after a transaction that announced them. */
  wake(): void
  stats(): EngineStats
  /** How long the attempt that waits longest has been due. 0: none waits. */
  oldestDueAgeMs(): Promise<number>
  /** Claims nothing more, lets what is under way finish for up to `graceMs`, stores its results and closes everything.
   *  What is unfinished stays in the records. */
  stop(graceMs: number): Promise<void>
}

const HORIZON_MS = 5 * 60_000
const JOBS_SWEEP_MS = 1_000
/** Kept of the grace for storing results and closing. */
const CLOSING_MS = 2_000

export async function startEngine(options: EngineOptions): Promise<Engine> {
  const {
    db,
    databaseUrl,
    backend,
    cacheDir,
    config,
    log,
    now = () => new Date(),
    horizonMs = HORIZON_MS,
    jobs = {},
  } = options
  let dispatcher: Dispatcher | undefined
  const queue = await startQueue({
    databaseUrl,
    backend,
    cacheDir,
    attemptTimeoutMs: config.webhookTimeoutMs,
    onEmptied: () => dispatcher?.refillAll(),
    log,
  })
  const agent = guardedAgent(config.webhookAllowAddresses)
  const ended = { delivered: 0, failed: 0 }

  const settler = startSettler({
    db,
    queue,
    delaysMs: config.webhookRetryDelaysMs,
    log,
    onStored(settled, plans) {
      const planned = plans.filter(({ nextAttemptAt }) => nextAttemptAt !== null)
      for (const { state } of plans) if (state === 'delivered' || state === 'failed') ended[state]++
      dispatcher?.forget(settled.map(({ claim }) => claim.planned.deliveryId))
      pump.free(settled)
      if (planned.length > 0) dispatcher?.wake()
    },
  })
  const pump: Pump = startPump({
    db,
    queue,
    agent,
    openSecret: secretOpener(config.secretKey),
    timeoutMs: config.webhookTimeoutMs,
    now,
    log,
    onSettled: settler.add,
    onClaimed: () => dispatcher?.refill(),
  })
  dispatcher = await startDispatcher({
    db,
    queue,
    horizonMs,
    now,
    log,
    isHeld: pump.isHeld,
    onDue: pump.wake,
  })
  const sweeps = await Promise.all(
    Object.entries(jobs).map(([name, work]) => sweepJobs({ queue, name, work, now, log })),
  )

  const wakeSweeps = (): void => {
    for (const sweep of sweeps) sweep.wake()
  }
  const subscriptions = [
    db.subscribe(ATTEMPTS_SCHEDULED, dispatcher.wake),
    db.subscribe(ATTEMPTS_QUEUED, pump.wake),
    db.subscribe(JOBS_DUE, wakeSweeps),
  ]
  if (databaseUrl !== undefined) await queue.listen(NOTIFY_CHANNEL, db.receiveNotification)
  pump.wake()

  return {
    ready: () => queue.isReady().catch(() => false),
    wake() {
      dispatcher?.wake()
      wakeSweeps()
    },
    stats: () => ({ ...pump.counts(), ended: { ...ended } }),
    async oldestDueAgeMs() {
      const dueAt = await findOldestDueAt(db)
      return dueAt === undefined ? 0 : Math.max(0, now().getTime() - dueAt)
    },
    async stop(graceMs) {
      const deadline = Date.now() + graceMs
      for (const unsubscribe of subscriptions) unsubscribe()
      await Promise.all([dispatcher.stop(), ...sweeps.map((sweep) => sweep.stop())])
      await pump.drain(Math.max(0, graceMs - CLOSING_MS))
      await settler.stop(Math.max(CLOSING_MS / 2, deadline - Date.now()))
      await pump.stop()
      // Whatever is still being sent is cut off here; its result would have nowhere to go.
      await agent.destroy()
      await queue.stop(Math.max(CLOSING_MS / 2, deadline - Date.now()))
    },
  }
}

interface JobsSweep {
  queue: Queue
  name: string
  work: BackgroundJobs
  now: () => Date
  log: Logger
}

/** Asks for what needs work, every second and whenever woken, and puts it on its queue. */
async function sweepJobs({
  queue,
  name,
  work,
  now,
  log,
}: JobsSweep): Promise<{ wake(): void; stop(): Promise<void> }> {
  const background = await queue.work(name, work.run)
  const loop = wakeable(
    async () => background.add(await work.due(now())),
    (error) =>
      log.warn(
        { err: error, queue: name },
        'work in the background could not be queued, and will be soon',
      ),
  )
  const timer = setInterval(loop.wake, JOBS_SWEEP_MS)
  loop.wake()
  return {
    wake: loop.wake,
    async stop() {
      clearInterval(timer)
      await loop.stop()
    },
  }
}
