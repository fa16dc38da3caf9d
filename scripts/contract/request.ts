/** One HTTP request of a contract test, and its response. */

export interface Request {
  /** In upper case. */
  method: string
  /** Path and query. */
  path: string
  headers: Record<string, string>
  body?: string
  /** API key; null sends no Authorization header. */
  key: string | null
  /** The scheme of the Authorization header. `Bearer` is the default. */
  scheme?: string
}

export function authorizationOf({ scheme = 'Bearer' }: Request, key: string): string {
  return `${scheme} ${key}`
}

export interface ReceivedResponse {
  status: number
  headers: Headers
  bytes: Buffer
  text: string
  /** Undefined unless the body is JSON. */
  json: unknown
  /** From sending the request to the end of the response. */
  durationMs: number
}

/** The most bytes of a file. A longer one gets 413. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024
/** The most bytes of a request body. A longer one gets 413. */
export const MAX_BODY_BYTES = 1024 * 1024

/** The most bytes of a URL: path and query. A longer one gets 414. */
export const MAX_URL_BYTES = 8 * 1024

export function toSearch(parameters: [string, unknown][]): string {
  return parameters
    .map(([name, value]) => `${encodeURIComponent(name)}=${toQueryText(value)}`)
    .join('&')
}

/** RFC 6570, form-style expansion: commas between the values of a list are not encoded. */
function toQueryText(value: unknown): string {
  return [value].flat().map(String).map(encodeURIComponent).join(',')
}

/** A list becomes comma-separated text. */
export function toText(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}
