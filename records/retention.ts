/** Deletes outdated events with their deliveries, and outdated attempts. IDs are UUIDv7, so outdated
 *  rows are the lower end of a primary key: this needs no index of its own, and a run that finds nothing
 *  reads almost nothing. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { DeletionTime } from './clock-spans.ts'
import type { Db } from './database/open.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { lowestIdAt } from './ids.ts'

export interface Retention {
  /** Events and their deliveries, from their creation. */
  eventDays: number
  /** Attempts, from their start. */
  attemptDays: number
}

const DAY_MS = 86_400_000
const BATCH_ROWS = 500
/** Smaller: each event may have a delivery for every webhook of its account. */
const BATCH_EVENTS = 100
/** Between two batches, so that other writers get their turn. */
const BATCH_PAUSE_MS = 50
/** PostgreSQL advisory lock: any number that nothing else locks. */
const LOCK_KEY = 7_305_518_842

/** Deletes in small batches until it is done or `signal` aborts. On PostgreSQL it stops when another
 *  process is deleting. An unfinished delivery stays, with its event and its attempts. */
export async function deleteOutdated(
  db: Db,
  { eventDays, attemptDays }: Retention,
  time: DeletionTime,
  signal: AbortSignal,
  onRemoved: RemovalListener,
): Promise<void> {
  const attemptsUntil = time.createdBefore(attemptDays * DAY_MS)
  const eventsUntil = lowestIdAt(time.createdBefore(eventDays * DAY_MS))
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
  for (const removal of removals) await removeBelow(db, removal, signal, onRemoved)
}

interface Removal {
  table: string
  id: string
  below: string
  /** Rows read, and nearly always deleted, in one transaction. */
  batch: number
  remove(trx: Trx, ids: string[]): Promise<RemovedRows>
}

/** By table. */
type RemovedRows = Record<string, number>

/** Is called after each commit. */
export type RemovalListener = (table: string, rows: number) => void

async function removeBelow(
  db: Db,
  { table, id, below, batch, remove }: Removal,
  signal: AbortSignal,
  onRemoved: RemovalListener,
): Promise<void> {
  for (let after: string | undefined; !signal.aborted; ) {
    const rows = db.read(table).where(id, '<', below).orderBy(id).limit(batch)
    const ids: string[] = await (after === undefined ? rows : rows.where(id, '>', after)).pluck(id)
    if (ids.length === 0) return
    const removed = await transaction(db, async (trx) =>
      (await acquireLock(trx)) ? remove(trx, [...new Set(ids)]) : undefined,
    )
    if (!removed) return
    for (const [name, rows] of Object.entries(removed)) onRemoved(name, rows)
    after = ids.at(-1)
    await delay(BATCH_PAUSE_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** Locks until the end of the transaction. SQLite has only one server. */
async function acquireLock({ dialect, sql }: Trx): Promise<boolean> {
  if (dialect === 'sqlite') return true
  const { rows } = await sql.raw('select pg_try_advisory_xact_lock(?) as locked', [LOCK_KEY])
  return rows[0].locked
}

/** Has a scheduled attempt, or waits for an earlier delivery of its ordering key. */
const IS_UNFINISHED =
  "(deliveries.next_attempt_at is not null or deliveries.state in ('pending', 'retrying'))"

/** Deletes attempts of old deliveries. Recent manual attempts stay. */
function attemptsBegunBefore(begunBefore: number): Removal['remove'] {
  return async ({ sql }, deliveryIds) => {
    const unfinished = sql('deliveries')
      .whereIn('id', deliveryIds)
      .whereRaw(IS_UNFINISHED)
      .select('id')
    const attempts = await sql('attempts')
      .whereIn('delivery_id', deliveryIds)
      .where('started_at', '<', begunBefore)
      .whereNotIn('delivery_id', unfinished)
      .delete()
    return { attempts }
  }
}

/** Deletes an event together with its deliveries: without them it would look like a missed event. Recent
 *  deliveries of an old event stay, without the event. */
function eventsWithDeliveries(createdBefore: string): Removal['remove'] {
  return async (trx, ids) => {
    const { sql } = trx
    const unfinished: string[] = await sql('deliveries')
      .whereIn('event_id', ids)
      .whereRaw(IS_UNFINISHED)
      .pluck('event_id')
    const outdated = ids.filter((id) => !unfinished.includes(id))
    const removed = await deleteWithAttempts(
      trx,
      sql('deliveries').whereIn('event_id', outdated).where('id', '<', createdBefore),
    )
    return { ...removed, events: await sql('events').whereIn('id', outdated).delete() }
  }
}

/** Deletes tests, and deliveries whose event was deleted earlier. */
const deliveriesOfNoEvent: Removal['remove'] = (trx, ids) =>
  deleteWithAttempts(trx, trx.sql('deliveries').whereIn('id', ids).whereNull('event_id'))

/** Locks the deliveries, so that no attempt starts before the commit. */
async function deleteWithAttempts(
  { dialect, sql }: Trx,
  deliveries: Knex.QueryBuilder,
): Promise<RemovedRows> {
  const ended = deliveries.whereRaw(`not ${IS_UNFINISHED}`)
  const ids: string[] = await (dialect === 'postgres' ? ended.forUpdate() : ended).pluck('id')
  return {
    attempts: await sql('attempts').whereIn('delivery_id', ids).delete(),
    deliveries: await sql('deliveries').whereIn('id', ids).delete(),
  }
}
