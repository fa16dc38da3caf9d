/** Idempotency-Key: a repeated request gets the response of the first one, and changes nothing. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { InvalidInput, StatusError } from '../errors.ts'
import { LockTaken, type Trx } from '../records/database/transaction.ts'
import {
  deleteIdempotencyKey,
  type KeyedRequest,
  type KeyState,
  lockIdempotencyKey,
  type StoredResponse,
} from '../records/idempotency-keys.ts'
import { isObject } from '../records/merge-patch.ts'
import { parseJson } from '../scripts/model/json.ts'

/** How long a request waits for an earlier one with the same key. */
const WAIT_MS = 1_000
const LOCK_RETRY_MS = 50

export class KeyOfOtherRequest extends InvalidInput {
  constructor() {
    super({
      'Idempotency-Key': ['was already used for a different request. Send a new key.'],
    })
  }
}

export class StillInProgress extends StatusError {
  constructor() {
    super(409, 'A request with this Idempotency-Key is still in progress.', { 'Retry-After': '1' })
  }
}

/** The fingerprints of a request. Two requests with the same fingerprint are the same request, also
 *  if the JSON of their bodies differs in spaces, escapes or the order of fields. */
export function idempotencyFingerprints(
  method: string,
  url: string,
  body: string,
): Pick<KeyedRequest, 'fingerprint' | 'fingerprintOfBytes'> {
  return {
    fingerprint: hash(`${method} ${url}\n${canonical(body)}`),
    fingerprintOfBytes: () => hash(`${method} ${url}\n${body}`),
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** JSON with sorted fields and without spaces. Other text stays as it is. */
function canonical(body: string): string {
  const parsed = parseJson(body)
  if (parsed === undefined) return body
  return JSON.stringify(parsed, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}

/** The keys of the requests in progress in this process. Repeated requests wait here, without a
 *  connection to the database. Otherwise many of them could occupy the pool. */
export class KeysInUse {
  /** By user and key: resolves when the request in progress ends. */
  readonly #ends = new Map<string, Promise<void>>()

  /** Waits until no other request uses the key, then runs `work`. Throws `StillInProgress` when the
   *  wait takes longer than `WAIT_MS`. Without a `request`, runs `work` at once. */
  async use<T>(
    request: Omit<KeyedRequest, 'accountId'> | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    if (!request) return work()
    const userAndKey = `${request.userId} ${request.key}`
    const deadline = performance.now() + WAIT_MS
    for (let end = this.#ends.get(userAndKey); end; end = this.#ends.get(userAndKey))
      if (!(await endsBefore(end, deadline))) throw new StillInProgress()
    const ended = Promise.withResolvers<void>()
    this.#ends.set(userAndKey, ended.promise)
    try {
      return await untilUnlocked(work, deadline)
    } finally {
      this.#ends.delete(userAndKey)
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

/** Runs `work`, and runs it again while a request of another node has locked the key. Throws
 *  `StillInProgress` at the deadline. */
async function untilUnlocked<T>(work: () => Promise<T>, deadline: number): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof LockTaken)) throw error
      if (performance.now() + LOCK_RETRY_MS > deadline) throw new StillInProgress()
    }
    await delay(LOCK_RETRY_MS)
  }
}

/** Deletes the key if it has expired, so that this request can use it. Returns the stored response
 *  if the request repeats an earlier one: valid only after the commit of `trx`. Throws
 *  `KeyOfOtherRequest`. */
export async function takeKey(
  trx: Trx,
  request: KeyedRequest,
  state: KeyState,
): Promise<StoredResponse | undefined> {
  if (state.kind === 'other_request') throw new KeyOfOtherRequest()
  if (state.kind === 'expired') await deleteIdempotencyKey(trx, request)
  if (state.kind !== 'completed') return undefined
  await lockIdempotencyKey(trx, request)
  return state.response
}
