/** The databases that Muster works with when DATABASE_URL is set. */
import { Refused } from '../../errors.ts'

/** The queries need features of this version. */
export const MIN_POSTGRES = 14
/** The server reports 150004 for 15.4. */
const MAJOR = 10_000

/** Databases that speak the protocol of PostgreSQL, by what their `version()` contains. They lack
 *  parts that no committed event is lost without: notifications in a transaction, snapshots of
 *  transactions, advisory locks. */
const OTHERS: [RegExp, string][] = [
  [/CockroachDB/, 'CockroachDB'],
  [/-YB-/, 'YugabyteDB'],
]

type Query = (text: string) => Promise<Record<string, string | boolean | null>[]>

/** Throws `Refused` if this is not PostgreSQL, if it is too old, or if Citus has distributed the
 *  tables. `query` returns the rows of a statement. */
export async function assertSupported(query: Query): Promise<void> {
  const [server] = await query('select version() as name')
  const other = OTHERS.find(([pattern]) => pattern.test(String(server?.name)))?.[1]
  if (other !== undefined)
    throw new Refused(
      `This is ${other}, which lacks what Muster needs of PostgreSQL. Set DATABASE_URL to a PostgreSQL server.`,
    )
  const [row] = await query('show server_version_num')
  const version = Number(row?.server_version_num)
  if (version < MIN_POSTGRES * MAJOR)
    throw new Refused(
      `This is PostgreSQL ${Math.floor(version / MAJOR)}, and Muster needs PostgreSQL ${MIN_POSTGRES} or newer. ` +
        'Upgrade the server, or set DATABASE_URL to a newer one.',
    )
  if (await isDistributed(query))
    throw new Refused(
      'Citus has distributed the events of this database, so that transactions have no common snapshot, ' +
        'and "send missed" could pass an event by. Undistribute the tables, or set DATABASE_URL to another database.',
    )
}

async function isDistributed(query: Query): Promise<boolean> {
  const [citus] = await query(`select to_regclass('pg_dist_partition') is not null as "hasCitus"`)
  if (citus?.hasCitus !== true) return false
  const distributed = await query(
    `select from pg_dist_partition where logicalrelid = to_regclass('events')`,
  )
  return distributed.length > 0
}
