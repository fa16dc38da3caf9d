/** The versions of PostgreSQL that Muster works with. */
import { Refused } from '../../errors.ts'

/** The queries need features of this version. */
export const MIN_POSTGRES = 14
/** The server reports 150004 for 15.4. */
const MAJOR = 10_000

type Query = (text: string) => Promise<{ server_version_num: string }[]>

/** Throws `Refused` when PostgreSQL is too old. `query` returns the rows of a statement. */
export async function assertVersion(query: Query): Promise<void> {
  const [row] = await query('show server_version_num')
  const version = Number(row?.server_version_num)
  if (version < MIN_POSTGRES * MAJOR)
    throw new Refused(
      `This is PostgreSQL ${Math.floor(version / MAJOR)}, and Muster needs PostgreSQL ${MIN_POSTGRES} or newer. ` +
        'Upgrade the server, or set DATABASE_URL to a newer one.',
    )
}
