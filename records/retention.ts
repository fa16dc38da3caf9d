/** Removes what is older than an installation wants to keep: events with their deliveries, and attempts. Ids are UUIDv7, so what is older than a
 *  time is the lower end of a primary key: no index is there for this alone, and a run that finds nothing reads next to nothing. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Db } from './database/open.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { lowestIdAt } from './ids.ts'

export interface Retention {
  /** Events and their deliveries, counted from when they were made. */
  eventDays: number
  /** Attempts, counted from when they began. */
  attemptDays: number
}

const DAY_MS = 86_400_000
const BATCH_ROWS = 500
/** Each may have a delivery for every webhook of its account. */
const BATCH_EVENTS = 100
/** Between two batches, for everybody else. */
const BREATH_MS = 50
/** PostgreSQL: one process at a time. Any number that nobody else locks. */
const LOCK = 7_305_518_842

/** Removes all that may go, a small batch at a time, until it is done or `signal` aborts. On PostgreSQL it leaves off where another process is
 *  at it. A delivery that has an attempt planned or is on the schedule stays, with its event and its attempts. */
export async function deleteOutdated(
  db: Db,
  { eventDays, attemptDays }: Retention,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const attemptsUntil = now.getTime() - attemptDays * DAY_MS
  const eventsUntil = lowestIdAt(now.getTime() - eventDays * DAY_MS)
  const removals: Removal[] = [
    {
      table: 'attempts',
      id: 'delivery_id',
      below: lowestIdAt(attemptsUntil),
      batch: BATCH_ROWS,
      remove: attemptsBegunBefore(attemptsUntil),
    },
    {
      table: 'events',
      id: 'id',
      below: eventsUntil,
      batch: BATCH_EVENTS,
      remove: eventsWithDeliveries(eventsUntil),
    },
    {
      table: 'deliveries',
      id: 'id',
      below: eventsUntil,
      batch: BATCH_ROWS,
      remove: deliveriesOfNoEvent,
    },
  ]
  for (const removal of removals) await removeBelow(db, removal, signal)
}

interface Removal {
  table: string
  id: string
  below: string
  /** So many rows are looked at, and nearly always removed, at once. */
  batch: number
  remove(trx: Trx, ids: string[]): Promise<void>
}

async function removeBelow(
  db: Db,
  { table, id, below, batch, remove }: Removal,
  signal: AbortSignal,
): Promise<void> {
  for (let after: string | undefined; !signal.aborted; ) {
    const rows = db.read(table).where(id, '<', below).orderBy(id).limit(batch)
    const ids: string[] = await (after === undefined ? rows : rows.where(id, '>', after)).pluck(id)
    if (ids.length === 0) return
    const isOurs = await transaction(db, async (trx) => {
      if (!(await takeLock(trx))) return false
      await remove(trx, [...new Set(ids)])
      return true
    })
    if (!isOurs) return
    after = ids.at(-1)
    await delay(BREATH_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** Until the end of the transaction. SQLite has one server. */
async function takeLock({ dialect, sql }: Trx): Promise<boolean> {
  if (dialect === 'sqlite') return true
  const { rows } = await sql.raw('select pg_try_advisory_xact_lock(?) as locked', [LOCK])
  return rows[0].locked
}

/** On the schedule, or about to be attempted by hand. A delivery that waits for its turn has no time yet. */
const UNDER_WAY =
  "(deliveries.next_attempt_at is not null or deliveries.state in ('pending', 'retrying'))"

/** Attempts of old deliveries. Those that were made lately, by hand, stay. */
function attemptsBegunBefore(begunBefore: number): Removal['remove'] {
  return async ({ sql }, deliveryIds) => {
    const underWay = sql('deliveries').whereIn('id', deliveryIds).whereRaw(UNDER_WAY).select('id')
    await sql('attempts')
      .whereIn('delivery_id', deliveryIds)
      .where('started_at', '<', begunBefore)
      .whereNotIn('delivery_id', underWay)
      .delete()
  }
}

/** An event and its deliveries go together: one that is there without them would look as if it had been missed. Deliveries of an old event
 *  that were made lately stay, and lose their event. */
function eventsWithDeliveries(madeBefore: string): Removal['remove'] {
  return async (trx, ids) => {
    const { sql } = trx
    const kept: string[] = await sql('deliveries')
      .whereIn('event_id', ids)
      .whereRaw(UNDER_WAY)
      .pluck('event_id')
    const outdated = ids.filter((id) => !kept.includes(id))
    await deleteWithAttempts(
      trx,
      sql('deliveries').whereIn('event_id', outdated).where('id', '<', madeBefore),
    )
    await sql('events').whereIn('id', outdated).delete()
  }
}

/** Tests, and those that had lost their event. */
const deliveriesOfNoEvent: Removal['remove'] = async (trx, ids) => {
  await deleteWithAttempts(trx, trx.sql('deliveries').whereIn('id', ids).whereNull('event_id'))
}

/** Locked, so that no attempt is made of them in between. */
async function deleteWithAttempts(
  { dialect, sql }: Trx,
  deliveries: Knex.QueryBuilder,
): Promise<void> {
  const ended = deliveries.whereRaw(`not ${UNDER_WAY}`)
  const ids: string[] = await (dialect === 'postgres' ? ended.forUpdate() : ended).pluck('id')
  await sql('attempts').whereIn('delivery_id', ids).delete()
  await sql('deliveries').whereIn('id', ids).delete()
}
