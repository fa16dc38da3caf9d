/** The jobs of background work, such as exports. */
import type { Logger } from 'pino'
import type { Boss } from './boss.ts'

/** Background work on rows: `due` lists the rows that need work, `run` works on one of them. */
export interface BackgroundJobs {
  /** IDs (UUIDs) of the rows that need work now. */
  due(now: Date): Promise<string[]>
  /** Ends soon after `signal` aborts, and then `due` lists the ID again. Errors are logged. */
  run(id: string, signal: AbortSignal): Promise<void>
}

export interface BackgroundQueue {
  add(ids: string[]): Promise<void>
}

const CONCURRENCY = 2
const EXPIRE_SECONDS = 12 * 3600

interface BackgroundQueueOptions extends Pick<BackgroundJobs, 'run'> {
  name: string
  stopping: AbortSignal
  log: Logger
}

/** Creates a queue and runs its jobs until `stopping` aborts. */
export async function startBackgroundQueue(
  { jobs, addQueue }: Boss,
  { name, run, stopping, log }: BackgroundQueueOptions,
): Promise<BackgroundQueue> {
  // Exclusive: at most one job for each ID, whichever node added it.
  await addQueue(name, { policy: 'exclusive', retryLimit: 0, expireInSeconds: EXPIRE_SECONDS })
  // A restarted embedded queue has lost the jobs that are running here, and accepts their IDs again.
  const running = new Set<string>()
  const worker = await jobs.work<{ id: string }>(
    name,
    { localConcurrency: CONCURRENCY, pollingIntervalSeconds: 0.5, heartbeatRefreshSeconds: 3 },
    async ([job]) => {
      if (!job || stopping.aborted) return
      const { id } = job.data
      if (running.has(id)) return
      running.add(id)
      await run(id, AbortSignal.any([job.signal, stopping])).catch((error: unknown) => {
        log.error({ err: error, queue: name, id }, 'A background job failed')
      })
      running.delete(id)
    },
  )
  return {
    async add(ids) {
      if (ids.length === 0) return
      await jobs.insert(
        name,
        ids.map((id) => ({ data: { id }, singletonKey: id })),
      )
      jobs.notifyWorker(worker)
    },
  }
}
