/** Planned attempts, over all accounts: which are due, which are queued, and what each needs. The rows are the truth, and whatever the queue holds
 *  can be made again from them. */

import type { Db } from './database/open.ts'
import { jsonRows, runInOrder, type Sql, select } from './database/statements.ts'
import { type Trx, transaction } from './database/transaction.ts'
import type { Trigger } from './deliveries.ts'
import { ATTEMPTS_SCHEDULED, type PlannedAttempt } from './due-work.ts'

interface PlannedRow {
  id: string
  webhook_id: string
  attempts: number
  next_attempt_at: number
}

const plannedFromRow = (row: PlannedRow): PlannedAttempt => ({
  deliveryId: row.id,
  webhookId: row.webhook_id,
  number: row.attempts + 1,
  dueAt: row.next_attempt_at,
})

/** Word for word as in the index by time, and not as in the one by webhook. */
const IS_UNQUEUED = 'queued_at is null and next_attempt_at > 0'

/** Attempts due up to `dueUntil` that the records do not know to be in the queue, earliest first, but not of these deliveries. */
export async function listUnqueued(
  db: Db,
  dueUntil: Date,
  leftOut: string[],
  limit: number,
): Promise<PlannedAttempt[]> {
  const rows: PlannedRow[] = await db
    .read('deliveries')
    .whereRaw(IS_UNQUEUED)
    .where('next_attempt_at', '<=', dueUntil.getTime())
    .whereRaw(...noneOf(db.dialect, leftOut))
    .orderBy(['next_attempt_at', 'id'])
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  return rows.map(plannedFromRow)
}

/** The same for each webhook by itself: at most `limit` of it, less what `taken` says. What waits of one costs the others nothing, however much it
 *  is: it is not even read. */
export async function listUnqueuedOfEach(
  db: Db,
  dueUntil: Date,
  leftOut: string[],
  limit: number,
  taken: Map<string, number>,
): Promise<PlannedAttempt[]> {
  const { dialect } = db
  const unqueued = 'queued_at is null and next_attempt_at is not null'
  const [isOther, ids] = noneOf(dialect, leftOut)
  const rooms = [...taken].map(([webhook_id, count]) => ({ webhook_id, room: limit - count }))
  const listOf =
    dialect === 'postgres' ? 'json_agg(json_build_array' : 'json_group_array(json_array'
  // From each webhook to the next, by index.
  const text = `
    with recursive waiting(webhook_id) as (
      select * from (select webhook_id from deliveries where ${unqueued} order by webhook_id limit 1) as first
      union all
      select (select webhook_id from deliveries where ${unqueued} and webhook_id > waiting.webhook_id order by webhook_id limit 1)
      from waiting where webhook_id is not null)
    select webhook_id, (
      select ${listOf}(id, attempts, next_attempt_at)) from (
        select id, attempts, next_attempt_at, row_number() over (order by next_attempt_at, id) as place from deliveries
        where webhook_id = with_room.webhook_id and queued_at is null and next_attempt_at <= ? and ${isOther}
        order by next_attempt_at, id limit ?
      ) as due where place <= with_room.room
    ) as due
    from (
      select waiting.webhook_id, coalesce(input.room, ?) as room
      from waiting left join ${jsonRows(dialect, { webhook_id: 'uuid', room: 'integer' })} on input.webhook_id = waiting.webhook_id
      where waiting.webhook_id is not null
    ) as with_room where room > 0`
  const bindings = [dueUntil.getTime(), ...ids, limit, limit, JSON.stringify(rooms)]
  const list = (sql: Sql): Promise<Waiting[]> => select<Waiting>(sql, text, bindings)
  const listByIndex = async ({ sql }: Trx): Promise<Waiting[]> => {
    await sql.raw(BY_INDEX)
    return list(sql)
  }
  const rows = dialect === 'postgres' ? await transaction(db, listByIndex) : await list(db.read)
  return rows.flatMap(({ webhook_id, due }) =>
    // PostgreSQL's has been parsed already.
    ((typeof due === 'string' ? JSON.parse(due) : (due ?? [])) as Due[]).map(
      ([id, attempts, next_attempt_at]) =>
        plannedFromRow({ id, webhook_id, attempts, next_attempt_at }),
    ),
  )
}

interface Waiting {
  webhook_id: string
  due: string | Due[] | null
}

/** Of what waits the planner's statistics say little: it can be nearly all of the rows at one moment and nearly none at the next. Left to itself it
 *  may read and sort all that a webhook ever got. */
const BY_INDEX = 'set local enable_sort = off'

/** Id, attempts made and due time. */
type Due = [string, number, number]

/** A condition of one parameter, however many ids. */
function noneOf(dialect: Db['dialect'], ids: string[]): [string, string[]] {
  if (ids.length === 0) return ['true', []]
  return [
    dialect === 'postgres' ? 'id <> all (?::uuid[])' : 'id not in (select value from json_each(?))',
    [asList(dialect, ids)],
  ]
}

/** The value of such a parameter. */
function asList(dialect: Db['dialect'], ids: string[]): string {
  return dialect === 'postgres' ? `{${ids.join(',')}}` : JSON.stringify(ids)
}

/** Attempts overdue at `overdueAt` that were given to the queue at or before `queuedUntil`: their jobs may have been lost. */
export async function listOverdueQueued(
  db: Db,
  overdueAt: Date,
  queuedUntil: Date,
  limit: number,
): Promise<PlannedAttempt[]> {
  const rows: PlannedRow[] = await db
    .read('deliveries')
    .where('next_attempt_at', '<=', overdueAt.getTime())
    .where('queued_at', '<=', queuedUntil.getTime())
    // Those that wait longest for their turn are not those that were lost: every one is looked at in time.
    .orderBy('queued_at')
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  return rows.map(plannedFromRow)
}

/** The deliveries that still want the attempts of one JSON parameter, as a statement's `from`. */
const stillPlanned = (dialect: Db['dialect']): string =>
  `${jsonRows(dialect, { deliveryId: 'uuid', dueAt: 'bigint' })} join deliveries
   on deliveries.id = input."deliveryId" and next_attempt_at = input."dueAt"`

/** Notes that the queue has these, unless one has been made or replaced since, or is at this moment. */
export async function markQueued(
  { dialect, sql }: Trx,
  planned: PlannedAttempt[],
  now: Date,
): Promise<void> {
  const isPostgres = dialect === 'postgres'
  // After a crash of the database they are queued again: no need to wait for the disk.
  if (isPostgres) await sql.raw('set local synchronous_commit = off')
  // Waiting for rows in another order than those who settle them would be a deadlock.
  await sql.raw(
    `update deliveries set queued_at = ? where id in (
       select deliveries.id from ${stillPlanned(dialect)}
       ${isPostgres ? 'for update of deliveries skip locked' : ''})`,
    [now.getTime(), JSON.stringify(planned)],
  )
}

/** Those of the attempts that are still to be made, by the ids of their deliveries. */
export async function listStillPlanned(db: Db, planned: PlannedAttempt[]): Promise<Set<string>> {
  const text = `select deliveries.id from ${stillPlanned(db.dialect)}`
  const rows = await select<{ id: string }>(db.read, text, [JSON.stringify(planned)])
  return new Set(rows.map(({ id }) => id))
}

/** Forgets what the queue had: it is empty after a start of the embedded database. */
export async function markNoneQueued(db: Db): Promise<void> {
  await db
    .write('deliveries')
    .whereNotNull('queued_at')
    .whereNotNull('next_attempt_at')
    .update({ queued_at: null })
}

/** When the next attempt after `now` is planned, of those the queue has. */
export async function findNextQueuedDueAt(db: Db, now: Date): Promise<number | undefined> {
  const row: { next_attempt_at: number } | undefined = await db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '>', now.getTime())
    .orderBy('next_attempt_at')
    .first('next_attempt_at')
  return row?.next_attempt_at
}

/** How many due attempts the queue has of each webhook, as far as the records know. */
export async function countQueued(db: Db, now: Date): Promise<Map<string, number>> {
  // Materialised, or SQLite walks a whole index to group by it.
  const due = db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '<=', now.getTime())
    .select('webhook_id')
  const rows = (await db.read
    .withMaterialized('due', due)
    .from('due')
    .groupBy('webhook_id')
    .select('webhook_id')
    .count({ count: '*' })) as {
    webhook_id: string
    count: number
  }[]
  return new Map(rows.map((row) => [row.webhook_id, Number(row.count)]))
}

/** When the attempt that has waited longest was due. Undefined: none is planned. */
export async function findOldestDueAt(db: Db): Promise<number | undefined> {
  // Two seeks, one in each partial index.
  const oldest = async (queued: boolean): Promise<number | undefined> => {
    const query = db.read('deliveries').orderBy('next_attempt_at')
    const row: { next_attempt_at: number } | undefined = await (queued
      ? query.whereNotNull('queued_at').whereNotNull('next_attempt_at')
      : query.whereRaw(IS_UNQUEUED)
    ).first('next_attempt_at')
    return row?.next_attempt_at
  }
  const times = (await Promise.all([oldest(true), oldest(false)])).filter(
    (time) => time !== undefined,
  )
  return times.length > 0 ? Math.min(...times) : undefined
}

/** All that one attempt needs. */
export interface Sendable {
  id: string
  nextAttemptAt: number | null
  trigger: Trigger
  body: Buffer
  /** What it is ordered by, when its webhook wants one after the other. */
  orderingKey: string | null
  /** Undefined: somebody is changing it at this moment. */
  webhook?: { id: string; url: string; sealedSecret: string; enabled: boolean; deleted: boolean }
}

interface SendableRow {
  id: string
  next_attempt_at: number | null
  next_trigger: Trigger | null
  body: Buffer
  ordering_key: string | null
  webhook_id: string
}

interface EndpointRow {
  id: string
  url: string
  secret_encrypted: string
  enabled: boolean | number
  deleted_at: number | null
}

/** On PostgreSQL no webhook of theirs can be changed before the transaction ends: a send that has begun by then began before the change. And
 *  none is waited for, or one that is locked for long would hold up the others. */
export async function loadSendables(
  source: Pick<Trx, 'dialect' | 'sql'>,
  planned: Pick<PlannedAttempt, 'deliveryId' | 'webhookId'>[],
): Promise<Map<string, Sendable>> {
  const { dialect, sql } = source
  const isPostgres = dialect === 'postgres'
  const oneOf = isPostgres ? '= any (?::uuid[])' : 'in (select value from json_each(?))'
  const ids = asList(
    dialect,
    planned.map(({ deliveryId }) => deliveryId),
  )
  const webhookIds = asList(dialect, [...new Set(planned.map(({ webhookId }) => webhookId))])
  // Planning both takes half as long as planning a join of them. The webhooks come last: what they forbid is never older than
  // what their deliveries say.
  const [rows, endpointRows] = await runInOrder(
    source,
    () =>
      select<SendableRow>(
        sql,
        `select id, next_attempt_at, next_trigger, body, ordering_key, webhook_id from deliveries where id ${oneOf}`,
        [ids],
      ),
    () =>
      select<EndpointRow>(
        sql,
        `select id, url, secret_encrypted, enabled, deleted_at from webhooks where id ${oneOf} ${isPostgres ? 'for share skip locked' : ''}`,
        [webhookIds],
      ),
  )
  const endpoints = new Map(endpointRows.map((row) => [row.id, endpointFromRow(row)]))
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        nextAttemptAt: row.next_attempt_at,
        trigger: row.next_trigger ?? 'schedule',
        body: row.body,
        orderingKey: row.ordering_key,
        webhook: endpoints.get(row.webhook_id),
      },
    ]),
  )
}

function endpointFromRow({
  id,
  url,
  secret_encrypted: sealedSecret,
  enabled,
  deleted_at,
}: EndpointRow): Sendable['webhook'] {
  return { id, url, sealedSecret, enabled: Boolean(enabled), deleted: deleted_at !== null }
}

/** Plans deliveries that wait for others which have ended in another way, such as by hand. */
export async function planStuckInOrder(db: Db, now: Date, limit: number): Promise<void> {
  // Word for word as in the index. Whoever has a time has the turn: ids are made by clocks that differ a little.
  const stuck: { id: string }[] = await db
    .read('deliveries')
    .whereRaw("deliveries.ordering_key is not null and deliveries.state in ('pending', 'retrying')")
    .where('deliveries.state', 'pending')
    .whereNull('deliveries.next_attempt_at')
    .whereRaw(
      `not exists (select 1 from deliveries as earlier where earlier.webhook_id = deliveries.webhook_id
         and earlier.ordering_key = deliveries.ordering_key and earlier.ordering_key is not null and earlier.state in ('pending', 'retrying')
         and (earlier.id < deliveries.id or (earlier.next_attempt_at is not null and earlier.id > deliveries.id)))`,
    )
    .limit(limit)
    .select('deliveries.id')
  if (stuck.length === 0) return
  await transaction(db, async (trx) => {
    const planned = await trx
      .sql('deliveries')
      .whereIn(
        'id',
        stuck.map(({ id }) => id),
      )
      .where({ state: 'pending' })
      .whereNull('next_attempt_at')
      .update({ next_attempt_at: now.getTime(), queued_at: null })
    if (planned > 0) trx.announce(ATTEMPTS_SCHEDULED)
  })
}
