/** PostgreSQL: tables in partitions of a week, so that retention drops a week at once. IDs are UUIDv7, so a
 *  range of IDs is a range of time. `muster migrate --weekly` splits the tables. */
import { setTimeout as delay } from 'node:timers/promises'
import { Refused } from '../errors.ts'
import { errorCode } from './database/errors.ts'
import type { Db } from './database/open.ts'
import { type Sql, select } from './database/statements.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { LOWEST_ID, lowestIdAt, timeOfId } from './ids.ts'
import { DAY_MS } from './time-units.ts'

export const WEEK_MS = 7 * DAY_MS
/** 5 January 1970. */
const FIRST_MONDAY_MS = 4 * DAY_MS
/** How many weeks after the present one have a partition. */
const WEEKS_AHEAD = 4
/** How many weeks after the present one begins the first partition ends. A call of `splitByWeek` that was killed
 *  leaves a constraint, with which PostgreSQL would refuse the rows of later weeks. */
const FIRST_WEEKS = 2
/** Such a constraint is removed this long before. */
const MIN_CHECK_MS = 3 * DAY_MS

/** The column of the partition key, by table. */
const KEY_COLUMNS = {
  attempts: 'delivery_id',
  deliveries: 'id',
  events: 'id',
  request_log: 'id',
} as const
export type WeeklyTable = keyof typeof KEY_COLUMNS
export const weeklyTables = Object.keys(KEY_COLUMNS) as WeeklyTable[]

/** Rows of no other partition: a clock was wrong, or no partition was created for a long time. */
const strayTable = (table: WeeklyTable): string => `${table}_other`

export interface Week {
  /** The name of the partition. */
  name: string
  /** The IDs of its rows: `from` inclusive, `until` exclusive. */
  from: string
  until: string
}

/** The weeks of a table, oldest first, without the partition for other rows. Empty: the table has no
 *  partitions. */
export async function listWeeks(sql: Sql, table: WeeklyTable): Promise<Week[]> {
  const rows = await select<{ name: string; bound: string }>(
    sql,
    `select relname as name, pg_get_expr(relpartbound, oid) as bound
     from pg_inherits join pg_class on oid = inhrelid where inhparent = to_regclass(?)`,
    [table],
  )
  const weeks = rows.flatMap(({ name, bound }) => {
    const [, from, until] = /^FOR VALUES FROM \((.*)\) TO \(.(.*).\)$/.exec(bound) ?? []
    if (until === undefined) return []
    return [{ name, from: from === 'MINVALUE' ? LOWEST_ID : String(from).slice(1, -1), until }]
  })
  return weeks.sort((a, b) => (a.until < b.until ? -1 : 1))
}

/** The Monday, 00:00 UTC, of the week of a time. */
const startOfWeek = (epochMs: number): number => epochMs - ((epochMs - FIRST_MONDAY_MS) % WEEK_MS)

/** How long a change of the partitions waits for statements that use the table, and later statements for
 *  it. */
const LOCK_WAIT_MS = 20
const LOCK_TRIES = 50
const LOCK_RETRY_MS = 200
/** How long a machine that fails between two statements keeps the table locked. */
const MAX_IDLE_MS = 2_000

/** Repeats a transaction that begins with `waitBriefly`. Undefined: the table was always in use. */
export async function withBriefLocks<T>(run: () => Promise<T>): Promise<T | undefined> {
  for (let tries = 1; tries <= LOCK_TRIES; tries++)
    try {
      return await run()
    } catch (error) {
      if (!['55P03', '40P01'].includes(errorCode(error))) throw error
      await delay(LOCK_RETRY_MS)
    }
  return undefined
}

export async function waitBriefly({ sql }: Pick<Trx, 'sql'>): Promise<void> {
  await sql.raw(
    `set local lock_timeout = ${LOCK_WAIT_MS}; set local idle_in_transaction_session_timeout = ${MAX_IDLE_MS}`,
  )
}

/** Creates the partitions of the present week and of the `WEEKS_AHEAD` weeks after it, unless the table is not
 *  split. Returns whether the partition for other rows has some. */
export async function createWeeks(db: Db, table: WeeklyTable, now: number): Promise<boolean> {
  if (db.dialect === 'sqlite') return false
  const weeks = await listWeeks(db.read, table)
  if (weeks.length === 0) {
    await dropOldCheck(db, table, now)
    return false
  }
  if (missingWeeks(weeks, now).length > 0) await changeTable(db, table, createMissing(table, now))
  return (await countStrays(db.read, table, 1)) > 0
}

/** A week whose rows are already in the partition for other rows gets no partition. */
function createMissing(table: WeeklyTable, now: number): (trx: Trx) => Promise<void> {
  return async ({ sql }) => {
    const weeks = await listWeeks(sql, table)
    for (const start of missingWeeks(weeks, now))
      if (!(await hasStrays(sql, table, start)))
        await sql.raw(await partitionSql(sql, table, start, weeks[0]?.name ?? table))
  }
}

/** The starts of the weeks that overlap no partition. */
function missingWeeks(weeks: Week[], now: number): number[] {
  const present = startOfWeek(now)
  return Array.from({ length: 1 + WEEKS_AHEAD }, (_, index) => present + index * WEEK_MS).filter(
    (start) =>
      !weeks.some(
        ({ from, until }) => from < lowestIdAt(start + WEEK_MS) && until > lowestIdAt(start),
      ),
  )
}

async function dropOldCheck(db: Db, table: WeeklyTable, now: number): Promise<void> {
  const [check] = await select<{ definition: string }>(
    db.read,
    `select pg_get_constraintdef(oid) as definition from pg_constraint
     where conrelid = to_regclass(?) and conname = ?`,
    [table, checkOf(table)],
  )
  const until = check && /'([\da-f-]+)'/.exec(check.definition)?.[1]
  if (until !== undefined && timeOfId(until) < now + MIN_CHECK_MS)
    await changeTable(db, table, async ({ sql }) => {
      await sql.raw(`alter table ${table} drop constraint if exists ${checkOf(table)}`)
    })
}

async function hasStrays(sql: Sql, table: WeeklyTable, start: number): Promise<boolean> {
  const column = KEY_COLUMNS[table]
  const [stray] = await select(
    sql,
    `select 1 from ${strayTable(table)} where ${column} >= ? and ${column} < ? limit 1`,
    [lowestIdAt(start), lowestIdAt(start + WEEK_MS)],
  )
  return stray !== undefined
}

/** `like`: a table whose settings for autovacuum the partition gets, too. */
async function partitionSql(
  sql: Sql,
  table: WeeklyTable,
  start: number,
  like: string,
): Promise<string> {
  const [found] = await select<{ settings: string | null }>(
    sql,
    `select array_to_string(reloptions, ', ') as settings from pg_class where oid = to_regclass(?)`,
    [like],
  )
  const day = new Date(start).toISOString().slice(0, 10).replaceAll('-', '')
  const settings = found?.settings ? ` with (${found.settings})` : ''
  // By this, retention finds recent attempts of old deliveries. Otherwise, it would read the whole week.
  const index = `create index on ${table}_${day} using brin (started_at) with (autosummarize = on)`
  return `create table ${table}_${day} partition of ${table}
    for values from ('${lowestIdAt(start)}') to ('${lowestIdAt(start + WEEK_MS)}')${settings}
    ${table === 'attempts' ? `;${index}` : ''}`
}

/** The rows in the partition for other rows, up to `limit`. */
async function countStrays(sql: Sql, table: WeeklyTable, limit: number): Promise<number> {
  const [row] = await select<{ total: number }>(
    sql,
    `select count(*) as total from (select from ${strayTable(table)} limit ?) as rows`,
    [limit],
  )
  return Number(row?.total)
}

const MAX_COUNTED_STRAYS = 1_000

/** The number of rows that no week has, at most `MAX_COUNTED_STRAYS` for each table with weeks. */
export async function countAllStrays(db: Db): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  if (db.dialect === 'sqlite') return counts
  for (const table of weeklyTables)
    if ((await listWeeks(db.read, table)).length > 0)
      counts[table] = await countStrays(db.read, table, MAX_COUNTED_STRAYS)
  return counts
}

/** Splits the tables that have no partitions yet. The present rows become the first partition and are not
 *  copied: PostgreSQL reads them once, while nodes write. An interrupted call can be repeated. Returns the
 *  tables that it has split. Nodes of versions that know no partitions refuse the database afterwards. */
export async function splitByWeek(db: Db, now: number): Promise<WeeklyTable[]> {
  if (db.dialect === 'sqlite')
    throw new Refused('Only PostgreSQL has partitions. DATABASE_URL is not set.')
  const until = lowestIdAt(startOfWeek(now) + FIRST_WEEKS * WEEK_MS)
  const whole: WeeklyTable[] = []
  for (const table of weeklyTables)
    if ((await listWeeks(db.read, table)).length === 0) whole.push(table)
  for (const table of whole) await assertNoneLater(db.read, table, until)
  for (const table of whole) await splitTable(db, table, now, until)
  return whole
}

async function assertNoneLater(sql: Sql, table: WeeklyTable, until: string): Promise<void> {
  const column = KEY_COLUMNS[table]
  const [later] = await select<{ id: string }>(
    sql,
    `select ${column} as id from ${table} where ${column} >= ? limit 1`,
    [until],
  )
  if (later !== undefined)
    throw new Refused(
      `The table ${table} has rows of the future, for example ${later.id}: a clock was wrong. Delete them with psql: ` +
        `delete from ${table} where ${column} >= '${until}'`,
    )
}

/** `until`: the end of the first partition. */
async function splitTable(db: Db, table: WeeklyTable, now: number, until: string): Promise<void> {
  const column = KEY_COLUMNS[table]
  const check = checkOf(table)
  // Without a validated constraint, PostgreSQL would read all rows while every statement waits.
  await changeTable(db, table, async ({ sql }) => {
    await sql.raw(`alter table ${table} drop constraint if exists ${check}`)
    await sql.raw(
      `alter table ${table} add constraint ${check} check (${column} < '${until}') not valid`,
    )
  })
  await db.write.raw(`alter table ${table} validate constraint ${check}`)
  await changeTable(db, table, async (trx) => {
    const { sql } = trx
    await assertChecked(sql, table)
    const first = `${table}_first`
    await sql.raw(await attachSql(sql, table, { name: first, from: LOWEST_ID, until }))
    await sql.raw(`alter table ${first} drop constraint ${check}`)
    await sql.raw(`create table ${strayTable(table)} partition of ${table} default`)
    await createMissing(table, now)(trx)
  })
}

/** Throws `Refused` if another call has removed the constraint meanwhile, or has split the table. */
async function assertChecked(sql: Sql, table: WeeklyTable): Promise<void> {
  const [check] = await select(
    sql,
    `select 1 from pg_constraint where conrelid = to_regclass(?) and conname = ? and convalidated`,
    [table, checkOf(table)],
  )
  if (check === undefined)
    throw new Refused(`Another command is splitting the table ${table}. Wait until it has ended.`)
}

const checkOf = (table: WeeklyTable): string => `${table}_split`

/** Locks the table, and throws `Refused` if it was always in use. */
async function changeTable(
  db: Db,
  table: WeeklyTable,
  change: (trx: Trx) => Promise<void>,
): Promise<void> {
  const isChanged = await withBriefLocks(() =>
    transaction(db, async (trx) => {
      await waitBriefly(trx)
      await trx.sql.raw(`lock table ${table} in access exclusive mode`)
      await change(trx)
      return true
    }),
  )
  if (!isChanged)
    throw new Refused(
      `The table ${table} was in use all the time, perhaps by a backup or a long query. Try again later.`,
    )
}

/** Statements that replace a table by one with partitions, and attach the table as the first. The new table
 *  gets the names of keys, indexes and triggers: nodes compare these with the schema that they need. */
async function attachSql(sql: Sql, table: WeeklyTable, first: Week): Promise<string> {
  const objects = await select<{ rename: string | null; create: string }>(
    sql,
    `select format('alter table %I rename constraint %I to %I', :table, conname, :first || substr(conname, :after)) as rename,
       format('alter table %I add constraint %I %s', :table, conname, pg_get_constraintdef(oid)) as create
     from pg_constraint where conrelid = to_regclass(:table) and contype in ('p', 'f')
     union all
     select format('alter index %I rename to %I', relname, :first || substr(relname, :after)),
       pg_get_indexdef(oid)
     from pg_index join pg_class on oid = indexrelid
     where indrelid = to_regclass(:table) and not exists (select 1 from pg_constraint where conindid = indexrelid)
     union all
     select format('drop trigger %I on %I', tgname, :table), pg_get_triggerdef(oid)
     from pg_trigger where tgrelid = to_regclass(:table) and not tgisinternal`
      .replaceAll(':table', `'${table}'`)
      .replaceAll(':first', `'${first.name}'`)
      .replaceAll(':after', String(table.length + 1)),
    [],
  )
  return [
    ...objects.map(({ rename }) => rename),
    `alter table ${table} rename to ${first.name}`,
    `create table ${table} (like ${first.name} including defaults) partition by range (${KEY_COLUMNS[table]})`,
    ...objects.map(({ create }) => create),
    `alter table ${table} attach partition ${first.name} for values from (minvalue) to ('${first.until}')`,
  ].join(';\n')
}
