/** The service answered with an error. `message` is its sentence for people: decide by `status`, since messages may change. */
export class MusterError extends Error {
  override readonly name = 'MusterError'
  readonly status: number
  /** For each field at fault, named as it was sent, what is wrong with it. Empty but for 422. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** Name it when you report a problem. */
  readonly requestId: string | null
  /** What the service asked to wait. Null: nothing. */
  readonly retryAfterSeconds: number | null
  /** Such as `POST /public/v1/tasks`. */
  readonly request: string

  constructor(request: string, response: Response, body: string) {
    const { message, errors } = parsed(body)
    super(
      message ??
        `${request} was answered with ${response.status}, and nothing that this client understands.`,
    )
    this.request = request
    this.status = response.status
    this.errors = errors ?? {}
    this.requestId = response.headers.get('X-Request-Id')
    this.retryAfterSeconds = retryAfterSeconds(response, Date.now())
  }
}

/** Seconds, or a date (RFC 9110 §10.2.3). Null for anything else. */
export function retryAfterSeconds({ headers }: Response, now: number): number | null {
  const header = headers.get('Retry-After')?.trim() ?? ''
  if (/^\d+$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000))
}

/** What stands between here and the service may answer in HTML, or with nothing. */
function parsed(body: string): { message?: string; errors?: Record<string, string[]> } {
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
