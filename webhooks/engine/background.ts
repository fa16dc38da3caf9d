import type { Logger } from 'pino'
import { RunLoop } from '../../runtime/run-loop.ts'
import type { BackgroundJobs } from '../queue/background-jobs.ts'
import type { Queue } from '../queue/queue.ts'

const SWEEP_MS = 1_000

interface SweepOptions {
  queue: Queue
  name: string
  jobs: BackgroundJobs
  now: () => Date
  log: Logger
}

export interface BackgroundSweep {
  wake(): void
  stop(): Promise<void>
}

/** Makes this process run the jobs of the queue `name`. Every second and on `wake`, adds a job for
 *  each row that `jobs.due` lists. */
export async function startBackgroundSweep({
  queue,
  name,
  jobs,
  now,
  log,
}: SweepOptions): Promise<BackgroundSweep> {
  const backgroundQueue = await queue.work(name, jobs)
  const loop = new RunLoop(
    async () => backgroundQueue.add(await jobs.due(now())),
    (error) =>
      log.warn({ err: error, queue: name }, 'Background jobs could not be enqueued; trying again'),
  )
  const timer = setInterval(loop.wake, SWEEP_MS)
  loop.wake()
  return {
    wake: loop.wake,
    async stop() {
      clearInterval(timer)
      await loop.stop()
    },
  }
}
