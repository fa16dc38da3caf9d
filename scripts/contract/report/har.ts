/** The exchanges of failed checks as HTTP Archive 1.2. */
import { authorizationOf, type ReceivedResponse, type Request } from '../request.ts'
import type { Exchange } from '../sender.ts'
import type { Report } from './report.ts'

export function toHar({ url, cases }: Pick<Report, 'url' | 'cases'>): string {
  const entries = cases.flatMap(({ operation, name, failures }) =>
    failures.flatMap(({ exchanges, what, message }) =>
      exchanges.map((exchange) => ({
        ...toEntry(url, exchange),
        comment: `${operation} ${name}: ${what}: ${message}`,
      })),
    ),
  )
  const creator = { name: 'contract tests', version: '1' }
  return JSON.stringify({ log: { version: '1.2', creator, entries } }, null, 2)
}

function toEntry(url: string, { request, response, startedAt, durationMs }: Exchange): object {
  return {
    startedDateTime: new Date(startedAt).toISOString(),
    time: durationMs,
    request: toHarRequest(url, request),
    response: toHarResponse(response),
    cache: {},
    timings: { send: 0, wait: durationMs, receive: 0 },
  }
}

/** HAR 1.2: -1 stands for a size that is unknown. */
const UNKNOWN_SIZE = -1

const COMMON = { httpVersion: 'HTTP/1.1', cookies: [], headersSize: UNKNOWN_SIZE }

function toHarRequest(url: string, request: Request): object {
  const { method, path, headers, body, key } = request
  const authorization: Record<string, string> =
    key === null ? {} : { Authorization: authorizationOf(request, key) }
  const type = headers['Content-Type'] ?? ''
  return {
    ...COMMON,
    method,
    url: url + path,
    headers: toPairs(Object.entries({ ...headers, ...authorization })),
    queryString: toPairs(new URL(path, url).searchParams),
    bodySize: Buffer.byteLength(body ?? ''),
    ...(body === undefined ? {} : { postData: { mimeType: type, text: body } }),
  }
}

/** The status 0 stands for no response, as in browsers. */
function toHarResponse(response: ReceivedResponse | null): object {
  const { status = 0, headers = new Headers(), text = '' } = response ?? {}
  return {
    ...COMMON,
    status,
    statusText: response === null ? 'no response' : '',
    headers: toPairs(headers),
    content: {
      size: Buffer.byteLength(text),
      mimeType: headers.get('content-type') ?? '',
      text,
    },
    redirectURL: headers.get('location') ?? '',
    bodySize: Buffer.byteLength(text),
  }
}

function toPairs(values: Iterable<[string, string]>): { name: string; value: string }[] {
  return Array.from(values, ([name, value]) => ({ name, value }))
}
