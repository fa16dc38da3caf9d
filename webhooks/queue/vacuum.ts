import type { Logger } from 'pino'
import type { Boss } from './boss.ts'

/** Each lease walks over the entries of finished jobs in an index until they are vacuumed. At
 *  thousands of jobs a second, the autovacuum of PostgreSQL comes too seldom. */
const VACUUM = 'vacuum pgboss.job_common'
const VACUUM_AFTER_JOBS = 10_000
/** PGlite runs neither autovacuum nor checkpoints. The periodic statements of pg-boss make it grow,
 *  even without deliveries. */
const EMBEDDED_INTERVAL_MS = 60_000

export interface QueueVacuum {
  countCompleted(count: number): void
  stop(): void
}

/** Vacuums the table of jobs after every `VACUUM_AFTER_JOBS` completed jobs. Vacuums an
 *  embedded queue also every minute. */
export function startVacuum(boss: Boss, log: Logger): QueueVacuum {
  const { embedded } = boss
  let completed = 0
  const run = async (): Promise<void> => {
    completed = 0
    try {
      await boss.jobs.getDb().executeSql(VACUUM)
      await embedded?.exec('checkpoint')
    } catch (error) {
      log.warn({ err: error }, 'The queue could not be vacuumed')
    }
  }
  const timer = embedded && setInterval(run, EMBEDDED_INTERVAL_MS)
  return {
    countCompleted(count) {
      completed += count
      if (completed >= VACUUM_AFTER_JOBS) void run()
    },
    stop: () => clearInterval(timer),
  }
}
