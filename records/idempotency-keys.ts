import type { Db } from './database/open.ts'
import type { Scope } from './database/scope.ts'
import type { Trx } from './database/transaction.ts'

const RETENTION_MS = 24 * 60 * 60_000
/** After this long, another request can take over the claim of a killed one. No request runs longer. */
const CLAIM_MS = 60_000

/** A response that is stored for repeated requests. */
export interface StoredResponse {
  status: number
  headers: Record<string, string>
  body: string
}

export type KeyClaim =
  | { kind: 'claimed'; lockedUntil: number }
  | { kind: 'in_flight' }
  | { kind: 'other_request' }
  | { kind: 'completed'; response: StoredResponse }

interface Row {
  fingerprint: string
  status: number | null
  headers: string | null
  body: string | null
  locked_until: number
  expires_at: number
}

/** Claims a key for one request, or returns the state of the request that has it. The claim is committed
 *  at once. `storeResponse` writes the response in the transaction of the change, so that neither exists
 *  without the other. */
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
    expires_at: now + RETENTION_MS,
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
    // The update repeats the condition: only the first of two concurrent requests gets the key.
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
    kind: 'completed',
    response: {
      status: row.status,
      headers: JSON.parse(row.headers ?? '{}'),
      body: row.body ?? '',
    },
  }
}

/** False: another request has taken over the claim, and the transaction must roll back. */
export async function storeResponse(
  trx: Trx,
  userId: string,
  key: string,
  lockedUntil: number,
  response: StoredResponse,
): Promise<boolean> {
  const updated = await trx
    .sql('idempotency_keys')
    .where({ user_id: userId, key, locked_until: lockedUntil })
    .whereNull('status')
    .update({
      status: response.status,
      headers: JSON.stringify(response.headers),
      body: response.body,
    })
  return updated > 0
}

/** Releases the key of a request that changed nothing. */
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

/** Releases the keys of requests that a killed process left behind. Only safe while no other server runs. */
export async function releaseAbandonedKeys(db: Db): Promise<void> {
  await db.write('idempotency_keys').whereNull('status').delete()
}

export async function deleteExpiredIdempotencyKeys(db: Db, now: number): Promise<number> {
  return db.write('idempotency_keys').where('expires_at', '<=', now).delete()
}

/** A submitted form that has created a record. */
export interface ClaimedForm {
  fingerprint: string
  createdId: string
}

/** Claims the key of a form in the transaction that creates its record. Returns the earlier submission,
 *  if there is one. The second of two concurrent submissions waits for the commit of the first. */
export async function claimFormKey(
  { sql }: Scope,
  userId: string,
  key: string,
  fingerprint: string,
  now: number,
): Promise<ClaimedForm | undefined> {
  // A complete response, because the row is visible only after the commit. Its body is the ID of the
  // created record.
  const row = {
    user_id: userId,
    key,
    fingerprint,
    status: 303,
    headers: '{}',
    body: '',
    locked_until: now,
    expires_at: now + RETENTION_MS,
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

/** Stores the ID that the form has created. Call it in the transaction of `claimFormKey`. */
export async function storeCreatedId(
  { sql }: Scope,
  userId: string,
  key: string,
  madeId: string,
): Promise<void> {
  await sql('idempotency_keys').where({ user_id: userId, key }).update({ body: madeId })
}
