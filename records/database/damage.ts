/** Looks for damaged pages of the database. */
import { setTimeout as delay } from 'node:timers/promises'
import { errorCode, isDamage } from './errors.ts'
import type { Db } from './open.ts'
import { type Sql, select } from './statements.ts'

/** After each table, the check rests this many times as long as it took. */
const REST = 9

/** SQLite: the first damage of the file. Undefined: it has none, or `signal` has aborted. Checks one
 *  table with its indexes after the other, on a connection for reads, so that no change waits. */
export async function findDamagedTable(
  { read }: Db,
  signal: AbortSignal,
): Promise<string | undefined> {
  const tables = await select<{ name: string }>(
    read,
    `select name from sqlite_schema where type = 'table' union select 'sqlite_schema'`,
    [],
  )
  for (const { name } of tables) {
    if (signal.aborted) return undefined
    const startedAtMs = performance.now()
    const damage = await findDamageOf({ read }, name)
    if (damage !== undefined) return damage
    const restMs = (performance.now() - startedAtMs) * REST
    await delay(restMs, undefined, { signal }).catch(() => undefined)
  }
  return undefined
}

/** `sqlite_schema` includes the list of free pages. */
async function findDamageOf(
  { read }: Pick<Db, 'read'>,
  table: string,
): Promise<string | undefined> {
  try {
    const text = 'select quick_check as damage from pragma_quick_check(?)'
    const [row] = await select<{ damage: string }>(read, text, [table])
    return row?.damage === 'ok' ? undefined : row?.damage
  } catch (error) {
    if (isDamage(error)) return `${errorCode(error)} in the table ${table}`
    throw error
  }
}

/** SQLite: says which table has a row that points to a missing row. Undefined: none has. */
export async function findOrphan(sql: Sql, schema: 'main' | 'copy'): Promise<string | undefined> {
  const text = `pragma ${schema}.foreign_key_check`
  const [orphan] = await select<{ table: string }>(sql, text, [])
  return orphan && `a row of ${orphan.table} points to a missing row`
}

interface ChecksumFailures {
  /** How often PostgreSQL has read a page with a wrong checksum. 0 without data checksums. */
  count: number
  /** Epoch milliseconds. Null: there is none. */
  lastAt: number | null
  now: number
}

/** PostgreSQL only. Each standby has its own count. */
export async function findChecksumFailures({ read }: Db): Promise<ChecksumFailures> {
  const [row] = await select<ChecksumFailures>(
    read,
    `select coalesce(checksum_failures, 0) as count,
       (extract(epoch from checksum_last_failure) * 1000)::bigint as "lastAt",
       (extract(epoch from clock_timestamp()) * 1000)::bigint as now
     from pg_stat_database where datname = current_database()`,
    [],
  )
  return row ?? { count: 0, lastAt: null, now: 0 }
}
