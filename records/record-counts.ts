/** How many records an account has, without counting them. Triggers add each change to `record_counts`, in the
 *  transaction of the change, so the counts are exact at any time: see records/migrations/count-tools.ts. */
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'

/** By table, the column by whose values its records are counted. It is never null. */
export const countedColumns: Record<string, string> = {
  participants: 'status',
  tasks: 'status',
  jobs: 'status',
  job_applications: 'status',
  payments: 'status',
  events: 'event_type',
  exports: 'status',
  imports: 'status',
}

/** The number of records in the table with one of the values, as SQL. Without `values`, of all records. */
export function storedCount({ accountId }: Scope, table: string, values?: string[]): Condition {
  const isValue = values ? ` and value in (${values.map(() => '?').join(', ')})` : ''
  return {
    sql: `select coalesce(sum(records), 0) as total from record_counts
      where account_id = ? and list = ?${isValue}`,
    bindings: [accountId, table, ...(values ?? [])],
  }
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
