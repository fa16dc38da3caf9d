/** Compares the counts of `record_counts` with `count(*)`. */
import type { Db } from '../../records/database/open.ts'
import { countedColumns } from '../../records/record-counts.ts'

type Counts = Record<string, number>

async function countAll({ read }: Db): Promise<Counts> {
  const counts: Counts = {}
  for (const [table, column] of Object.entries(countedColumns)) {
    const rows: { account_id: string; value: string; total: number }[] = await read(table)
      .groupBy('account_id', column)
      .select({ account_id: 'account_id', value: column })
      .count({ total: '*' })
    for (const { account_id, value, total } of rows)
      counts[`${account_id} ${table} ${value}`] = Number(total)
  }
  return counts
}

/** The counts that are not 0. */
export async function readCounts({ read }: Db): Promise<Counts> {
  const rows: { account_id: string; list: string; value: string; total: number }[] = await read(
    'record_counts',
  )
    .groupBy('account_id', 'list', 'value')
    .select('account_id', 'list', 'value')
    .sum({ total: 'records' })
  return Object.fromEntries(
    rows
      .filter(({ total }) => Number(total) !== 0)
      .map(({ account_id, list, value, total }) => [
        `${account_id} ${list} ${value}`,
        Number(total),
      ]),
  )
}

/** Both by account, table and value. Call it while nothing changes. */
export async function readBothCounts(db: Db): Promise<{ stored: Counts; counted: Counts }> {
  return { stored: await readCounts(db), counted: await countAll(db) }
}
