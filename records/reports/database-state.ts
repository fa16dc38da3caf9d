/** The state of the whole database, over all accounts. For the operator. */
import { stat } from 'node:fs/promises'
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

async function selectBytes({ read }: Db, text: string): Promise<number | undefined> {
  const [row] = await select<{ bytes: number }>(read, text, [])
  return row?.bytes
}
