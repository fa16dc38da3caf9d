/** PostgreSQL: drops outdated weeks of the tables in records/weeks.ts. A week is outdated when all of its IDs
 *  are. Until then its outdated rows stay, so rows stay for up to a week longer than without partitions. */
import { jsonRows, type Sql, select } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { LOWEST_ID, lowestIdAt, timeOfId } from './ids.ts'
import { UNDELIVERED, UNQUEUED_BY_WEBHOOK } from './index-predicates.ts'
import type { RemovalRun, RemovedRows } from './removal-run.ts'
import { HOUR_MS } from './time-units.ts'
import { listWeeks, WEEK_MS, type WeeklyTable, waitBriefly, withBriefLocks } from './weeks.ts'

/** Has a scheduled attempt, or waits for an earlier delivery of its ordering key. */
export const IS_UNFINISHED =
  "(deliveries.next_attempt_at is not null or deliveries.state in ('pending', 'retrying'))"

/** Batches remove rows with lower IDs. In a table with weeks, these are the rows before the oldest week that is
 *  not a week late: those of weeks that could not be dropped, for example because of unfinished deliveries, and
 *  those of no week. The first partition has the rows from before the split, so its outdated rows cannot wait for its
 *  end. */
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

/** A range of IDs, and the partitions that have just these. */
interface OutdatedWeek {
  from: string
  until: string
  partitions: Partial<Record<WeeklyTable, string>>
}

/** Drops each week of the tables whose IDs are all below `below`, if `prepare` returns true: it runs in the
 *  transaction before, at least once, and must not write if it returns false. The partitions of all tables go in one
 *  transaction. */
export async function dropWeeks(
  run: RemovalRun,
  {
    tables,
    below,
    prepare,
  }: {
    tables: WeeklyTable[]
    below: string
    prepare?: (trx: Trx, week: OutdatedWeek) => Promise<boolean>
  },
): Promise<void> {
  if (run.db.dialect === 'sqlite') return
  for (const week of await listOutdated(run.db.read, tables, below))
    await withBriefLocks(() =>
      run.batch(async (trx) => {
        await waitBriefly(trx)
        await trx.sql.raw(`set local statement_timeout = ${MAX_READ_MS}`)
        if (prepare && !(await prepare(trx, week))) return {}
        const removed = await estimateRows(trx.sql, week)
        await trx.sql.raw(`drop table ${Object.values(week.partitions).join(', ')}`)
        return removed
      }),
    )
}

/** Oldest first. */
async function listOutdated(
  sql: Sql,
  tables: WeeklyTable[],
  below: string,
): Promise<OutdatedWeek[]> {
  const weeks = new Map<string, OutdatedWeek>()
  for (const table of tables)
    for (const { name, from, until } of await listWeeks(sql, table)) {
      const key = `${until} ${from}`
      const week = weeks.get(key) ?? { from, until, partitions: {} }
      week.partitions[table] = name
      if (until <= below) weeks.set(key, week)
    }
  return [...weeks].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, week]) => week)
}

/** Counting the rows exactly would read all of them. */
async function estimateRows(sql: Sql, { partitions }: OutdatedWeek): Promise<RemovedRows> {
  const removed: RemovedRows = {}
  for (const [table, name] of Object.entries(partitions)) {
    const [found] = await select<{ rows: number }>(
      sql,
      'select reltuples as rows from pg_class where oid = to_regclass(?)',
      [name],
    )
    removed[table] = Math.max(0, Math.round(Number(found?.rows)))
  }
  return removed
}

/** Neither the deliveries with these IDs nor those of events with these IDs have a scheduled attempt or wait
 *  for an earlier delivery. Each condition has an index. */
async function areFinished(sql: Sql, { from, until }: OutdatedWeek): Promise<boolean> {
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

/** Recent attempts of old deliveries stay. */
export async function prepareAttempts(
  { sql }: Trx,
  week: OutdatedWeek,
  startedBefore: number,
): Promise<boolean> {
  if (!(await areFinished(sql, week))) return false
  // Until the end of the transaction, nothing stores another attempt of these deliveries.
  const { attempts = 'attempts' } = week.partitions
  await sql.raw(`lock table ${attempts} in share mode`)
  if (!(await areFinished(sql, week))) return false
  const recent = sql(attempts).where('started_at', '>=', startedBefore).first('number')
  return (await recent.options({ query_timeout: MAX_READ_MS })) === undefined
}

/** The most deliveries of later weeks that lose their event while the tables are locked. Bulk jobs that send missed
 *  events may have created more. */
const MAX_LATER_DELIVERIES = 2_000

/** Events with their deliveries and attempts. An event without deliveries would look like a missed event, and be
 *  sent again. */
export async function prepareEvents({ sql }: Trx, week: OutdatedWeek): Promise<boolean> {
  const { from, until, partitions } = week
  if (!(await isWhole(sql, week))) return false
  const laterDeliveries = sql('deliveries')
    .whereRaw('(id < ? or id >= ?)', [from, until])
    .where('event_id', '>=', from)
    .where('event_id', '<', until)
  const later = await laterDeliveries
    .clone()
    .limit(MAX_LATER_DELIVERIES + 1)
    .pluck('id')
  if (later.length > MAX_LATER_DELIVERIES) return false
  const deletions = await findAccountDeletions(sql)
  const counts = await countRows(sql, week)
  // In the order in which changes lock the tables. A retry may have scheduled an attempt meanwhile.
  const tables = (['events', 'deliveries', 'attempts'] as const).filter(
    (table) => partitions[table],
  )
  await sql.raw(
    `lock table ${tables.map((table) => `only ${table}`).join(', ')} in access exclusive mode`,
  )
  if (!(await isWhole(sql, week))) return false
  // Only the deletion of an account can have removed rows that are counted here.
  const { total, completed } = await findAccountDeletions(sql)
  if (total !== completed || total !== deletions.completed) return false
  await subtractCounts(sql, counts)
  await laterDeliveries.update({ event_id: null })
  return true
}

/** The week is finished, and no other partition has rows of it. Those are removed in batches, a week later. */
async function isWhole(sql: Sql, week: OutdatedWeek): Promise<boolean> {
  if (!(await areFinished(sql, week))) return false
  for (const [table, column] of [
    ['attempts', 'delivery_id'],
    ['deliveries', 'id'],
    ['events', 'id'],
  ] as const) {
    if (week.partitions[table]) continue
    const rows = sql(table).where(column, '>=', week.from).where(column, '<', week.until)
    if ((await rows.first(column)) !== undefined) return false
  }
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

/** The rows of a week by account, list and counted value, as JSON. Indexes have all of it. */
async function countRows(sql: Sql, { partitions }: OutdatedWeek): Promise<string> {
  const { deliveries, events } = partitions
  const counted = [
    deliveries &&
      `select account_id, 'deliveries' as list, cast(webhook_id as text) as value, records
       from (select webhook_id, count(*) as records from ${deliveries} group by 1) as counted
       join webhooks on webhooks.id = webhook_id`,
    events &&
      `select account_id, 'events', event_type, count(*) from ${events} group by account_id, event_type`,
  ].filter(Boolean)
  if (counted.length === 0) return '[]'
  const { rows } = await sql
    .raw(
      `select cast(json_agg(counts) as text) as counts from (${counted.join(' union all ')}) as counts`,
    )
    .options({ query_timeout: MAX_READ_MS })
  return rows[0].counts ?? '[]'
}

async function subtractCounts(sql: Sql, counts: string): Promise<void> {
  const types = { account_id: 'uuid', list: 'text', value: 'text', records: 'bigint' }
  await sql.raw(
    `insert into record_counts (account_id, list, value, records, version)
     select account_id, list, value, -records, floor(random() * 2147483648) from ${jsonRows('postgres', types)}`,
    [counts],
  )
}
