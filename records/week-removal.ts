/** PostgreSQL: drops outdated weeks of the tables in records/weeks.ts. A week is outdated when all of its IDs
 *  are. Until then its outdated rows stay, so rows stay for up to a week longer than without partitions. */
import { jsonRows, type Sql, select } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { LOWEST_ID, lowestIdAt, timeOfId } from './ids.ts'
import { UNDELIVERED, UNQUEUED_BY_WEBHOOK } from './index-predicates.ts'
import { countedColumns } from './record-counts.ts'
import type { RemovalRun } from './removal-run.ts'
import { HOUR_MS } from './time-units.ts'
import {
  listWeeks,
  WEEK_MS,
  type Week,
  type WeeklyTable,
  waitBriefly,
  withBriefLocks,
} from './weeks.ts'

/** Has a scheduled attempt, or waits for an earlier delivery of its ordering key. */
export const IS_UNFINISHED =
  "(deliveries.next_attempt_at is not null or deliveries.state in ('pending', 'retrying'))"

/** Batches remove rows with lower IDs. In a table with weeks, these are the rows before the oldest week that is
 *  not a week late: those of weeks that could not be dropped, because of unfinished deliveries, and those of no
 *  week. The first partition has the rows from before the split, so its outdated rows cannot wait for its end. */
export async function batchesBelow(
  { db }: RemovalRun,
  table: WeeklyTable,
  below: string,
): Promise<string> {
  const weeks = db.dialect === 'postgres' ? await listWeeks(db.read, table) : []
  const late = lowestIdAt(timeOfId(below) - WEEK_MS)
  const next = weeks.find(({ until }) => until > late)
  if (next === undefined) return below
  const end = next.from === LOWEST_ID ? next.until : next.from
  return end < below ? end : below
}

/** Reading all rows of a week may take longer than other statements. Without this, an error would end each run of
 *  the retention at that week. */
const MAX_READ_MS = HOUR_MS / 4

/** Drops each week of the table whose IDs are all below `below`, if `prepare` returns true: it runs in the
 *  transaction before, at least once. */
export async function dropWeeks(
  run: RemovalRun,
  {
    table,
    below,
    prepare,
  }: {
    table: WeeklyTable
    below: string
    prepare?: (trx: Trx, week: Week) => Promise<boolean>
  },
): Promise<void> {
  if (run.db.dialect === 'sqlite') return
  for (const week of await listWeeks(run.db.read, table)) {
    if (week.until > below) return
    await withBriefLocks(() =>
      run.batch(async (trx) => {
        await waitBriefly(trx)
        await trx.sql.raw(`set local statement_timeout = ${MAX_READ_MS}`)
        if (prepare && !(await prepare(trx, week))) return {}
        const rows = await estimateRows(trx.sql, week)
        await trx.sql.raw(`drop table ${week.name}`)
        return { [table]: rows }
      }),
    )
  }
}

/** Counting the rows exactly would read all of them. */
async function estimateRows(sql: Sql, { name }: Week): Promise<number> {
  const [table] = await select<{ rows: number }>(
    sql,
    'select reltuples as rows from pg_class where oid = to_regclass(?)',
    [name],
  )
  return Math.max(0, Math.round(Number(table?.rows)))
}

/** Neither the deliveries with these IDs nor those of events with these IDs have a scheduled attempt or wait
 *  for an earlier delivery. Each condition has an index. */
async function areFinished(sql: Sql, { from, until }: Week): Promise<boolean> {
  const isOfWeek = 'id >= ? and id < ?'
  const unfinished = [
    'queued_at is not null and next_attempt_at is not null',
    UNQUEUED_BY_WEBHOOK,
    `${UNDELIVERED} and state in ('pending', 'retrying')`,
  ]
  const range = [from, until]
  const conditions = [
    ...unfinished.map((condition) => `${isOfWeek} and ${condition}`),
    // Without the deliveries of the week, all of which this would read.
    `(id < ? or id >= ?) and event_id >= ? and event_id < ? and ${IS_UNFINISHED}`,
  ]
  const [found] = await select<{ exists: boolean }>(
    sql,
    `select ${conditions.map((condition) => `exists (select 1 from deliveries where ${condition})`).join(' or ')} as exists`,
    [...unfinished.flatMap(() => range), ...range, ...range],
  )
  return found?.exists === false
}

/** `startedBefore`: recent attempts of old deliveries stay. Undefined: the deliveries are outdated, too. */
export async function prepareAttempts(
  { sql }: Trx,
  week: Week,
  startedBefore: number | undefined,
): Promise<boolean> {
  if (!(await areFinished(sql, week))) return false
  // Until the end of the transaction, nothing stores another attempt of these deliveries.
  await sql.raw(`lock table ${week.name} in share mode`)
  if (!(await areFinished(sql, week))) return false
  if (startedBefore === undefined) return true
  const recent = sql(week.name).where('started_at', '>=', startedBefore).first('number')
  return (await recent.options({ query_timeout: MAX_READ_MS })) === undefined
}

export async function prepareDeliveries({ sql }: Trx, week: Week): Promise<boolean> {
  if (!(await areFinished(sql, week))) return false
  const attempt = sql('attempts')
    .where('delivery_id', '>=', week.from)
    .where('delivery_id', '<', week.until)
  if ((await attempt.first('number')) !== undefined) return false
  const deletions = await findAccountDeletions(sql)
  const counts = await countRows(sql, 'deliveries', week)
  // A retry may schedule an attempt meanwhile.
  await sql.raw('lock table deliveries in access exclusive mode')
  if (!(await areFinished(sql, week))) return false
  // Only the deletion of an account can have removed rows that are counted here.
  const { total, completed } = await findAccountDeletions(sql)
  if (total !== completed || total !== deletions.completed) return false
  await subtractCounts(sql, 'deliveries', counts)
  return true
}

/** The deletions of accounts, whose rows are never removed. */
async function findAccountDeletions(sql: Sql): Promise<{ total: number; completed: number }> {
  const [found] = await select<{ total: number; completed: number }>(
    sql,
    'select count(*) as total, count(completed_at) as completed from account_deletions',
    [],
  )
  return { total: Number(found?.total), completed: Number(found?.completed) }
}

/** The rows of a week by account and counted value, as JSON. */
async function countRows(sql: Sql, table: WeeklyTable, { name }: Week): Promise<string> {
  // Reads all rows anyway, but the connection prefers an index.
  await sql.raw('set local enable_seqscan = on')
  const { rows } = await sql
    .raw(
      `select cast(json_agg(counted) as text) as counts from (
         select account_id, cast(${countedColumns[table]} as text) as value, count(*) as records
         from ${name} group by 1, 2) as counted`,
    )
    .options({ query_timeout: MAX_READ_MS })
  await sql.raw('set local enable_seqscan = off')
  return rows[0].counts ?? '[]'
}

async function subtractCounts(sql: Sql, table: WeeklyTable, counts: string): Promise<void> {
  const input = jsonRows('postgres', { account_id: 'uuid', value: 'text', records: 'bigint' })
  await sql.raw(
    `insert into record_counts (account_id, list, value, records, version)
     select account_id, ?, value, -records, floor(random() * 2147483648) from ${input}`,
    [table, counts],
  )
}

/** Removes the events from the counts, and from deliveries that were created later. */
export async function prepareEvents({ sql }: Trx, week: Week): Promise<boolean> {
  if (!(await areFinished(sql, week))) return false
  const delivery = sql('deliveries').where('id', '>=', week.from).where('id', '<', week.until)
  if ((await delivery.first('id')) !== undefined) return false
  await sql('deliveries')
    .where('event_id', '>=', week.from)
    .where('event_id', '<', week.until)
    .update({ event_id: null })
  await sql.raw(`lock table ${week.name} in share mode`)
  await subtractCounts(sql, 'events', await countRows(sql, 'events', week))
  return true
}
