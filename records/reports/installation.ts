/** The queries of `muster doctor` about the database, the leader and the accounts. */
import { NOW_SQL } from '../database/clock.ts'
import type { Db } from '../database/open.ts'
import { countFound, type Sql, select } from '../database/statements.ts'

interface PostgresState {
  /** The values of `SETTINGS` by name, without settings that the server does not have. */
  settings: Record<string, string>
  /** The server replays the changes of another server, and accepts no writes. */
  isStandby: boolean
  usedConnections: number
}

const SETTINGS = [
  'server_version',
  'server_encoding',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'transaction_read_only',
  'max_connections',
  'superuser_reserved_connections',
]

export async function findPostgresState({ read }: Db): Promise<PostgresState> {
  const rows: { name: string; setting: string }[] = await read('pg_settings')
    .whereIn('name', SETTINGS)
    .select('name', 'setting')
  const [state] = await select<{ standby: boolean; used: number }>(
    read,
    `select pg_is_in_recovery() as standby,
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used`,
    [],
  )
  return {
    settings: Object.fromEntries(rows.map(({ name, setting }) => [name, setting])),
    isStandby: state?.standby ?? false,
    usedConnections: state?.used ?? 0,
  }
}

export async function findSqliteVersion({ read }: Db): Promise<string> {
  const [row] = await select<{ version: string }>(read, 'select sqlite_version() as version', [])
  return row?.version ?? 'unknown'
}

/** The first damage of the SQLite file. Undefined: it has none. Reads the whole file. */
export async function findDamage({ read }: Db): Promise<string | undefined> {
  const [row] = await select<{ quick_check: string }>(read, 'pragma quick_check(1)', [])
  return row?.quick_check === 'ok' ? undefined : row?.quick_check
}

/** Whether a worker is the leader, by the clock of the database. Only the leader has a lease.
 *  PostgreSQL only. */
export async function hasLeader({ read }: Db): Promise<boolean> {
  return (await read('leases').whereRaw(`expires_at > ${NOW_SQL}`).first('name')) !== undefined
}

interface AccountCounts {
  accounts: number
  suspended: number
  deleting: number
}

export async function countAccounts(sql: Sql): Promise<AccountCounts> {
  return {
    accounts: await countFound(sql('accounts')),
    suspended: await countFound(sql('accounts').whereNotNull('suspended_at')),
    deleting: await countFound(sql('account_deletions').whereNull('completed_at')),
  }
}
