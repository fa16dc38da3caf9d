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
}

export interface ReceivedResponse {
  status: number
  headers: Headers
  text: string
  /** Undefined unless the body is JSON. */
  json: unknown
}

/** One byte more than a request body may have. */
export const TOO_MANY_BODY_BYTES = 1024 * 1024 + 1

/** More than servers commonly accept in a URL, but less than Node's default limit of 16 KiB for the
 *  URL and all headers. */
export const LONG_URL_CHARACTERS = 9000
