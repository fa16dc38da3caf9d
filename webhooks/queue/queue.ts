/** The queue. It holds nothing of its own: everything in it can be rebuilt from the records. */
import type { Logger } from 'pino'
import { AttemptJobs } from './attempt-jobs.ts'
import {
  type BackgroundJobs,
  type BackgroundQueue,
  startBackgroundQueue,
} from './background-jobs.ts'
import { type BossOptions, startBoss } from './boss.ts'
import { Listener } from './listener.ts'
import type { RunningPglite } from './pglite.ts'

export interface Queue {
  attempts: AttemptJobs
  /** How often embedded PostgreSQL has restarted. Each time the queue is empty. */
  restarts(): number
  /** Creates a queue for background work and runs its jobs. */
  work(name: string, run: BackgroundJobs['run']): Promise<BackgroundQueue>
  /** Calls `onNotify` with the payload of each NOTIFY of a channel, and without one after each
   *  reconnection. */
  listen(channel: string, onNotify: (payload?: string) => void): Promise<void>
  /** Whether notifications arrive. Undefined when `listen` was not called. */
  isListening(): Promise<boolean | undefined>
  isReady(): Promise<boolean>
  stop(graceMs: number): Promise<void>
}

export interface QueueOptions extends BossOptions {
  /** The longest time of one attempt. */
  attemptTimeoutMs: number
}

/** PGlite runs neither autovacuum nor checkpoints; without these two statements it grows with every
 *  delivery, and slowly by the rounds of pg-boss even without deliveries. */
const VACUUM = ['vacuum pgboss.job_common', 'checkpoint']
const VACUUM_AFTER_JOBS = 10_000
const VACUUM_INTERVAL_MS = 60_000

export async function startQueue(options: QueueOptions): Promise<Queue> {
  const { attemptTimeoutMs, log } = options
  const boss = await startBoss(options)
  const vacuum = boss.embedded && startVacuum(boss.embedded, log)
  const attempts = new AttemptJobs(boss, (count) => vacuum?.countCompleted(count))
  const stopping = new AbortController()
  let listener: Listener | undefined
  try {
    await attempts.createQueue(attemptTimeoutMs)
  } catch (error) {
    vacuum?.stop()
    await boss.stop(0).catch(() => undefined)
    throw error
  }
  return {
    attempts,
    restarts: () => boss.embedded?.restarts() ?? 0,
    work: (name, run) => startBackgroundQueue(boss, name, run, stopping.signal, log),
    async listen(channel, onNotify) {
      listener = new Listener(boss.jobs.getDb(), channel)
      await listener.start(onNotify)
    },
    isListening: async () => listener?.isConnected(),
    async isReady() {
      await boss.jobs.getDb().executeSql('select 1')
      return true
    },
    async stop(graceMs) {
      stopping.abort()
      vacuum?.stop()
      await listener?.stop()
      await boss.stop(graceMs)
    },
  }
}

function startVacuum(
  embedded: RunningPglite,
  log: Logger,
): { countCompleted(count: number): void; stop(): void } {
  let completed = 0
  const run = (): void => {
    completed = 0
    for (const statement of VACUUM)
      embedded
        .exec(statement)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'The embedded queue could not be vacuumed'),
        )
  }
  const timer = setInterval(run, VACUUM_INTERVAL_MS)
  return {
    countCompleted(count) {
      completed += count
      if (completed >= VACUUM_AFTER_JOBS) run()
    },
    stop: () => clearInterval(timer),
  }
}
