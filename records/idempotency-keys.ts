/** Idempotency keys. A request inserts its key with the response in the transaction of its change,
 *  so that a rollback or the end of the process leaves neither the key nor the change. */
import type { Knex } from 'knex'
import { type Sql, select } from './database/statements.ts'
import type { Source, Trx } from './database/transaction.ts'
import { findDeletionTime } from './deletion-time.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'
import { DAY_MS } from './time-units.ts'

const RETENTION_MS = DAY_MS

/** A response that is stored for repeated requests. */
export interface StoredResponse {
  status: number
  headers: Record<string, string>
  body: string
}

export interface KeyedRequest {
  accountId: string
  userId: string
  key: string
  /** Equal for equal requests. */
  fingerprint: string
  /** The fingerprint that version 1.1 stored. It was equal only for equal bytes. */
  fingerprintOfBytes?: () => string
}

export type KeyState =
  | { kind: 'unused' }
  | { kind: 'expired' }
  | { kind: 'other_request' }
  | { kind: 'completed'; response: StoredResponse }

/** The name that a transaction locks: see `Opening` in database/transaction.ts. */
export function lockOfKey({ userId, key }: KeyedRequest): string {
  return `idempotency key ${userId} ${key}`
}

export interface KeyRow {
  fingerprint: string
  status: number
  headers: string
  body: string
  expires_at: number
}

/** The state of a key. Call it with the key locked: see `lockOfKey`. */
export async function findKeyState(
  { sql }: Source,
  request: KeyedRequest,
  now: number,
): Promise<KeyState> {
  const [row] = await select<KeyRow>(
    sql,
    `select fingerprint, status, headers, body, expires_at
     from idempotency_keys where account_id = ? and user_id = ? and key = ?`,
    [request.accountId, request.userId, request.key],
    'find_key_state',
  )
  return keyStateOf(sql, row, request, now)
}

/** `row`: the stored row of the key. */
export async function keyStateOf(
  sql: Sql,
  row: KeyRow | undefined,
  { fingerprint, fingerprintOfBytes }: KeyedRequest,
  now: number,
): Promise<KeyState> {
  if (row === undefined) return { kind: 'unused' }
  if (await hasExpired(sql, row.expires_at, now)) return { kind: 'expired' }
  if (row.fingerprint !== fingerprint && row.fingerprint !== fingerprintOfBytes?.())
    return { kind: 'other_request' }
  const { status, headers, body } = row
  return { kind: 'completed', response: { status, headers: JSON.parse(headers), body } }
}

async function hasExpired(sql: Sql, expiresAt: number, now: number): Promise<boolean> {
  if (expiresAt > now) return false
  const time = await findDeletionTime(sql, new Date(now))
  return time !== undefined && expiresAt <= time.expiredUntil(RETENTION_MS)
}

/** PostgreSQL: makes the commit of this transaction wait for a standby, because it writes to the WAL.
 *  The commit that inserted the key may have stopped waiting: its change is visible, but may be on no
 *  standby. */
export async function lockIdempotencyKey(source: Source, request: KeyedRequest): Promise<void> {
  await rowOf(source, request).forUpdate().select('key')
}

export async function deleteIdempotencyKey(source: Source, request: KeyedRequest): Promise<void> {
  await rowOf(source, request).delete()
}

function rowOf({ sql }: Source, { accountId, userId, key }: KeyedRequest): Knex.QueryBuilder {
  return sql('idempotency_keys').where({ account_id: accountId, user_id: userId, key })
}

/** Stores the response under the locked key. */
export async function insertIdempotencyKey(
  trx: Trx,
  { accountId, userId, key, fingerprint }: KeyedRequest,
  { status, headers, body }: StoredResponse,
  now: number,
): Promise<void> {
  const row = {
    account_id: accountId,
    user_id: userId,
    key,
    fingerprint,
    status,
    headers: JSON.stringify(headers),
    body,
    expires_at: now + RETENTION_MS,
  }
  await trx.insert({ table: 'idempotency_keys', columns: Object.keys(row), rows: [row] })
}

export function removeExpiredIdempotencyKeys(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'idempotency_keys',
    key: ['user_id', 'key'],
    condition: (rows) => rows.where('expires_at', '<=', run.time.expiredUntil(RETENTION_MS)),
  })
}
