/** Schedules stuck deliveries and adds lost jobs again, for example after a crash. */
import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import {
  listOverdueQueued,
  markQueued,
  scheduleStuckInOrder,
} from '../../records/scheduled-attempts.ts'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'

/** A job may be lost when it was queued at least this long ago … */
const QUEUED_FOR_MS = 15_000
/** … and its attempt is overdue by at least this much. */
const OVERDUE_MS = 5_000
const BATCH_SIZE = 500

/** Schedules the first pending delivery of each ordering key that has no scheduled delivery. Then
 *  adds the jobs of overdue attempts again. Jobs are lost with the tables of the queue, or when a
 *  process is killed after it has written to the queue or the records, but not to both. Returns how
 *  many jobs it added. */
export async function repair(
  { db, jobs, log }: { db: Db; jobs: AttemptJobs; log: Logger },
  now: Date,
): Promise<number> {
  await scheduleStuckInOrder(db, now, BATCH_SIZE).catch((error: unknown) =>
    log.warn({ err: error }, 'Stuck ordering keys could not be scheduled; trying again'),
  )
  const overdue = await listOverdueQueued(
    db,
    new Date(now.getTime() - OVERDUE_MS),
    new Date(now.getTime() - QUEUED_FOR_MS),
    BATCH_SIZE,
  )
  if (overdue.length === 0) return 0
  await jobs.add(overdue, now)
  await transaction(db, (trx) => markQueued(trx, overdue, now))
  return overdue.length
}
