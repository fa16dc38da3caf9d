import type { Logger } from 'pino'
import type { Boss } from './boss.ts'

/** Background work on rows: `due` lists the rows that need work, `run` works on one of them. */
export interface BackgroundJobs {
  /** IDs (UUIDs) of the rows that need work now. */
  due(now: Date): Promise<string[]>
  /** Does nothing for a row that needs no work any more. Ends soon after `signal` aborts, and then
   *  `due` lists the ID again. Errors are logged. */
  run(id: string, signal: AbortSignal): Promise<void>
  /** The most runs at once on this node. */
  concurrency?: number
}

export interface BackgroundQueue {
  add(ids: string[]): Promise<void>
}

const DEFAULT_CONCURRENCY = 2
/** How often this node polls one queue, with all of its pg-boss workers together. Most jobs need no
 *  poll: new jobs wake the workers, and so does the end of a job. */
const POLLS_PER_SECOND = 1
const EXPIRE_SECONDS = 12 * 3600

interface BackgroundQueueOptions extends Omit<BackgroundJobs, 'due'> {
  name: string
  stopping: AbortSignal
  log: Logger
}

/** Creates a queue and runs its jobs until `stopping` aborts. */
export async function startBackgroundQueue(
  { jobs: boss, addQueue }: Boss,
  { name, run, concurrency = DEFAULT_CONCURRENCY, stopping, log }: BackgroundQueueOptions,
): Promise<BackgroundQueue> {
  // Exclusive: at most one job for each ID, whichever node added it.
  await addQueue(name, { policy: 'exclusive', retryLimit: 0, expireInSeconds: EXPIRE_SECONDS })
  // After a restart of embedded PostgreSQL, the queue no longer knows the jobs that run here, and
  // accepts their IDs again.
  const running = new Set<string>()
  const work = async (id: string, signal: AbortSignal): Promise<void> => {
    if (stopping.aborted || running.has(id)) return
    running.add(id)
    try {
      await run(id, AbortSignal.any([signal, stopping]))
    } catch (error) {
      log.error({ err: error, queue: name, id }, 'A background job failed')
    } finally {
      running.delete(id)
      wakeWorkers()
    }
  }
  const settings = {
    pollingIntervalSeconds: concurrency / POLLS_PER_SECOND,
    heartbeatRefreshSeconds: 3,
  }
  // Not `localConcurrency`: its workers have one ID, and only the first of them could be woken.
  const workers: string[] = []
  const wakeWorkers = (): void => {
    for (const worker of workers) boss.notifyWorker(worker)
  }
  while (workers.length < concurrency)
    workers.push(
      await boss.work<{ id: string }>(name, settings, async ([job]) => {
        if (job) await work(job.data.id, job.signal)
      }),
    )
  return {
    async add(ids) {
      if (ids.length === 0) return
      await boss.insert(
        name,
        ids.map((id) => ({ data: { id }, singletonKey: id })),
      )
      wakeWorkers()
    },
  }
}
