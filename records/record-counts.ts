/** How many records an account has, without counting them. Triggers add each change to `record_counts`, in the
 *  transaction of the change, so the counts are exact at any time: see records/migrations/count-tools.ts. */
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'
import { UNDELIVERED } from './index-predicates.ts'

/** By table, the column by whose values its records are counted. It is never null. Updates of deliveries are not
 *  counted, because they change no webhook. */
export const countedColumns: Record<string, string> = {
  participants: 'status',
  tasks: 'status',
  jobs: 'status',
  job_applications: 'status',
  payments: 'status',
  events: 'event_type',
  exports: 'status',
  imports: 'status',
  deliveries: 'webhook_id',
}

/** The number of records in a list as SQL, if `record_counts` has it: without filters, and for one by the counted
 *  values. */
export function findStoredCount(
  { accountId }: Scope,
  table: string,
  filters: Record<string, unknown>,
): (Condition & { name?: string }) | undefined {
  const column = countedColumns[table]
  const isDelivered = table === 'deliveries' && `${filters.state}` === 'delivered'
  const { state, ...others } = filters
  const names = Object.keys(isDelivered ? others : filters)
  if (column === undefined || names.some((name) => name !== column)) return undefined
  const values = [filters[column] ?? []].flat() as string[]
  const isValue = values.length > 0 ? ` and value in (${values.map(() => '?').join(', ')})` : ''
  const all = {
    sql: `select coalesce(sum(records), 0) as total from record_counts
      where account_id = ? and list = ?${isValue}`,
    bindings: [accountId, table, ...values],
    name: `count_records_${values.length}`,
  }
  if (!isDelivered) return all
  // Nearly all deliveries are delivered. An index has only the others, so these are counted and subtracted.
  const isWebhook = values.length > 0 ? ' and webhook_id = ?' : ''
  return {
    sql: `select (${all.sql}) - (
      select count(*) from deliveries where account_id = ? and ${UNDELIVERED}${isWebhook}) as total`,
    bindings: [...all.bindings, accountId, ...values],
  }
}

/** Whether `findVersion` tells all changes of the table. A delivery also changes with each attempt. */
export function hasVersion(table: string): boolean {
  return table in countedColumns && table !== 'deliveries'
}

/** As SQL: a value that each change of the account's records in the table makes another one. */
const VERSION = '(select sum(version) from record_counts where account_id = ? and list = ?)'

export async function findVersion({ accountId, sql }: Scope, table: string): Promise<string> {
  const [row] = await select<{ version: string | null }>(
    sql,
    `select ${VERSION} as version`,
    [accountId, table],
    'find_version',
  )
  return String(row?.version)
}

/** Counts the rows of a counted table, and returns the version that they have. */
export async function countAtVersion(
  { accountId, sql }: Scope,
  table: string,
  where: Condition,
): Promise<{ total: number; version: string }> {
  const [row] = await select<{ total: number; version: string | null }>(
    sql,
    `select count(*) as total, ${VERSION} as version from ${table} where ${where.sql}`,
    [accountId, table, ...where.bindings],
  )
  return { total: Number(row?.total), version: String(row?.version) }
}
