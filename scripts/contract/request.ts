/** One request of a contract test, how it is sent, and how somebody repeats it. */
import { setTimeout as delay } from 'node:timers/promises'

export interface Request {
  /** In upper case. */
  method: string
  /** Below the service's address, with the query. */
  path: string
  headers: Record<string, string>
  body?: string
  /** The text after `Bearer `; null sends no Authorization. */
  key: string | null
}

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** Undefined unless the body is JSON. */
  json: unknown
}

const TIMEOUT_MS = 30_000
const LONGEST_WAIT_SECONDS = 90

/** Sends it. Waits where a rate limit asks for it, after `onLimited` has had the refusal. Throws when nothing answers. */
export async function exchange(
  url: string,
  request: Request,
  onLimited: (answer: Answer) => void,
): Promise<Answer> {
  for (;;) {
    const answer = await exchangeOnce(url, request)
    const seconds = Number(answer.headers.get('retry-after'))
    if (answer.status !== 429 || !(seconds >= 0 && seconds <= LONGEST_WAIT_SECONDS)) return answer
    onLimited(answer)
    await delay(seconds * 1000)
  }
}

async function exchangeOnce(
  url: string,
  { method, path, headers, body, key }: Request,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: key === null ? headers : { ...headers, Authorization: `Bearer ${key}` },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: jsonOf(text) }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
