/** One request of a contract test, how it is sent, and how somebody repeats it. */
import { setTimeout as delay } from 'node:timers/promises'
import { quoteForShell } from '../../web/shared/shell.ts'

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

/** A line for a POSIX shell. `$KEY` stands for the key of the run, which is not in it. */
export function curl(
  url: string,
  { method, path, headers, body, key }: Request,
  keyOfRun: string,
): string {
  const given = Object.entries(headers).map(
    ([name, value]) => `-H ${quoteForShell(value === '' ? `${name};` : `${name}: ${value}`)}`,
  )
  const authorization =
    key === null
      ? []
      : [
          key === keyOfRun
            ? '-H "Authorization: Bearer $KEY"'
            : '-H "Authorization: Bearer $OTHER_KEY"',
        ]
  const parts = [
    'curl -sS -i --globoff',
    `-X ${method}`,
    quoteForShell(url + path),
    ...authorization,
    ...given,
  ]
  if (body === undefined) return parts.join(' ')
  const pieces = body.split(LONG_RUN).filter((piece) => piece !== '')
  if (pieces.length === 1 && !isLongRun(body))
    return [...parts, `--data-raw ${quoteForShell(body)}`].join(' ')
  return `{ ${pieces.map(printed).join(' ')} } | ${[...parts, '--data-binary @-'].join(' ')}`
}

/** So many of one letter are counted rather than shown. */
const LONG_RUN = /(x{100,}|a{100,}|(?:\u{1F600}){100,})/u

function isLongRun(text: string): boolean {
  return LONG_RUN.exec(text)?.[0] === text
}

function printed(piece: string): string {
  if (!isLongRun(piece)) return `printf %s ${quoteForShell(piece)};`
  const letters = [...piece]
  return `printf '${letters[0]}%.0s' $(seq ${letters.length});`
}
