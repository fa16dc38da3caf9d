/** The queries of `muster doctor` about the database, the leader and the accounts. */
import { NOW_SQL } from '../database/clock.ts'
import { findOrphan } from '../database/damage.ts'
import type { Db } from '../database/open.ts'
import { countFound, type Sql, select } from '../database/statements.ts'

interface PostgresState {
  /** The values of `SETTINGS` by name, without settings that the server does not have. */
  settings: Record<string, string>
  /** The server replays the changes of another server, and accepts no writes. */
  isStandby: boolean
}

const SETTINGS = [
  'server_version',
  'server_encoding',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'synchronous_standby_names',
  'transaction_read_only',
]

export async function findPostgresState({ read }: Db): Promise<PostgresState> {
  const rows: { name: string; setting: string }[] = await read('pg_settings')
    .whereIn('name', SETTINGS)
    .select('name', 'setting')
  const [state] = await select<{ standby: boolean }>(
    read,
    'select pg_is_in_recovery() as standby',
    [],
  )
  return {
    settings: Object.fromEntries(rows.map(({ name, setting }) => [name, setting])),
    isStandby: state?.standby ?? false,
  }
}

interface Standbys {
  streaming: number
  /** Those for which no commit waits. A user without the role pg_monitor sees none. */
  asynchronous: number
}

/** The standbys that replicate from this server. Programs that copy the database or its log, for example
 *  for a backup, are none. PostgreSQL only. */
export async function countStandbys({ read }: Db): Promise<Standbys> {
  const [row] = await select<Standbys>(
    read,
    `select count(*) as streaming, count(*) filter (where sync_state = 'async') as asynchronous
     from pg_stat_replication
     where coalesce(state, 'streaming') = 'streaming'
       and application_name not in ('pg_basebackup', 'pg_receivewal', 'barman_receive_wal')
       and pid not in (select active_pid from pg_replication_slots
                       where slot_type = 'logical' and active_pid is not null)`,
    [],
  )
  return { streaming: row?.streaming ?? 0, asynchronous: row?.asynchronous ?? 0 }
}

/** The IP address of a server that Patroni manages. Undefined: Patroni is not connected to it, or the
 *  server does not say its IP address. PostgreSQL only. */
export async function findPatroniHost({ read }: Db): Promise<string | undefined> {
  const [row] = await select<{ host: string | null }>(
    read,
    `select host(inet_server_addr()) as host from pg_stat_activity
     where application_name like 'Patroni%' limit 1`,
    [],
  )
  return row?.host ?? undefined
}

/** Whether the extension pg_trgm, which must exist, recognises letters other than those of ASCII. It
 *  does not in a database with the locale C. PostgreSQL only. */
export async function canIndexAllScripts({ read }: Db): Promise<boolean> {
  const [row] = await select<{ trigrams: string[] }>(read, `select show_trgm('ж') as trigrams`, [])
  return (row?.trigrams.length ?? 0) > 0
}

export async function findSqliteVersion({ read }: Db): Promise<string> {
  const [row] = await select<{ version: string }>(read, 'select sqlite_version() as version', [])
  return row?.version ?? 'unknown'
}

/** The first damage of the SQLite file. Undefined: it has none. Reads the whole file. */
export async function findDamage({ read }: Db): Promise<string | undefined> {
  const [row] = await select<{ quick_check: string }>(read, 'pragma quick_check(1)', [])
  if (row?.quick_check !== 'ok') return row?.quick_check
  // `muster backup` refuses such a database.
  return findOrphan(read, 'main')
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
