/** Scheduled attempts of all accounts: the backlog (due, not in the queue yet), and the attempts
 *  with a queued mark (`queued_at`), which are in the queue. The rows of `deliveries` are the
 *  source of truth: everything in the queue can be rebuilt from them. */
import type { Attempt } from './attempt.ts'
import type { Db } from './database/open.ts'
import { idIn, jsonRows, type Sql, select } from './database/statements.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'
import { UNQUEUED, UNQUEUED_BY_WEBHOOK } from './index-predicates.ts'

interface ScheduledRow {
  id: string
  webhook_id: string
  account_id: string
  attempts: number
  next_attempt_at: number
}

const COLUMNS = ['id', 'webhook_id', 'account_id', 'attempts', 'next_attempt_at']

const attemptFromRow = (row: ScheduledRow): Attempt => ({
  deliveryId: row.id,
  webhookId: row.webhook_id,
  accountId: row.account_id,
  number: row.attempts + 1,
  scheduledAt: row.next_attempt_at,
})

/** The backlog up to `until`, earliest first, without the deliveries in `skip`. */
export async function listUnqueued(
  db: Db,
  until: Date,
  skip: string[],
  limit: number,
): Promise<Attempt[]> {
  const skipped = idIn(db.dialect, skip)
  const rows: ScheduledRow[] = await db
    .read('deliveries')
    .whereRaw(UNQUEUED)
    .where('next_attempt_at', '<=', until.getTime())
    .whereRaw(`not (${skipped.sql})`, skipped.bindings)
    .orderBy(['next_attempt_at', 'id'])
    .limit(limit)
    .select(COLUMNS)
  return rows.map(attemptFromRow)
}

/** How many more attempts of each webhook may be queued. */
interface FreeQuota {
  byWebhook: ReadonlyMap<string, number>
  /** The same for each webhook that `byWebhook` does not name. */
  ofOthers: number
}

/** The backlog up to `until`: of each webhook as many attempts as its quota allows, without the
 *  deliveries in `skip`. The earliest attempts of all webhooks come first, then their second ones:
 *  one lease of the first attempts of the queue is then for many webhooks, whose concurrency limits
 *  allow only a few each. For each webhook, the query reads at most as many rows as the highest quota
 *  and those in `skip`, however long the backlog is. */
export async function listUnqueuedWithinQuota(
  db: Db,
  until: Date,
  skip: string[],
  { byWebhook, ofOthers }: FreeQuota,
): Promise<Attempt[]> {
  const { dialect } = db
  const skipped = idIn(dialect, skip)
  const free = [...byWebhook].map(([webhook_id, count]) => ({ webhook_id, free: count }))
  const eligible = (limit: string | number): string => `
    select id, attempts, next_attempt_at, account_id from deliveries
    where webhook_id = below_quota.webhook_id and queued_at is null and next_attempt_at <= ?
      and not (${skipped.sql})
    order by next_attempt_at, id limit ${limit}`
  const eligibleBindings = [until.getTime(), ...skipped.bindings]
  // In SQLite, a limit cannot refer to a column.
  const dueInSqlite = (limit: number): string => `
    (select json_group_array(json_array(id, attempts, next_attempt_at, account_id))
     from (select *, row_number() over () as position from (${eligible(limit)}))
     where position <= below_quota.free)`
  const due =
    dialect === 'postgres'
      ? `select json_agg(json_build_array(id, attempts, next_attempt_at, account_id))
         from (${eligible('below_quota.free')}) as candidates`
      : `select iif(below_quota.is_named, ${dueInSqlite(Math.max(0, ...byWebhook.values()))},
           ${dueInSqlite(ofOthers)})`
  // The recursion steps from each webhook to the next by index.
  const text = `
    with recursive backlog(webhook_id) as (
      select * from (
        select webhook_id from deliveries where ${UNQUEUED_BY_WEBHOOK} order by webhook_id limit 1
      ) as first
      union all
      select (
        select webhook_id from deliveries where ${UNQUEUED_BY_WEBHOOK} and webhook_id > backlog.webhook_id
        order by webhook_id limit 1
      ) from backlog where webhook_id is not null)
    select webhook_id, (${due}) as due
    from (
      select backlog.webhook_id, coalesce(input.free, ?) as free,
        input.webhook_id is not null as is_named
      from backlog left join ${jsonRows(dialect, { webhook_id: 'uuid', free: 'integer' })}
        on input.webhook_id = backlog.webhook_id
      where backlog.webhook_id is not null
    ) as below_quota where free > 0`
  const bindings = [
    ...(dialect === 'postgres' ? eligibleBindings : [...eligibleBindings, ...eligibleBindings]),
    ofOthers,
    JSON.stringify(free),
  ]
  const list = (sql: Sql): Promise<BacklogRow[]> => select<BacklogRow>(sql, text, bindings)
  const listByIndex = async ({ sql }: Trx): Promise<BacklogRow[]> => {
    await sql.raw(FORCE_INDEX_ORDER)
    return list(sql)
  }
  const rows = dialect === 'postgres' ? await transaction(db, listByIndex) : await list(db.read)
  const ofWebhooks = rows.map(attemptsOfWebhook)
  const longest = Math.max(0, ...ofWebhooks.map(({ length }) => length))
  const rounds = Array.from({ length: longest }, (_, round) =>
    ofWebhooks.flatMap((attempts) => attempts[round] ?? []),
  )
  return rounds.flat()
}

/** ID of the delivery, number of its finished attempts, time of its next attempt, and ID of its
 *  account. */
type BacklogEntry = [string, number, number, string]

interface BacklogRow {
  webhook_id: string
  /** SQLite returns JSON text. */
  due: string | BacklogEntry[] | null
}

function attemptsOfWebhook({ due, webhook_id }: BacklogRow): Attempt[] {
  const entries: BacklogEntry[] = typeof due === 'string' ? JSON.parse(due) : (due ?? [])
  return entries.map(([id, attempts, next_attempt_at, account_id]) =>
    attemptFromRow({ id, webhook_id, account_id, attempts, next_attempt_at }),
  )
}

/** Planner statistics for the backlog are always stale: sometimes almost every row of `deliveries`
 *  is in it, sometimes almost none. Without this setting, PostgreSQL may read and sort all
 *  deliveries of a webhook. */
const FORCE_INDEX_ORDER = 'set local enable_sort = off'

/** Attempts scheduled at or before `scheduledUntil`, and queued at or before `queuedUntil`: their
 *  jobs may be lost. */
export async function listOverdueQueued(
  db: Db,
  scheduledUntil: Date,
  queuedUntil: Date,
  limit: number,
): Promise<Attempt[]> {
  const rows: ScheduledRow[] = await db
    .read('deliveries')
    .where('next_attempt_at', '<=', scheduledUntil.getTime())
    .where('queued_at', '<=', queuedUntil.getTime())
    // Oldest queued mark first. `repair` in webhooks/engine/repair.ts then renews the marks of
    // these rows, so its next call gets other rows.
    .orderBy('queued_at')
    .limit(limit)
    .select(COLUMNS)
  return rows.map(attemptFromRow)
}

/** A `from` clause: deliveries whose next attempt is still one of those in the JSON parameter. */
const stillScheduled = (dialect: Db['dialect']): string =>
  `${jsonRows(dialect, { accountId: 'uuid', deliveryId: 'uuid', scheduledAt: 'bigint' })}
   join deliveries on deliveries.account_id = input."accountId" and deliveries.id = input."deliveryId"
     and next_attempt_at = input."scheduledAt"`

const attemptKeys = (attempts: Attempt[]): string =>
  JSON.stringify(
    attempts.map(({ accountId, deliveryId, scheduledAt }) => ({
      accountId,
      deliveryId,
      scheduledAt,
    })),
  )

/** Marks attempts as queued, except those that were made or replaced meanwhile, and those whose
 *  rows are locked. */
export async function markQueued(
  { dialect, sql }: Trx,
  attempts: Attempt[],
  now: Date,
): Promise<void> {
  const isPostgres = dialect === 'postgres'
  // Losing these marks in a crash is harmless: the attempts are queued again.
  if (isPostgres) await sql.raw('set local synchronous_commit = off')
  // Skips locked rows: waiting for them in another order than the transactions that store results
  // would deadlock.
  await sql.raw(
    `update deliveries set queued_at = ?
     from (select deliveries.account_id, deliveries.id from ${stillScheduled(dialect)}
       ${isPostgres ? 'for update of deliveries skip locked' : ''}) as markable
     where deliveries.account_id = markable.account_id and deliveries.id = markable.id`,
    [now.getTime(), attemptKeys(attempts)],
  )
}

/** The IDs of the deliveries that still wait for these attempts. */
export async function listStillScheduled(db: Db, attempts: Attempt[]): Promise<Set<string>> {
  const text = `select deliveries.id from ${stillScheduled(db.dialect)}`
  const rows = await select<{ id: string }>(db.read, text, [attemptKeys(attempts)])
  return new Set(rows.map(({ id }) => id))
}

/** Clears the queued mark of every attempt: an embedded queue starts empty. */
export async function clearQueuedMarks(db: Db): Promise<void> {
  await db
    .write('deliveries')
    .whereNotNull('queued_at')
    .whereNotNull('next_attempt_at')
    .update({ queued_at: null })
}

/** The earliest time after `now` for which an attempt with a queued mark is scheduled, in epoch
 *  milliseconds. Undefined: there is none. */
export async function findNextQueuedDueAt(db: Db, now: Date): Promise<number | undefined> {
  const row: { next_attempt_at: number } | undefined = await db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '>', now.getTime())
    .orderBy('next_attempt_at')
    .first('next_attempt_at')
  return row?.next_attempt_at
}

interface QueuedCount {
  accountId: string
  webhookId: string
  count: number
}

/** The number of due attempts in the queue for each webhook that has some, by the queued marks in
 *  the records. */
export async function countQueued(db: Db, now: Date): Promise<QueuedCount[]> {
  // Materialised: otherwise SQLite groups by walking a whole index.
  const due = db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '<=', now.getTime())
    .select('account_id', 'webhook_id')
  const rows: { account_id: string; webhook_id: string; count: number }[] = await db.read
    .withMaterialized('due', due)
    .from('due')
    .groupBy('account_id', 'webhook_id')
    .select('account_id', 'webhook_id')
    .count({ count: '*' })
  return rows.map(({ account_id, webhook_id, count }) => ({
    accountId: account_id,
    webhookId: webhook_id,
    count: Number(count),
  }))
}

/** The earliest time of any scheduled attempt, except those of suspended accounts. Does not read
 *  the backlog of suspended accounts, which may be long. */
export async function findEarliestScheduledAt(db: Db): Promise<number | undefined> {
  const queued: Promise<{ next_attempt_at: number } | undefined> = db
    .read('deliveries')
    .whereNotIn('webhook_id', db.read('webhooks').whereNotNull('suspended_at').select('id'))
    .whereNotNull('queued_at')
    .whereNotNull('next_attempt_at')
    .orderBy('next_attempt_at')
    .first('next_attempt_at')
  const backlog = select<{ earliest: number | null }>(
    db.read,
    `select min((
       select next_attempt_at from deliveries
       where webhook_id = webhooks.id and ${UNQUEUED_BY_WEBHOOK}
       order by next_attempt_at, id limit 1)) as earliest
     from webhooks where suspended_at is null`,
    [],
  )
  const [queuedRow, [backlogRow]] = await Promise.all([queued, backlog])
  const times = [queuedRow?.next_attempt_at, backlogRow?.earliest].flatMap((time) => time ?? [])
  return times.length > 0 ? Math.min(...times) : undefined
}

/** Schedules the first pending delivery of each ordering key that has no scheduled delivery, for
 *  example because the delivery before it was cancelled. */
export async function scheduleStuckInOrder(db: Db, now: Date, limit: number): Promise<void> {
  // A scheduled delivery goes first even if its ID is later: the clocks of the nodes that create
  // IDs differ slightly.
  const unfinishedInOrder = (table: string): string =>
    `${table}.ordering_key is not null and ${table}.state in ('pending', 'retrying')`
  const stuck: { id: string }[] = await db
    .read('deliveries')
    .whereRaw(unfinishedInOrder('deliveries'))
    .where('deliveries.state', 'pending')
    .whereNull('deliveries.next_attempt_at')
    .whereRaw(
      `not exists (select 1 from deliveries as other where other.account_id = deliveries.account_id
         and other.webhook_id = deliveries.webhook_id and other.ordering_key = deliveries.ordering_key and ${unfinishedInOrder('other')}
         and (other.id < deliveries.id
           or (other.next_attempt_at is not null and other.id > deliveries.id)))`,
    )
    .limit(limit)
    .select('deliveries.id')
  if (stuck.length === 0) return
  await transaction(db, async (trx) => {
    const scheduled = await trx
      .sql('deliveries')
      .whereIn(
        'id',
        stuck.map(({ id }) => id),
      )
      .where({ state: 'pending' })
      .whereNull('next_attempt_at')
      .update({ next_attempt_at: now.getTime(), queued_at: null })
    if (scheduled > 0) trx.announce(ATTEMPTS_SCHEDULED)
  })
}
