/** The queue. It holds nothing of its own: everything in it can be rebuilt from the records. */

import type { PoolUse } from '../../records/database/knex-internals.ts'
import { AttemptJobs } from './attempt-jobs.ts'
import {
  type BackgroundJobs,
  type BackgroundQueue,
  startBackgroundQueue,
} from './background-jobs.ts'
import { type BossOptions, sessionClientFactory, startBoss } from './boss.ts'
import { Listener } from './listener.ts'
import { WorkerSession } from './session.ts'
import { startVacuum } from './vacuum.ts'

export interface Queue {
  attempts: AttemptJobs
  /** Undefined for an embedded queue: if this process dies, its leases end only when they expire. */
  session: Pick<WorkerSession, 'id'> | undefined
  /** How often embedded PostgreSQL has restarted. After each restart, the queue is empty. */
  restarts(): number
  /** Creates a queue for background work and runs its jobs. */
  work(name: string, jobs: BackgroundJobs): Promise<BackgroundQueue>
  /** Calls `onNotify` with the payload of each NOTIFY of a channel, and without one after each
   *  reconnection. */
  listen(channel: string, onNotify: (payload?: string) => void): Promise<void>
  /** Whether notifications arrive. Undefined when `listen` was not called. */
  isListening(): Promise<boolean | undefined>
  /** Whether the database of the queue responds. Never throws. */
  isReady(): Promise<boolean>
  /** The connection pools by name. Embedded PostgreSQL has none. */
  pools(): Record<string, PoolUse>
  /** Call this after the clock of the queue went back. Sets times that are now in the future to the
   *  current time: those of jobs (see `REALIGNMENT`), of leases, and of the monitoring and
   *  maintenance of pg-boss. */
  realign(): Promise<void>
  stop(graceMs: number): Promise<void>
}

interface QueueOptions extends BossOptions {
  attemptTimeoutMs: number
}

/** The statements of `realign`. `start_after` is the time when the job was added, or `dueAt` if
 *  that is later. `dueAt` does not come from the clock that went back, so a job that waits for
 *  `dueAt` keeps its `start_after`. */
const REALIGNMENT = [
  `update pgboss.job set start_after = now()
   where state in ('created', 'retry') and start_after > now() + interval '1 second'
     and start_after > interval '1 second'
       + to_timestamp(coalesce((data ->> 'dueAt')::float8, 0) / 1000)`,
  `update pgboss.job set started_on = now(), heartbeat_on = now()
   where state = 'active' and greatest(started_on, heartbeat_on) > now() + interval '1 second'`,
  `update pgboss.queue set monitor_on = now(), monitor_claim_on = now(), maintain_on = now()
   where greatest(monitor_on, monitor_claim_on, maintain_on) > now() + interval '1 second'`,
]

export async function startQueue(options: QueueOptions): Promise<Queue> {
  const { attemptTimeoutMs, log } = options
  const boss = await startBoss(options)
  const vacuum = startVacuum(boss, log)
  const newClient = sessionClientFactory(options)
  const session = newClient && new WorkerSession(newClient, log)
  const attempts = new AttemptJobs(boss, session, (count) => vacuum.countCompleted(count))
  const stopping = new AbortController()
  let listener: Listener | undefined
  try {
    await session?.start()
    await attempts.createQueue(attemptTimeoutMs)
  } catch (error) {
    vacuum.stop()
    await session?.stop().catch(() => undefined)
    await boss.stop(0).catch(() => undefined)
    throw error
  }
  return {
    attempts,
    session,
    restarts: () => boss.embedded?.restarts() ?? 0,
    work: (name, jobs) =>
      startBackgroundQueue(boss, { ...jobs, name, stopping: stopping.signal, log }),
    async listen(channel, onNotify) {
      listener = new Listener(boss.jobs.getDb(), channel)
      await listener.start(onNotify)
    },
    isListening: async () => listener?.isConnected(),
    async isReady() {
      const statement = boss.jobs.getDb().executeSql('select 1')
      return statement.then(
        () => true,
        () => false,
      )
    },
    async realign() {
      for (const statement of REALIGNMENT) await boss.jobs.getDb().executeSql(statement)
    },
    pools: () => boss.pools(),
    async stop(graceMs) {
      stopping.abort()
      vacuum.stop()
      await listener?.stop()
      await session?.stop()
      await boss.stop(graceMs)
    },
  }
}
