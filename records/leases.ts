/** Leases: each is named after a kind of work. The node that has the lease does this work for all
 *  nodes, until the lease expires. PostgreSQL only. */
import { NOW_SQL } from './database/clock.ts'
import type { Db } from './database/open.ts'
import { hasEndedSql } from './worker-sessions.ts'

/** A lease that ends later than a new one by more than this is from a clock that was ahead, and
 *  does not count. */
const TOLERANCE_MS = 60_000

/** Acquires or renews a lease for `durationMs` by the database's clock. `holder`: the ID of a worker
 *  session, with which the lease ends. False: another session has it. */
export async function acquireLease(
  { write: sql }: Db,
  name: string,
  holder: string,
  durationMs: number,
): Promise<boolean> {
  const { rows } = await sql.raw(
    `insert into leases (name, holder, expires_at) values (?, ?, ${NOW_SQL} + ?::bigint)
     on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.holder = excluded.holder or leases.expires_at < ${NOW_SQL}
       or leases.expires_at > excluded.expires_at + ${TOLERANCE_MS}
       or ${hasEndedSql('leases.holder')}
     returning holder`,
    [name, holder, durationMs],
  )
  return rows.length > 0
}

/** Another node may acquire the lease at once. */
export async function releaseLease(
  { write: sql }: Db,
  name: string,
  holder: string,
): Promise<void> {
  await sql('leases').where({ name, holder }).delete()
}
