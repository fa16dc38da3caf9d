/** The state of the whole database, over all accounts. For the operator. */
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../database/open.ts'
import { countFound, select } from '../database/statements.ts'
import type { DeliveryState } from '../deliveries.ts'
import { UNDELIVERED } from '../index-predicates.ts'

type UndeliveredCounts = Record<Exclude<DeliveryState, 'delivered'>, number>

export async function countUndelivered(db: Db): Promise<UndeliveredCounts> {
  const rows: { state: keyof UndeliveredCounts; count: number }[] = await db
    .read('deliveries')
    .whereRaw(UNDELIVERED)
    .groupBy('state')
    .select('state')
    .count({ count: '*' })
  const counts = rows.map(({ state, count }) => [state, Number(count)])
  return { pending: 0, retrying: 0, failed: 0, ...Object.fromEntries(counts) }
}

export function countPausedBulkJobs(db: Db): Promise<number> {
  return countFound(db.read('bulk_jobs').where({ state: 'paused' }))
}

export async function findDatabaseBytes(db: Db): Promise<number | undefined> {
  return selectBytes(
    db,
    db.dialect === 'postgres'
      ? 'select pg_database_size(current_database()) as bytes'
      : 'select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()',
  )
}

/** The size of the write-ahead log. Undefined when the PostgreSQL user may not read it, because the
 *  user lacks the role pg_monitor. */
export async function findWalBytes(db: Db): Promise<number | undefined> {
  if (db.dialect === 'sqlite') return findSqliteWalBytes(db)
  const [privilege] = await select<{ granted: boolean }>(
    db.read,
    `select has_function_privilege('pg_ls_waldir()', 'execute') as granted`,
    [],
  )
  if (!privilege?.granted) return undefined
  return selectBytes(db, 'select sum(size)::bigint as bytes from pg_ls_waldir()')
}

async function findSqliteWalBytes({ read }: Db): Promise<number> {
  const text = `select file from pragma_database_list() where name = 'main'`
  const [main] = await select<{ file: string }>(read, text, [])
  return (await stat(`${main?.file}-wal`)).size
}

/** PostgreSQL only. A user without the role pg_monitor sees of the sessions of others only that they
 *  exist. The maximum is undefined where the server lacks the settings. */
export async function findConnections({
  read,
}: Db): Promise<{ used: number; max: number | undefined }> {
  const [row] = await select<{ used: number; max: number | null }>(
    read,
    `select
       (select count(*) from pg_stat_activity
        where usesysid is not null and datid is not null
          and coalesce(backend_type, 'client backend') = 'client backend') as used,
       current_setting('max_connections', true)::int
         - current_setting('superuser_reserved_connections', true)::int
         - coalesce(current_setting('reserved_connections', true)::int, 0) as max`,
    [],
  )
  return { used: row?.used ?? 0, max: row?.max ?? undefined }
}

/** Commits of this database that have waited for a standby for more than a second. Without the role
 *  pg_monitor, only those of the same user. PostgreSQL only. */
export async function countWaitingCommits({ read }: Db): Promise<number> {
  const count = async (): Promise<{ all: number; long: number }> => {
    const [row] = await select<{ all: number; long: number }>(
      read,
      `select count(*) as all,
         count(*) filter (where query_start < clock_timestamp() - interval '1 second') as long
       from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'`,
      [],
    )
    return row ?? { all: 0, long: 0 }
  }
  const first = await count()
  if (first.all === 0 || first.long > 0) return first.long
  // Nodes cancel commits that wait for too long, perhaps all at once, and then others wait.
  await delay(1_000)
  return (await count()).long
}

async function selectBytes({ read }: Db, text: string): Promise<number | undefined> {
  const [row] = await select<{ bytes: number }>(read, text, [])
  return row?.bytes
}
