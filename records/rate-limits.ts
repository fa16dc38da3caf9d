/** The counts of rate limits that nodes share. PostgreSQL only. */
import type { Db } from './database/open.ts'
import { select } from './database/statements.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'

/** A window that ends later than this after its length is from a clock that was ahead. */
const TOLERANCE_MS = 60_000

export interface RateLimitWindow {
  points: number
  msLeft: number
}

/** Counts `points` of `key` in its window, which begins with the first of them, by the clock of the database. */
export async function countPoints(
  db: Db,
  key: string,
  points: number,
  windowMs: number,
): Promise<RateLimitWindow> {
  const hasEnded = `(counted.expire <= excluded.expire - ${windowMs}
    or counted.expire > excluded.expire + ${TOLERANCE_MS})`
  const [row] = await select<{ points: number; ms_left: number }>(
    db.write,
    `insert into rate_limits as counted (key, points, expire)
     values (?, ?, (extract(epoch from clock_timestamp()) * 1000)::bigint + ${windowMs})
     on conflict (key) do update set
       points = case when ${hasEnded} then excluded.points else counted.points + excluded.points end,
       expire = case when ${hasEnded} then excluded.expire else counted.expire end
     returning points, expire - (extract(epoch from clock_timestamp()) * 1000)::bigint as ms_left`,
    [key, points],
    `count_points_${windowMs}`,
  )
  if (row === undefined) throw new Error('PostgreSQL did not return the count of a rate limit')
  return { points: row.points, msLeft: row.ms_left }
}

export async function deletePoints(db: Db, key: string): Promise<void> {
  await db.write('rate_limits').where({ key }).delete()
}

/** Older nodes count by their own clocks, which may differ by this much. */
const EXPIRED_MS = 60 * 60_000

/** Reads the whole table, which holds the windows of about an hour: an index on `expire` would slow down each
 *  request, because each one updates it. */
export async function removeExpiredCounts(run: RemovalRun): Promise<void> {
  if (run.db.dialect === 'sqlite') return
  await removeRows(run, {
    table: 'rate_limits',
    key: ['key'],
    condition: (rows) => rows.where('expire', '<', run.time.createdBefore(EXPIRED_MS)),
  })
}
