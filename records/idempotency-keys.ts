/** Idempotency keys. A request inserts its key in the transaction of its change, so that a rollback or the
 *  end of the process leaves neither. */
import { IS_CLOCK_IN_DOUBT } from './clock-spans.ts'
import { errorCode } from './database/errors.ts'
import { runInOrder, select } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { expiredUntil, type RemovalRun, removeRows } from './removal-run.ts'

const RETENTION_MS = 24 * 60 * 60_000
/** PostgreSQL: how long a transaction waits for another one that has inserted the same key. */
const LOCK_TIMEOUT_MS = 1_000

/** A response that is stored for repeated requests. */
export interface StoredResponse {
  status: number
  headers: Record<string, string>
  body: string
}

export interface KeyedRequest {
  userId: string
  key: string
  /** Equal for equal requests. */
  fingerprint: string
}

export type KeyState =
  | { kind: 'inserted' }
  | { kind: 'in_flight' }
  | { kind: 'other_request' }
  | { kind: 'completed'; response: StoredResponse }

interface Row {
  fingerprint: string
  /** Null: a request of an older release is in flight, or its process was killed. */
  status: number | null
  headers: string | null
  body: string | null
}

/** Inserts the key as the first statement of a transaction, or returns the state of the request that has
 *  it. Waits for the end of a concurrent transaction with the same key. `in_flight`: the wait was too long,
 *  and the transaction must roll back. */
export async function insertIdempotencyKey(
  trx: Pick<Trx, 'dialect' | 'sql'>,
  { userId, key, fingerprint }: KeyedRequest,
  now: number,
): Promise<KeyState> {
  // Nodes of older releases need `locked_until`. They insert keys without a status and commit them before
  // their change, and other nodes take these keys over after `locked_until`.
  const insert = () =>
    select<{ key: string }>(
      trx.sql,
      `insert into idempotency_keys (user_id, key, fingerprint, locked_until, expires_at)
       values (?, ?, ?, ?, ?)
       on conflict (user_id, key) do update
       set fingerprint = excluded.fingerprint, status = null, headers = null, body = null,
         locked_until = excluded.locked_until, expires_at = excluded.expires_at
       where (idempotency_keys.expires_at <= ? and not ${IS_CLOCK_IN_DOUBT})
         or (idempotency_keys.status is null and idempotency_keys.locked_until <= ?)
       returning key`,
      [userId, key, fingerprint, now, now + RETENTION_MS, now, now],
    )
  try {
    if ((await withLockTimeout(trx, insert)).length > 0) return { kind: 'inserted' }
  } catch (error) {
    if (errorCode(error) === LOCK_NOT_AVAILABLE) return { kind: 'in_flight' }
    throw error
  }
  const row = (await trx.sql('idempotency_keys').where({ user_id: userId, key }).first()) as Row
  if (row.fingerprint !== fingerprint) return { kind: 'other_request' }
  if (row.status === null) return { kind: 'in_flight' }
  const { status, headers, body } = row
  return {
    kind: 'completed',
    response: { status, headers: JSON.parse(headers ?? '{}'), body: body ?? '' },
  }
}

/** Stores the response in the transaction that has inserted the key. */
export async function storeResponse(
  { sql }: Pick<Trx, 'sql'>,
  { userId, key }: KeyedRequest,
  { status, headers, body }: StoredResponse,
): Promise<void> {
  await sql('idempotency_keys')
    .where({ user_id: userId, key })
    .update({ status, headers: JSON.stringify(headers), body })
}

export function removeExpiredKeys(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'idempotency_keys',
    key: ['user_id', 'key'],
    condition: (rows) => rows.where('expires_at', '<=', expiredUntil(run, RETENTION_MS)),
  })
}

/** PostgreSQL's code for a lock that was not acquired within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03'

/** Runs one statement with `LOCK_TIMEOUT_MS`, and restores the timeout of the transaction. On SQLite only one
 *  transaction writes, so no statement waits. */
async function withLockTimeout<T>(
  source: Pick<Trx, 'dialect' | 'sql'>,
  statement: () => Promise<T>,
): Promise<T> {
  if (source.dialect === 'sqlite') return statement()
  const set = (name: string, value: string): string => `set_config('${name}', ${value}, true)`
  const saved = 'muster.lock_timeout'
  const [, result] = await runInOrder(
    source,
    () =>
      select(
        source.sql,
        `select ${set(saved, `current_setting('lock_timeout')`)},
           ${set('lock_timeout', `'${LOCK_TIMEOUT_MS}'`)}`,
        [],
      ),
    statement,
    () => select(source.sql, `select ${set('lock_timeout', `current_setting('${saved}')`)}`, []),
  )
  return result
}
