import { retryAfterSeconds } from './error.ts'

export interface Patience {
  fetch(request: Request): Promise<Response>
  maxRetries: number
  /** Of one call, all its pauses together. */
  maxWaitMs: number
}

/** 409 has `Retry-After` only while an earlier request with the same `Idempotency-Key` is still being worked on. Of all three nothing was done. */
const WORTH_WAITING = [409, 429, 503]
const FIRST_PAUSE_MS = 250

/** Sends the request again, after the pause that the service asks for. A broken connection is tried again where a repeat does no harm.
 *  What would take longer than allowed is not waited for: the answer is returned, or the error thrown, at once. */
export async function fetchPatiently(
  request: Request,
  { fetch, maxRetries, maxWaitMs }: Patience,
): Promise<Response> {
  let left = maxWaitMs
  for (let retries = 0; ; retries++) {
    const isLast = retries >= maxRetries
    // A body can be sent once.
    const outcome = await attempt(fetch, isLast ? request : request.clone())
    const pauseMs = isLast ? null : pauseAfter(outcome, request, retries)
    if (pauseMs === null || pauseMs > left) {
      if ('error' in outcome) throw outcome.error
      return outcome.response
    }
    left -= pauseMs
    if ('response' in outcome) await outcome.response.body?.cancel()
    await sleep(pauseMs, request.signal)
  }
}

type Outcome = { response: Response } | { error: unknown }

async function attempt(fetch: Patience['fetch'], request: Request): Promise<Outcome> {
  try {
    return { response: await fetch(request) }
  } catch (error) {
    return { error }
  }
}

/** Milliseconds; null: there is no use in trying again. */
function pauseAfter(outcome: Outcome, request: Request, retries: number): number | null {
  if ('response' in outcome) {
    const seconds = WORTH_WAITING.includes(outcome.response.status)
      ? retryAfterSeconds(outcome.response, Date.now())
      : null
    return seconds === null ? null : seconds * 1000
  }
  if (request.signal.aborted) return null
  const isHarmless =
    request.method === 'GET' || request.method === 'HEAD' || request.headers.has('Idempotency-Key')
  // Half of it by chance: those who lost their connection together must not come back together.
  return isHarmless ? FIRST_PAUSE_MS * 2 ** retries * (0.5 + Math.random() / 2) : null
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}
