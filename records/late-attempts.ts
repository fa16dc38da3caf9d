/** Reschedules attempts that are scheduled too late, because the clock was ahead or the delays were
 *  longer when they were scheduled. */
import type { Db } from './database/open.ts'
import { type Condition, select } from './database/statements.ts'
import { transaction } from './database/transaction.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'
import { UNQUEUED } from './index-predicates.ts'

/** The clocks of processes that work on one database differ by at most this much. */
const TOLERANCE_MS = 2_000
const BATCH_ROWS = 1_000

interface Schedule {
  now: Date
  /** The delays before attempts 2, 3 and so on. */
  delaysMs: readonly number[]
}

/** Reschedules the attempts whose time is later than now plus their own delay, and those with a
 *  queued mark (`queued_at`) in the future. Returns the number of rescheduled attempts. Reads every
 *  scheduled attempt. */
export async function rescheduleLateAttempts(db: Db, schedule: Schedule): Promise<number> {
  const latest = schedule.now.getTime() + TOLERANCE_MS
  const isLate = `next_attempt_at > cast(? as bigint) + ${delayOf(schedule)}`
  const unqueued = {
    sql: `${UNQUEUED} and next_attempt_at > ? and ${isLate}`,
    bindings: [latest, latest],
  }
  // While the queued mark of an attempt is in the future, webhooks/engine/repair.ts does not add
  // its lost job again.
  const queued = {
    sql: `queued_at is not null and next_attempt_at is not null and (${isLate} or queued_at > ?)`,
    bindings: [latest, latest],
  }
  return (await reschedule(db, schedule, unqueued)) + (await reschedule(db, schedule, queued))
}

/** Reschedules only attempts without a queued mark whose time is later than now plus the longest
 *  delay. Returns the number of rescheduled attempts. Normally reads no row. */
export function rescheduleAttemptsBeyondDelays(db: Db, schedule: Schedule): Promise<number> {
  const latest = schedule.now.getTime() + TOLERANCE_MS + Math.max(0, ...schedule.delaysMs)
  return reschedule(db, schedule, {
    sql: `${UNQUEUED} and next_attempt_at > ?`,
    bindings: [latest],
  })
}

async function reschedule(db: Db, schedule: Schedule, late: Condition): Promise<number> {
  const isPostgres = db.dialect === 'postgres'
  let rescheduled = 0
  for (;;) {
    // The read is outside of the transaction: inside, it would block all other writers of SQLite
    // for as long as it takes.
    const rows = await select<{ id: string }>(
      db.read,
      `select id from deliveries where ${late.sql} limit ${BATCH_ROWS}`,
      late.bindings,
    )
    if (rows.length === 0) return rescheduled
    const ids = rows.map(({ id }) => id)
    const changed = await transaction(db, async ({ sql, announce }) => {
      // Skips locked rows: waiting for them in another order than the transactions that store
      // results would deadlock.
      const stillLate = sql('deliveries').whereIn('id', ids).whereRaw(late.sql, late.bindings)
      const changeable: string[] = await (isPostgres
        ? stillLate.forUpdate().skipLocked()
        : stillLate
      ).pluck('id')
      announce(ATTEMPTS_SCHEDULED)
      return sql('deliveries')
        .whereIn('id', changeable)
        .update({
          next_attempt_at: sql.raw(
            `${isPostgres ? 'least' : 'min'}(next_attempt_at, cast(? as bigint) + ${delayOf(schedule)})`,
            [schedule.now.getTime()],
          ),
          queued_at: null,
        })
    })
    rescheduled += changed
    if (changed === 0 || rows.length < BATCH_ROWS) return rescheduled
  }
}

/** The delay before the next attempt of a delivery, as SQL. First and manual attempts have none. */
function delayOf({ delaysMs }: Schedule): string {
  const cases = delaysMs.map((delayMs, index) => `when ${index + 1} then ${delayMs}`).join(' ')
  return `case when state = 'retrying' then case attempts ${cases} else 0 end else 0 end`
}
