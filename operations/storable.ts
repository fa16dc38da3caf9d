/** Limits of a JSON value that the databases and the validators can handle. */
import { type FieldErrors, InvalidInput, StatusError } from '../errors.ts'

const MAX_DEPTH = 32
/** Fields and entries together. Validating more would take too long. */
const MAX_VALUES = 10_000

/** PostgreSQL stores no NUL in text, and an unpaired surrogate has no UTF-8 encoding. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export const UNSTORABLE = 'must not contain the NUL character or half of a surrogate pair.'

/** Throws 400 for a value that is too deep or too large, and InvalidInput for text that cannot be stored. */
export function assertStorable(value: unknown): void {
  const errors: FieldErrors = Object.create(null)
  let count = 0
  const visit = (child: unknown, path: string, depth: number): void => {
    if (++count > MAX_VALUES)
      throw new StatusError(
        400,
        `The body has more than ${MAX_VALUES.toLocaleString('en')} fields and entries.`,
      )
    if (typeof child === 'string' && !isStorable(child)) errors[path] = [UNSTORABLE]
    if (typeof child !== 'object' || child === null) return
    if (depth > MAX_DEPTH)
      throw new StatusError(400, `The body is nested deeper than ${MAX_DEPTH} levels.`)
    for (const [key, grandchild] of Object.entries(child)) {
      const field = path === '' ? key : `${path}.${key}`
      if (isStorable(key)) visit(grandchild, field, depth + 1)
      else
        errors[field.toWellFormed().replaceAll('\0', '\uFFFD')] = [`has a name that ${UNSTORABLE}`]
    }
  }
  visit(value, '', 1)
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}
