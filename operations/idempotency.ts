/** Idempotency-Key: a repeated request gets the response of the first one, and changes nothing. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { InvalidInput, StatusError } from '../errors.ts'
import type { Trx } from '../records/database/transaction.ts'
import {
  insertIdempotencyKey,
  type KeyedRequest,
  type StoredResponse,
  storeResponse,
} from '../records/idempotency-keys.ts'

/** How long a request waits for an earlier one of the same process with the same key. */
const WAIT_MS = 1_000

/** Two requests with the same fingerprint are the same request. */
export function idempotencyFingerprint(method: string, url: string, body: string): string {
  return createHash('sha256').update(`${method} ${url}\n${body}`).digest('base64url')
}

/** The keys of the requests that this process is working on. Repeats wait here, where they need no
 *  connection to the database: many of them could occupy the pool. */
export class KeysInUse {
  /** The end of the request by user and key. */
  readonly #ends = new Map<string, Promise<void>>()

  /** Runs `work` once no other request uses the key. Throws 409 when that takes longer than `WAIT_MS`. */
  async use<T>({ userId, key }: KeyedRequest, work: () => Promise<T>): Promise<T> {
    const name = `${userId} ${key}`
    const deadline = performance.now() + WAIT_MS
    for (let end = this.#ends.get(name); end; end = this.#ends.get(name))
      if (!(await endsBefore(end, deadline))) throw stillInProgress()
    const ended = Promise.withResolvers<void>()
    this.#ends.set(name, ended.promise)
    try {
      return await work()
    } finally {
      this.#ends.delete(name)
      ended.resolve()
    }
  }
}

async function endsBefore(end: Promise<void>, deadline: number): Promise<boolean> {
  const timer = new AbortController()
  const timeout = delay(Math.max(0, deadline - performance.now()), false, { signal: timer.signal })
  try {
    return await Promise.race([end.then(() => true), timeout.catch(() => false)])
  } finally {
    timer.abort()
  }
}

/** Calls `work` in the transaction of its changes, and stores the response that it returns. Returns the
 *  stored response of an earlier request with this key, or undefined when `work` ran. Must be the first
 *  to use the transaction. */
export async function runOnce(
  trx: Trx,
  request: KeyedRequest,
  now: Date,
  work: () => Promise<StoredResponse>,
): Promise<StoredResponse | undefined> {
  const state = await insertIdempotencyKey(trx, request, now.getTime())
  if (state.kind === 'in_flight') throw stillInProgress()
  if (state.kind === 'other_request')
    throw new InvalidInput({ 'Idempotency-Key': ['was used for another request.'] })
  if (state.kind === 'completed') return state.response
  await storeResponse(trx, request, await work())
  return undefined
}

function stillInProgress(): StatusError {
  return new StatusError(409, 'A request with this Idempotency-Key is still in progress.', {
    'Retry-After': '1',
  })
}
