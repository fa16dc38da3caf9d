/** Removes all rows of an account, in small batches. */
import { setTimeout as delay } from 'node:timers/promises'
import { addRemovedRows, completeAccountDeletion } from './account-deletions.ts'
import { lockAccount } from './accounts.ts'
import type { Db } from './database/open.ts'
import { writeScope } from './database/scope.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { HOUR_MS } from './time-units.ts'

const BATCH_ROWS = 500
/** Chunks of files, 16 MiB together. */
const BATCH_CHUNKS = 64
/** Between two batches, so that other writers get their turn. */
const BATCH_PAUSE_MS = 50

/** Removes at most one batch of a table. Returns the number of removed rows. */
type RemoveBatch = (trx: Trx, accountId: string) => Promise<number>

/** By table, in the order of the removal: first the background work, then users and their requests.
 *  A table comes before the tables that it refers to. */
const STEPS: [table: string, remove: RemoveBatch][] = [
  ['bulk_jobs', ownRows('bulk_jobs', 'id')],
  ['export_chunks', rowsOf('exports', 'export_chunks', 'export_id', 'position')],
  ['exports', ownRows('exports', 'id')],
  ['imports', ownRows('imports', 'id')],
  ['import_chunks', ownRows('import_chunks', 'import_id', 'kind', 'position')],
  ['account_quotas', ownRows('account_quotas', 'account_id', 'name')],
  ['sessions', ownRows('sessions', 'id')],
  ['invitations', ownRows('invitations', 'token_hash')],
  ['api_keys', ownRows('api_keys', 'id')],
  ['idempotency_keys', rowsOf('users', 'idempotency_keys', 'user_id', 'key')],
  ['users', ownRows('users', 'id')],
  ['request_log', ownRows('request_log', 'id')],
  ['request_minutes', ownRows('request_minutes', 'account_id', 'minute')],
  [
    'request_counts',
    ownRows('request_counts', 'account_id', 'span_ms', 'starts_at', 'operation_id', 'status'),
  ],
  ['deliveries', removeDeliveriesWithAttempts],
  ['events', ownRows('events', 'id')],
  ['attempt_counts', rowsOf('webhooks', 'attempt_counts', 'webhook_id', 'span_ms', 'starts_at')],
  ['webhook_health', rowsOf('webhooks', 'webhook_health', 'webhook_id')],
  ['held_notices', ownRows('held_notices', 'id')],
  ['webhooks', ownRows('webhooks', 'id')],
  ['payments', ownRows('payments', 'id')],
  ['job_applications', ownRows('job_applications', 'id')],
  ['tasks', ownRows('tasks', 'id')],
  ['jobs', ownRows('jobs', 'id')],
  ['participant_tags', ownRows('participant_tags', 'participant_id', 'tag')],
  ['participants', ownRows('participants', 'id')],
  ['audit_log', ownRows('audit_log', 'id')],
]

/** The tables with rows of an account, without `accounts` itself. */
export const ERASED_TABLES = [...STEPS.map(([table]) => table), 'attempts', 'record_counts']

/** Removes the rows and then the account. Each batch is committed with the progress, so after a
 *  crash the next call continues. Stops when `signal` aborts. */
export async function eraseAccount(
  db: Db,
  id: string,
  now: () => Date,
  signal: AbortSignal,
): Promise<void> {
  for (const [, remove] of STEPS)
    while (!signal.aborted && (await removeBatch(db, id, remove)) > 0)
      await delay(BATCH_PAUSE_MS, undefined, { signal }).catch(() => undefined)
  if (!signal.aborted) await removeAccount(db, id, now())
}

function removeBatch(db: Db, id: string, remove: RemoveBatch): Promise<number> {
  return transaction(db, async (trx) => {
    const rows = await remove(trx, id)
    if (rows > 0) await addRemovedRows(trx.sql, id, rows)
    return rows
  })
}

/** Removes the account. First removes the rows that requests from before the suspension have stored
 *  since `eraseAccount` began. The lock on the account prevents further rows. */
async function removeAccount(db: Db, id: string, now: Date): Promise<void> {
  await transaction(db, async (trx) => {
    await lockAccount(writeScope(trx, id))
    let removed = 0
    for (const [, remove] of STEPS)
      for (let rows = await remove(trx, id); rows > 0; rows = await remove(trx, id)) removed += rows
    // After the records that they count. They do not count as removed rows.
    await trx.sql('record_counts').where({ account_id: id }).delete()
    removed += await deleteAccountRow(trx, id)
    await addRemovedRows(trx.sql, id, removed)
    await completeAccountDeletion(trx.sql, id, now)
  })
}

const MAX_DELETE_MS = HOUR_MS

/** Has more time than other statements: the database searches every table for references to the
 *  account. It reads all deliveries, because no index finds the deliveries of an account. */
async function deleteAccountRow({ dialect, sql }: Trx, id: string): Promise<number> {
  if (dialect === 'postgres') await sql.raw(`set local statement_timeout = ${MAX_DELETE_MS}`)
  return sql('accounts').where({ id }).delete().options({ query_timeout: MAX_DELETE_MS })
}

/** Removes rows that have an account ID. `key`: the columns of the primary key. */
function ownRows(table: string, ...key: string[]): RemoveBatch {
  return ({ sql }, accountId) => {
    const columns = [...new Set(['account_id', ...key])]
    const own = sql(table).where({ account_id: accountId })
    return sql(table)
      .whereIn(columns, own.limit(batchRows(table)).select(columns))
      .delete()
  }
}

const batchRows = (table: string): number => (table.endsWith('_chunks') ? BATCH_CHUNKS : BATCH_ROWS)

/** Removes rows that no index finds by their account: the first column of their `key` refers to a row
 *  of `parent`. */
function rowsOf(parent: string, table: string, ...key: [string, ...string[]]): RemoveBatch {
  return ({ sql }, accountId) => {
    const parents = sql(parent).where({ account_id: accountId }).select('id')
    const batch = sql(table).whereIn(key[0], parents).limit(batchRows(table)).select(key)
    return sql(table).whereIn(key, batch).delete()
  }
}

/** One webhook at a time: no index finds all deliveries of an account. Locks the deliveries, so
 *  that no attempt of them is stored before the commit. */
async function removeDeliveriesWithAttempts({ sql }: Trx, accountId: string): Promise<number> {
  const webhookIds: string[] = await sql('webhooks').where({ account_id: accountId }).pluck('id')
  for (const webhookId of webhookIds) {
    const ids: string[] = await sql('deliveries')
      .where({ account_id: accountId, webhook_id: webhookId })
      .orderBy('id')
      .limit(BATCH_ROWS)
      .forUpdate()
      .pluck('id')
    if (ids.length === 0) continue
    const own = { account_id: accountId }
    const attempts = await sql('attempts').where(own).whereIn('delivery_id', ids).delete()
    return attempts + (await sql('deliveries').where(own).whereIn('id', ids).delete())
  }
  return 0
}
