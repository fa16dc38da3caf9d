/** One HTTP request of a contract test. */
import { setTimeout as delay } from 'node:timers/promises'

export interface Request {
  /** In upper case. */
  method: string
  /** Path and query. */
  path: string
  headers: Record<string, string>
  body?: string
  /** API key; null sends no Authorization header. */
  key: string | null
}

export interface ReceivedResponse {
  status: number
  headers: Headers
  text: string
  /** Undefined unless the body is JSON. */
  json: unknown
}

const TIMEOUT_MS = 30_000
const MAX_WAIT_SECONDS = 90

/** Sends the request. After 429, calls `onLimited`, waits for `Retry-After` and sends it again.
 *  Throws if no response arrives. */
export async function exchange(
  url: string,
  request: Request,
  onLimited: (response: ReceivedResponse) => void,
): Promise<ReceivedResponse> {
  for (;;) {
    const response = await exchangeOnce(url, request)
    const seconds = Number(response.headers.get('retry-after'))
    if (response.status !== 429 || !(seconds >= 0 && seconds <= MAX_WAIT_SECONDS)) return response
    onLimited(response)
    await delay(seconds * 1000)
  }
}

async function exchangeOnce(
  url: string,
  { method, path, headers, body, key }: Request,
): Promise<ReceivedResponse> {
  const response = await fetch(url + path, {
    method,
    headers: key === null ? headers : { ...headers, Authorization: `Bearer ${key}` },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: parseJson(text) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
