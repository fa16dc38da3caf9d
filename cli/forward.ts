import { request } from 'undici'

/** What came of passing a delivery on. */
export interface Forwarded {
  /** Of the answer; 502 or 504 when there is none. */
  status: number
  /** What the sender of the delivery acts on, or shows. */
  headers: Record<string, string>
  body: Buffer
  durationMs: number
  /** Why there is no answer. */
  error: string | null
}

/** As long as Muster waits itself. */
const TIMEOUT_MS = 15_000
const MAX_BODY_BYTES = 1024 * 1024
/** Of one connection, not of the request (RFC 9110 §7.6.1), and what the new connection has of its own. */
const NOT_PASSED_ON = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
]
const PASSED_BACK = ['content-type', 'retry-after']

/** Sends the same bytes with the same headers to `url` and brings its answer. Follows no redirect, and never throws. */
export async function forward(url: string, rawHeaders: string[], body: Buffer): Promise<Forwarded> {
  const begun = performance.now()
  const end = (answer: Omit<Forwarded, 'durationMs'>): Forwarded => ({
    ...answer,
    durationMs: Math.round(performance.now() - begun),
  })
  try {
    const response = await request(url, {
      method: 'POST',
      headers: passedOn(rawHeaders),
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const chunks: Buffer[] = []
    let byteSize = 0
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      byteSize += chunk.length
      if (byteSize <= MAX_BODY_BYTES) chunks.push(chunk)
    }
    const headers = PASSED_BACK.flatMap((name) => {
      const value = response.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    })
    return end({
      status: response.statusCode,
      headers: Object.fromEntries(headers),
      body: Buffer.concat(chunks),
      error: null,
    })
  } catch (error) {
    const isLate = (error as Error).name === 'TimeoutError'
    const { message, code } = error as NodeJS.ErrnoException
    const reason = isLate ? `no answer within ${TIMEOUT_MS / 1000} s` : message || String(code)
    return end({ status: isLate ? 504 : 502, headers: {}, body: Buffer.alloc(0), error: reason })
  }
}

/** Names and values in turn, as Node.js and undici have them. */
function passedOn(rawHeaders: string[]): string[] {
  return rawHeaders.filter(
    (_, index) => !NOT_PASSED_ON.includes((rawHeaders[index - (index % 2)] ?? '').toLowerCase()),
  )
}
