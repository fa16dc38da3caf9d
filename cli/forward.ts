import { request } from 'undici'

/** The response to a forwarded delivery. */
export interface ForwardedResponse {
  /** 502 or 504 if there is no response. */
  status: number
  /** Only the headers that Muster uses or shows. */
  headers: Record<string, string>
  /** At most `MAX_BODY_BYTES`: the chunk that exceeds them and all later ones are left out. */
  body: Buffer
  durationMs: number
  /** Why there is no response. Null: there is one. */
  error: string | null
}

/** The timeout of Muster's own attempts. */
const TIMEOUT_MS = 15_000
const MAX_BODY_BYTES = 1024 * 1024
/** Hop-by-hop headers (RFC 9110 §7.6.1). Also `host`, which undici sets, and `expect`, which it
 *  refuses. */
const CONNECTION_HEADERS = [
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
const RETURNED_HEADERS = ['content-type', 'retry-after']

/** Sends a received delivery on to `url`: its body, and its headers without `CONNECTION_HEADERS`.
 *  Returns the response. Does not follow redirects. Never throws. */
export async function forward(
  url: string,
  rawHeaders: string[],
  body: Buffer,
): Promise<ForwardedResponse> {
  const startedAt = performance.now()
  const withDuration = (response: Omit<ForwardedResponse, 'durationMs'>): ForwardedResponse => ({
    ...response,
    durationMs: Math.round(performance.now() - startedAt),
  })
  try {
    const response = await request(url, {
      method: 'POST',
      headers: removeConnectionHeaders(rawHeaders),
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const chunks: Buffer[] = []
    let byteSize = 0
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      byteSize += chunk.length
      if (byteSize <= MAX_BODY_BYTES) chunks.push(chunk)
    }
    const headers = RETURNED_HEADERS.flatMap((name) => {
      const value = response.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    })
    return withDuration({
      status: response.statusCode,
      headers: Object.fromEntries(headers),
      body: Buffer.concat(chunks),
      error: null,
    })
  } catch (error) {
    const isTimeout = (error as Error).name === 'TimeoutError'
    const { message, code } = error as NodeJS.ErrnoException
    const reason = isTimeout ? `no response within ${TIMEOUT_MS / 1000} s` : message || String(code)
    return withDuration({
      status: isTimeout ? 504 : 502,
      headers: {},
      body: Buffer.alloc(0),
      error: reason,
    })
  }
}

/** `rawHeaders` alternates names and values, as in Node.js and undici. */
function removeConnectionHeaders(rawHeaders: string[]): string[] {
  return rawHeaders.filter(
    (_, index) =>
      !CONNECTION_HEADERS.includes((rawHeaders[index - (index % 2)] ?? '').toLowerCase()),
  )
}
