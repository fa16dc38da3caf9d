/** The counts of rate limits that nodes share. PostgreSQL only. */
import { NOW_SQL } from './database/clock.ts'
import type { Db } from './database/open.ts'
import { select } from './database/statements.ts'
import { WITHOUT_WAIT } from './database/without-wait.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'

/** By one clock, no stored window ends later than a window that begins now. If one does, the clock
 *  of the database went back. A window that ends later by more than this counts as ended. */
const TOLERANCE_MS = 60_000

export interface RateLimitWindow {
  /** Counted so far. */
  points: number
  msLeft: number
}

/** A statement that counts points. A window begins with its first points, by the clock of the
 *  database. `source`: a query for the key and the points. Reads count points, too, so a count does
 *  not wait for a standby. */
export function countPointsSql(source: string, windowMs: number): string {
  const now = `excluded.expire - ${windowMs}`
  const hasEnded = `(counted.expire <= ${now}
    or counted.expire > excluded.expire + ${TOLERANCE_MS})`
  return `insert into rate_limits as counted (key, points, expire)
    select key, points, ${NOW_SQL} + ${windowMs} from (${source}) as input (key, points)
    on conflict (key) do update set
      points = case when ${hasEnded} then excluded.points else counted.points + excluded.points end,
      expire = case when ${hasEnded} then excluded.expire else counted.expire end
    returning points, expire - ${NOW_SQL} as ms_left, ${WITHOUT_WAIT}`
}

export interface CountedRow {
  points: number
  ms_left: number
}

export const windowFromRow = ({ points, ms_left }: CountedRow): RateLimitWindow => ({
  points,
  msLeft: ms_left,
})

export async function countPoints(
  db: Db,
  key: string,
  points: number,
  windowMs: number,
): Promise<RateLimitWindow> {
  const text = countPointsSql('select ?::text, ?::integer', windowMs)
  const [row] = await select<CountedRow>(db.read, text, [key, points], `count_points_${windowMs}`)
  if (row === undefined) throw new Error('PostgreSQL did not return the count of a rate limit')
  return windowFromRow(row)
}

export async function deletePoints(db: Db, key: string): Promise<void> {
  await db.write('rate_limits').where({ key }).delete()
}

/** Reads the whole table, which holds only open windows and those that ended a few minutes ago. An
 *  index on `expire` would avoid this, but each new window would have to update it. */
export async function removeExpiredRateLimits(run: RemovalRun): Promise<void> {
  if (run.db.dialect === 'sqlite') return
  await removeRows(run, {
    table: 'rate_limits',
    key: ['key'],
    condition: (rows) => rows.where('expire', '<', run.time.createdBefore(TOLERANCE_MS)),
  })
}
