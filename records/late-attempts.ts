/** Attempts that a clock which was ahead has scheduled too late. */
import type { Db } from './database/open.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'
import { UNQUEUED } from './index-predicates.ts'

/** The clocks of processes that work on one database differ by less. */
const TOLERANCE_MS = 2_000

export interface Schedule {
  now: Date
  /** The delays before attempts 2, 3 and so on. */
  delaysMs: readonly number[]
}

/** Reschedules the attempts that are later than their delay from now. Returns how many. Reads every scheduled
 *  attempt. */
export function rescheduleLateAttempts(db: Db, schedule: Schedule): Promise<number> {
  const latest = schedule.now.getTime() + TOLERANCE_MS
  const isLate = `next_attempt_at > cast(? as bigint) + ${delayOf(schedule)}`
  return rescheduleAll(db, schedule, [
    { sql: `${UNQUEUED} and next_attempt_at > ? and ${isLate}`, bindings: [latest, latest] },
    // With a mark in the future, the repair would wait for that time before it adds a lost job again.
    {
      sql: `queued_at is not null and next_attempt_at is not null and (${isLate} or queued_at > ?)`,
      bindings: [latest, latest],
    },
  ])
}

/** Reschedules the attempts that are later than every delay from now. Normally reads no row. */
export function rescheduleLatestAttempts(db: Db, schedule: Schedule): Promise<number> {
  const latest = schedule.now.getTime() + TOLERANCE_MS + Math.max(0, ...schedule.delaysMs)
  return rescheduleAll(db, schedule, [
    { sql: `${UNQUEUED} and next_attempt_at > ?`, bindings: [latest] },
  ])
}

interface Condition {
  sql: string
  bindings: number[]
}

async function rescheduleAll(db: Db, schedule: Schedule, late: Condition[]): Promise<number> {
  return transaction(db, async (trx) => {
    let changed = 0
    for (const condition of late) changed += await reschedule(trx, schedule, condition)
    if (changed > 0) trx.announce(ATTEMPTS_SCHEDULED)
    return changed
  })
}

async function reschedule(
  { dialect, sql }: Trx,
  schedule: Schedule,
  late: Condition,
): Promise<number> {
  const isPostgres = dialect === 'postgres'
  // Skips locked rows: waiting for them in another order than the transactions that store results
  // would deadlock.
  const result = await sql.raw(
    `update deliveries
     set next_attempt_at =
         ${isPostgres ? 'least' : 'min'}(next_attempt_at, cast(? as bigint) + ${delayOf(schedule)}),
       queued_at = null
     where id in (
       select id from deliveries where ${late.sql} ${isPostgres ? 'for update skip locked' : ''})
     returning id`,
    [schedule.now.getTime(), ...late.bindings],
  )
  return (isPostgres ? result.rows : result).length
}

/** The delay before the next attempt of a delivery, as SQL. First and manual attempts have none. */
function delayOf({ delaysMs }: Schedule): string {
  const cases = delaysMs.map((delayMs, index) => `when ${index + 1} then ${delayMs}`).join(' ')
  return `case when state = 'retrying' then case attempts ${cases} else 0 end else 0 end`
}
