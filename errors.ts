/** Errors that tell a person or a client what they can do. Anything else that is thrown is a fault of the service. */

/** The request cannot be fulfilled. The message explains why to the person who asked, and contains no secret. */
export class Refused extends Error {
  override name = 'Refused'
}

/** Messages by field. A field is named as the client wrote it, for example `email` or `tags.0`. */
export type FieldErrors = Record<string, string[]>

/** Well-formed input that breaks a rule. The API responds with 422; the console shows the messages beside the fields. */
export class InvalidInput extends Error {
  override name = 'InvalidInput'
  readonly errors: FieldErrors

  constructor(errors: FieldErrors) {
    super('The given data was invalid.')
    this.errors = errors
  }
}
