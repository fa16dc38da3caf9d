/** Errors that tell a person or a client what they can do. Koa's exposed `HttpError`s do so, too.
 *  Anything else that is thrown is a fault of the service. */

/** Refuses what a person asked for on the command line or in the console. The message explains why,
 *  and contains no secret. Operations of the API throw `StatusError` instead. */
export class Refused extends Error {
  override name = 'Refused'
}

/** Messages by field. A field is named as the client wrote it, for example `email` or `tags.0`. */
export type FieldErrors = Record<string, string[]>

/** Well-formed input that breaks a rule. The API responds with 422; the console shows the messages
 *  beside the fields. */
export class InvalidInput extends Error {
  override name = 'InvalidInput'
  readonly errors: FieldErrors

  constructor(errors: FieldErrors) {
    super('The input is invalid.')
    this.errors = errors
  }
}

/** Refuses an operation with an HTTP status. The API responds with status, message and headers; the
 *  console shows the message. */
export class StatusError extends Error {
  override name = 'StatusError'
  readonly status: number
  readonly headers: Record<string, string>

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** Throws the error. A `Refused` of code that the console and the commands share becomes 409. */
export function throwConflict(error: unknown): never {
  throw error instanceof Refused ? new StatusError(409, error.message) : error
}

/** Throws 404 when `record` is undefined: it does not exist, or belongs to another account. */
export function assertFound<T>(record: T | undefined, noun: string): asserts record is T {
  if (record === undefined) throw new StatusError(404, `There is no such ${noun}.`)
}
