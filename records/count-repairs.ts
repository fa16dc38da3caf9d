/** Corrects `record_counts`, for example after somebody has changed rows while triggers were disabled. */
import { randomInt } from 'node:crypto'
import { Refused } from '../errors.ts'
import type { Db } from './database/open.ts'
import { type Scope, writeScope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { LockTaken, transactionAfter } from './database/transaction.ts'
import { countedColumns } from './record-counts.ts'

/** A count that was wrong: `difference` records of the account were not counted. */
export interface CountRepair {
  account_id: string
  list: string
  value: string
  difference: number
}

/** Counts the records of the account, and adds what the counts lack. A statement reads both the records and the
 *  counts, so changes need not wait. Throws `Refused` while another process does the same:
 *  together, both would add the difference. */
export function repairCounts(db: Db, accountId: string): Promise<CountRepair[]> {
  const opening = { read: async () => undefined, lock: 'repair record_counts' }
  return transactionAfter(db, opening, async (trx) => {
    const scope = writeScope(trx, accountId)
    const repairs: CountRepair[] = []
    for (const table of Object.keys(countedColumns))
      repairs.push(...(await findDifferences(scope, table)))
    for (const repair of repairs) await addDifference(scope, repair)
    return repairs
  }).catch((error: unknown) => {
    if (!(error instanceof LockTaken)) throw error
    throw new Refused('Another process corrects the counts. Wait for its end, then run this again.')
  })
}

async function findDifferences({ accountId, sql }: Scope, table: string): Promise<CountRepair[]> {
  // IDs are stored as text.
  const column = `cast(${countedColumns[table]} as text)`
  const rows = await select<{ value: string; difference: number }>(
    sql,
    `select value, sum(records) as difference from (
       select ${column} as value, count(*) as records from ${table} where account_id = ? group by ${column}
       union all
       select value, -records from record_counts where account_id = ? and list = ?
     ) as differences
     group by value having sum(records) <> 0 order by value`,
    [accountId, accountId, table],
  )
  return rows.map(({ value, difference }) => ({
    account_id: accountId,
    list: table,
    value,
    difference: Number(difference),
  }))
}

async function addDifference(
  { dialect, sql }: Scope,
  { account_id, list, value, difference }: CountRepair,
): Promise<void> {
  const onConflict = `on conflict (account_id, list, value) do update
    set records = records + excluded.records, version = version + excluded.version`
  await sql.raw(
    `insert into record_counts (account_id, list, value, records, version) values (?, ?, ?, ?, ?)
     ${dialect === 'sqlite' ? onConflict : ''}`,
    [account_id, list, value, difference, randomInt(2 ** 31)],
  )
}
