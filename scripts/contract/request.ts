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
