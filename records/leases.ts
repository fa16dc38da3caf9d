/** Work that one node does for all: it holds a lease, renews it, and another takes it over when it does not. */
import type { Db } from './database/open.ts'

/** Takes or renews a lease, by the database's clock. True: this holder has it for `forMs` from now. */
export async function holdLease(
  { write: sql }: Db,
  name: string,
  holder: string,
  forMs: number,
): Promise<boolean> {
  const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
  const { rows } = await sql.raw(
    `insert into leases (name, holder, expires_at) values (?, ?, ${now} + ?::bigint)
     on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where leases.holder = excluded.holder or leases.expires_at < ${now}
     returning holder`,
    [name, holder, forMs],
  )
  return rows.length > 0
}

/** Lets the next one have it at once. */
export async function releaseLease(
  { write: sql }: Db,
  name: string,
  holder: string,
): Promise<void> {
  await sql('leases').where({ name, holder }).delete()
}
