/** Per field as the client wrote it (`email`, `tags.0`), what is wrong with it. */
export type FieldErrors = Record<string, string[]>

/** The input is well-formed, but not acceptable: a 422, or a refusal in the console. */
export class InvalidInput extends Error {
  override name = 'InvalidInput'
  readonly errors: FieldErrors

  constructor(errors: FieldErrors) {
    super('The given data was invalid.')
    this.errors = errors
  }
}
