/** The versions of PostgreSQL that Muster works with. CockroachDB and YugabyteDB count theirs in another way. */
import type pg from 'pg'
import { Refused } from '../../errors.ts'

/** The queries need features of this version. */
export const MIN_POSTGRES = 14
/** The server reports 150004 for 15.4. */
const MAJOR = 10_000

/** Throws `Refused` when PostgreSQL is too old. */
export async function assertVersion(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query('show server_version_num')
  const version = Number(rows[0]?.server_version_num)
  if (version < MIN_POSTGRES * MAJOR)
    throw new Refused(
      `This is PostgreSQL ${Math.floor(version / MAJOR)}, and Muster needs PostgreSQL ${MIN_POSTGRES} or newer. ` +
        'Upgrade the server, or set DATABASE_URL to a newer one.',
    )
}
