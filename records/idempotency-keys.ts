import type { Db } from './database/open.ts'
import type { Scope } from './database/scope.ts'
import type { Trx } from './database/transaction.ts'

const HOUR = 60 * 60 * 1000
const KEPT_MS = 24 * HOUR
/** A claim whose request was killed can be taken over after this; no request works longer. */
const CLAIM_MS = 60_000

/** An answer as it is kept for repeats. */
export interface StoredResponse {
  status: number
  headers: Record<string, string>
  body: string
}

export type KeyClaim =
  | { kind: 'claimed'; lockedUntil: number }
  | { kind: 'in_flight' }
  | { kind: 'other_request' }
  | { kind: 'answered'; answer: StoredResponse }

interface Row {
  fingerprint: string
  status: number | null
  headers: string | null
  body: string | null
  locked_until: number
  expires_at: number
}

/** Claims a key for one request, or tells what became of the request that has it. The claim is a committed row of its own;
 *  the answer is written by `keepAnswer` in the transaction of the change itself, so that neither is there without the other. */
export async function claimIdempotencyKey(
  db: Db,
  userId: string,
  key: string,
  fingerprint: string,
  now: number,
): Promise<KeyClaim> {
  const fresh = {
    fingerprint,
    status: null,
    headers: null,
    body: null,
    locked_until: now + CLAIM_MS,
    expires_at: now + KEPT_MS,
  }
  const inserted = await db
    .write('idempotency_keys')
    .insert({ user_id: userId, key, ...fresh })
    .onConflict(['user_id', 'key'])
    .ignore()
    .returning('key')
  const claimed: KeyClaim = { kind: 'claimed', lockedUntil: fresh.locked_until }
  if (inserted.length > 0) return claimed

  const row = (await db.write('idempotency_keys').where({ user_id: userId, key }).first()) as
    | Row
    | undefined
  const isFree =
    row === undefined || row.expires_at <= now || (row.status === null && row.locked_until <= now)
  if (isFree) {
    // Whoever changes the row first has it: the condition is checked again by the update itself.
    const taken = await db
      .write('idempotency_keys')
      .where({ user_id: userId, key })
      .where((free) =>
        free
          .where('expires_at', '<=', now)
          .orWhere((left) => left.whereNull('status').where('locked_until', '<=', now)),
      )
      .update(fresh)
    return taken > 0 ? claimed : { kind: 'in_flight' }
  }
  if (row.fingerprint !== fingerprint) return { kind: 'other_request' }
  if (row.status === null) return { kind: 'in_flight' }
  return {
    kind: 'answered',
    answer: { status: row.status, headers: JSON.parse(row.headers ?? '{}'), body: row.body ?? '' },
  }
}

/** Keeps the answer, unless the claim has been taken over: then returns false, and the transaction must not be committed. */
export async function storeResponse(
  trx: Trx,
  userId: string,
  key: string,
  lockedUntil: number,
  answer: StoredResponse,
): Promise<boolean> {
  const kept = await trx
    .sql('idempotency_keys')
    .where({ user_id: userId, key, locked_until: lockedUntil })
    .whereNull('status')
    .update({ status: answer.status, headers: JSON.stringify(answer.headers), body: answer.body })
  return kept > 0
}

/** Frees the key of a request that changed nothing. */
export async function releaseIdempotencyKey(
  db: Db,
  userId: string,
  key: string,
  lockedUntil: number,
): Promise<void> {
  await db
    .write('idempotency_keys')
    .where({ user_id: userId, key, locked_until: lockedUntil })
    .whereNull('status')
    .delete()
}

/** Frees the keys of requests that a killed process left behind. Only where no other server can be at work on them. */
export async function releaseAbandonedKeys(db: Db): Promise<void> {
  await db.write('idempotency_keys').whereNull('status').delete()
}

export async function deleteExpiredIdempotencyKeys(db: Db, now: number): Promise<number> {
  return db.write('idempotency_keys').where('expires_at', '<=', now).delete()
}

/** A form that has made something, by the key that it carries. */
export interface ClaimedForm {
  fingerprint: string
  createdId: string
}

/** Claims the key of a form in the transaction that makes something of it, or tells what an earlier one has made. Of two at once, the second
 *  waits for the first to be committed. */
export async function claimFormKey(
  { sql }: Scope,
  userId: string,
  key: string,
  fingerprint: string,
  now: number,
): Promise<ClaimedForm | undefined> {
  // With an answer from the beginning: the row is not seen before there is one.
  const row = {
    user_id: userId,
    key,
    fingerprint,
    status: 303,
    headers: '{}',
    body: '',
    locked_until: now,
    expires_at: now + KEPT_MS,
  }
  const inserted = await sql('idempotency_keys')
    .insert(row)
    .onConflict(['user_id', 'key'])
    .ignore()
    .returning('key')
  if (inserted.length > 0) return undefined
  const before = (await sql('idempotency_keys').where({ user_id: userId, key }).first()) as
    | Row
    | undefined
  return { fingerprint: before?.fingerprint ?? '', createdId: before?.body ?? '' }
}

/** What was made of a form whose key was claimed in this transaction. */
export async function storeCreatedId(
  { sql }: Scope,
  userId: string,
  key: string,
  madeId: string,
): Promise<void> {
  await sql('idempotency_keys').where({ user_id: userId, key }).update({ body: madeId })
}
