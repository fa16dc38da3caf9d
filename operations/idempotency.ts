/** Idempotency-Key: a repeated request gets the response of the first one, and changes nothing. */
import { createHash } from 'node:crypto'
import { InvalidInput, StatusError } from '../errors.ts'
import type { Db } from '../records/database/open.ts'
import type { Trx } from '../records/database/transaction.ts'
import {
  claimIdempotencyKey,
  releaseIdempotencyKey,
  type StoredResponse,
  storeResponse,
} from '../records/idempotency-keys.ts'

export interface IdempotentRequest {
  userId: string
  key: string
  fingerprint: string
}

/** Two requests with the same fingerprint are the same request. */
export function idempotencyFingerprint(method: string, url: string, body: string): string {
  return createHash('sha256').update(`${method} ${url}\n${body}`).digest('base64url')
}

/** Calls `work`, which passes its response to `store` in the transaction of its changes: both are
 *  committed, or neither. Returns the stored response of an earlier request with this key, or undefined
 *  when `work` ran. */
export async function runOnce(
  { db, now }: { db: Db; now: () => Date },
  { userId, key, fingerprint }: IdempotentRequest,
  work: (store: (trx: Trx, response: StoredResponse) => Promise<void>) => Promise<unknown>,
  onReleaseFailed: () => void,
): Promise<StoredResponse | undefined> {
  const claim = await claimIdempotencyKey(db, userId, key, fingerprint, now().getTime())
  if (claim.kind === 'in_flight') throw stillInProgress()
  if (claim.kind === 'other_request')
    throw new InvalidInput({ 'Idempotency-Key': ['was used for another request.'] })
  if (claim.kind === 'completed') return claim.response
  try {
    await work(async (trx, response) => {
      if (!(await storeResponse(trx, userId, key, claim.lockedUntil, response)))
        throw stillInProgress()
    })
    return undefined
  } catch (error) {
    await releaseIdempotencyKey(db, userId, key, claim.lockedUntil).catch(onReleaseFailed)
    throw error
  }
}

function stillInProgress(): StatusError {
  return new StatusError(409, 'A request with this Idempotency-Key is still in progress.', {
    'Retry-After': '1',
  })
}
