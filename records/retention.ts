/** Removes outdated events with their deliveries, outdated attempts, ended bulk jobs and deleted
 *  webhooks. IDs are UUIDv7, so outdated events, deliveries and attempts are the lower end of a
 *  primary key. Finding them needs no index of its own, and a run that finds nothing reads almost
 *  nothing. An unfinished delivery stays, with its event and its attempts. */
import type { Knex } from 'knex'
import type { Trx } from './database/transaction.ts'
import { LOWEST_ID, lowestIdAt } from './ids.ts'
import { daysBefore, type RemovalRun, type RemovedRows, removeRows } from './removal-run.ts'
import {
  batchesBelow,
  dropWeeks,
  IS_UNFINISHED,
  prepareAttempts,
  prepareEvents,
} from './week-removal.ts'

const BATCH_ROWS = 500
/** Smaller than `BATCH_ROWS`: each event may have a delivery for every webhook of its account. */
const BATCH_EVENTS = 100

export async function removeAttempts(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.attempts)
  const below = lowestIdAt(until)
  await dropWeeks(run, {
    tables: ['attempts'],
    below,
    prepare: (trx, week) => prepareAttempts(trx, week, until),
  })
  await removeBelow(run, {
    table: 'attempts',
    idColumn: 'delivery_id',
    below: await batchesBelow(run, 'attempts', below),
    batchRows: BATCH_ROWS,
    remove: (trx, deliveryIds) => deleteAttempts(trx, deliveryIds, until),
  })
}

export async function removeEvents(run: RemovalRun): Promise<void> {
  const outdatedBelow = eventsBelow(run)
  await dropWeeks(run, {
    tables: ['attempts', 'deliveries', 'events'],
    below: outdatedBelow,
    prepare: prepareEvents,
  })
  const below = await batchesBelow(run, 'events', outdatedBelow)
  await removeBelow(run, {
    table: 'events',
    idColumn: 'id',
    below,
    batchRows: BATCH_EVENTS,
    remove: (trx, ids) => deleteEventsWithDeliveries(trx, ids, below),
  })
}

/** Removes the outdated deliveries without an event, which `removeEvents` leaves. */
export async function removeDeliveries(run: RemovalRun): Promise<void> {
  await removeBelow(run, {
    table: 'deliveries',
    idColumn: 'id',
    below: await batchesBelow(run, 'deliveries', eventsBelow(run)),
    batchRows: BATCH_ROWS,
    remove: deleteDeliveriesWithoutEvent,
  })
}

/** Events and deliveries with lower IDs are outdated. */
const eventsBelow = (run: RemovalRun): string => lowestIdAt(daysBefore(run, run.retention.events))

interface Removal {
  table: string
  idColumn: string
  /** Rows with lower IDs are outdated. */
  below: string
  /** How many rows a batch reads. It removes nearly all of them in one transaction. */
  batchRows: number
  remove(trx: Trx, ids: string[]): Promise<RemovedRows>
}

/** Goes through the rows once, in the order of their IDs. Some rows stay, so reading from the start
 *  again would find them again. */
async function removeBelow(
  { db, batch }: RemovalRun,
  { table, idColumn, below, batchRows, remove }: Removal,
): Promise<void> {
  for (let after = LOWEST_ID; ; ) {
    const ids: string[] = await db
      .read(table)
      .where(idColumn, '>', after)
      .where(idColumn, '<', below)
      .orderBy(idColumn)
      .limit(batchRows)
      .pluck(idColumn)
    const last = ids.at(-1)
    if (last === undefined || !(await batch((trx) => remove(trx, [...new Set(ids)])))) return
    after = last
  }
}

/** Deletes attempts of old deliveries. Recent manual attempts stay. */
async function deleteAttempts(
  { sql }: Trx,
  deliveryIds: string[],
  startedBefore: number,
): Promise<RemovedRows> {
  const unfinished = sql('deliveries')
    .whereIn('id', deliveryIds)
    .whereRaw(IS_UNFINISHED)
    .select('id')
  const attempts = await sql('attempts')
    .whereIn('delivery_id', deliveryIds)
    .where('started_at', '<', startedBefore)
    .whereNotIn('delivery_id', unfinished)
    .delete()
  return { attempts }
}

/** Deletes events together with their deliveries: an event without deliveries would look like a
 *  missed event. Recent deliveries of an old event stay, without the event. */
async function deleteEventsWithDeliveries(
  trx: Trx,
  ids: string[],
  below: string,
): Promise<RemovedRows> {
  const { sql } = trx
  const unfinished: string[] = await sql('deliveries')
    .whereIn('event_id', ids)
    .whereRaw(IS_UNFINISHED)
    .pluck('event_id')
  const outdated = ids.filter((id) => !unfinished.includes(id))
  const removed = await deleteWithAttempts(
    trx,
    sql('deliveries').whereIn('event_id', outdated).where('id', '<', below),
  )
  await sql('deliveries').whereIn('event_id', outdated).update({ event_id: null })
  return { ...removed, events: await sql('events').whereIn('id', outdated).delete() }
}

/** Deletes test deliveries, and deliveries whose event was deleted earlier. A bulk job may have created a
 *  delivery while its event was deleted: that delivery still has the ID of the event. */
function deleteDeliveriesWithoutEvent(trx: Trx, ids: string[]): Promise<RemovedRows> {
  const withoutEvent = 'not exists (select 1 from events where events.id = deliveries.event_id)'
  return deleteWithAttempts(trx, trx.sql('deliveries').whereIn('id', ids).whereRaw(withoutEvent))
}

/** Deletes those of the deliveries that are finished, with their attempts. Locks these deliveries,
 *  so that no attempt starts before the commit. */
async function deleteWithAttempts(
  { sql }: Trx,
  deliveries: Knex.QueryBuilder,
): Promise<RemovedRows> {
  const ids: string[] = await deliveries.whereRaw(`not ${IS_UNFINISHED}`).forUpdate().pluck('id')
  return {
    attempts: await sql('attempts').whereIn('delivery_id', ids).delete(),
    deliveries: await sql('deliveries').whereIn('id', ids).delete(),
  }
}

/** Matches jobs that sent the missed events after the webhook was last disabled. Without such a
 *  job, the console would offer to send these events again. */
const IS_LAST_SEND_MISSED = `kind = 'send_missed' and exists (
  select 1 from webhooks where webhooks.id = bulk_jobs.webhook_id and webhooks.deleted_at is null
    and webhooks.disabled_at <= bulk_jobs.created_at)`

export function removeEndedBulkJobs(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.events)
  return removeRows(run, {
    table: 'bulk_jobs',
    key: ['id'],
    // IDs are in the order of creation, so the first condition finds the rows in the primary key.
    // `ended_at` is null for unfinished jobs.
    condition: (rows) =>
      rows
        .where('id', '<', lowestIdAt(until))
        .where('ended_at', '<', until)
        .whereRaw(`not (${IS_LAST_SEND_MISSED})`),
  })
}

/** Concurrent transactions that have read the webhook before its deletion end within this time. */
const DELETED_DAYS = 1

/** Removes deleted webhooks. A webhook with deliveries or bulk jobs stays, because these show its
 *  name. */
export function removeDeletedWebhooks(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'webhooks',
    key: ['id'],
    condition: (rows) =>
      rows
        .where('deleted_at', '<', daysBefore(run, DELETED_DAYS))
        .whereRaw('not exists (select 1 from deliveries where webhook_id = webhooks.id)')
        .whereRaw('not exists (select 1 from bulk_jobs where webhook_id = webhooks.id)'),
  })
}
