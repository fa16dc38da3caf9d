/** The counts of rate limits, which rate-limiter-flexible writes. PostgreSQL only. */
import { type RemovalRun, removeRows } from './removal-run.ts'

/** The clocks of two nodes may differ by this much. */
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
