/** The service responded with an error. Decide by `status`: the text of `message` can change. */
export class MusterError extends Error {
  override readonly name = 'MusterError'
  readonly status: number
  /** The problems of each invalid field, by the name in the request. Empty unless the status is
   *  422. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** Quote this ID when you report a problem. */
  readonly requestId: string | null
  /** The pause that the service asks for, or null. */
  readonly retryAfterSeconds: number | null
  /** Says of a change with status 503 whether the service made it: `none`, or `unknown` if it may
   *  have. Null for all other responses. */
  readonly changeOutcome: ChangeOutcome | null
  /** For example `POST /public/v1/tasks`. */
  readonly request: string

  constructor(request: string, response: Response, body: string) {
    const { message, errors } = parseBody(body)
    super(message ?? `${request} returned ${response.status} without a readable message.`)
    this.request = request
    this.status = response.status
    this.errors = errors ?? {}
    this.requestId = response.headers.get('X-Request-Id')
    this.retryAfterSeconds = retryAfterSeconds(response, Date.now())
    this.changeOutcome = changeOutcome(response)
  }
}

export type ChangeOutcome = 'none' | 'unknown'

/** Reads `X-Change-Outcome`. Null without the header, or for another value. */
export function changeOutcome({ headers }: Response): ChangeOutcome | null {
  const header = headers.get('X-Change-Outcome')
  return header === 'none' || header === 'unknown' ? header : null
}

/** Reads `Retry-After`, which has seconds or a date (RFC 9110 §10.2.3). Null for anything else.
 *  `now` is in epoch milliseconds. */
export function retryAfterSeconds({ headers }: Response, now: number): number | null {
  const header = headers.get('Retry-After')?.trim() ?? ''
  if (/^\d+$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000))
}

/** A proxy may respond in HTML, or without a body. */
function parseBody(body: string): { message?: string; errors?: Record<string, string[]> } {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value !== 'object' || value === null) return {}
    const { message, errors } = value as { message?: unknown; errors?: unknown }
    return {
      ...(typeof message === 'string' && { message }),
      ...(typeof errors === 'object' &&
        errors !== null && { errors: errors as Record<string, string[]> }),
    }
  } catch {
    return {}
  }
}
