import { changeOutcome, retryAfterSeconds } from './error.ts'
import type { Gate } from './gate.ts'
import { sleep } from './sleep.ts'

interface RetryOptions {
  fetch(request: Request): Promise<Response>
  maxRetries: number
  /** The longest time that one call waits between its attempts, in total. */
  maxWaitMs: number
  gate: Gate
}

/** With these statuses and `Retry-After`, the service has changed nothing. 409 has `Retry-After` only
 *  while a request with the same `Idempotency-Key` is in progress. */
const TOO_MANY_REQUESTS = 429
const RETRYABLE_STATUSES = [409, TOO_MANY_REQUESTS]
const FIRST_PAUSE_MS = 250

/** Sends the request when the gate is open. A 429 closes the gate for as long as the service asks
 *  for, so that other calls do not use up their retries. Retries after the pause that the service
 *  asks for, and after a lost connection. Retries a change that may have been made only if it has
 *  an `Idempotency-Key`. Returns the response or throws the error at once if no retry is left, or if the pauses would add up to more than `maxWaitMs`. */
export async function fetchWithRetries(
  request: Request,
  { fetch, maxRetries, maxWaitMs, gate }: RetryOptions,
): Promise<Response> {
  let remainingMs = maxWaitMs
  for (let retries = 0; ; retries++) {
    await gate.opened(request.signal)
    const isLast = retries >= maxRetries
    // A request with a body can be sent once only.
    const outcome = await attempt(fetch, isLast ? request : request.clone())
    const pauseMs = pauseAfter(outcome, request, retries)
    const isTooMany = 'response' in outcome && outcome.response.status === TOO_MANY_REQUESTS
    // A longer pause may concern some operations only: a quota of events lasts until midnight.
    if (isTooMany && pauseMs !== null && pauseMs <= maxWaitMs) gate.close(pauseMs)
    if (isLast || pauseMs === null || pauseMs > remainingMs) {
      if ('error' in outcome) throw outcome.error
      return outcome.response
    }
    remainingMs -= pauseMs
    if ('response' in outcome) await outcome.response.body?.cancel()
    await sleep(pauseMs, request.signal)
  }
}

type Outcome = { response: Response } | { error: unknown }

async function attempt(fetch: RetryOptions['fetch'], request: Request): Promise<Outcome> {
  try {
    return { response: await fetch(request) }
  } catch (error) {
    return { error }
  }
}

/** Milliseconds until the next attempt, or null if there must be none. */
function pauseAfter(outcome: Outcome, request: Request, retries: number): number | null {
  // The service ignores the key of other changes.
  const hasKey = request.method === 'POST' && request.headers.has('Idempotency-Key')
  const isRepeatable = request.method === 'GET' || request.method === 'HEAD' || hasKey
  if ('response' in outcome) {
    const { response } = outcome
    const mayRepeat =
      RETRYABLE_STATUSES.includes(response.status) ||
      (response.status === 503 && (isRepeatable || changeOutcome(response) === 'none'))
    const seconds = mayRepeat ? retryAfterSeconds(response, Date.now()) : null
    return seconds === null ? null : seconds * 1000
  }
  if (request.signal.aborted) return null
  // Jitter: clients that lost their connection together must not return together.
  return isRepeatable ? FIRST_PAUSE_MS * 2 ** retries * (0.5 + Math.random() / 2) : null
}
