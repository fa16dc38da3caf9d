/** Limits of a JSON value that the databases and the validators can handle. */
import { type FieldErrors, InvalidInput, StatusError } from '../errors.ts'

const MAX_DEPTH = 32
/** The most fields and entries together of a single record. Validating more would take too long. */
export const MAX_VALUES = 10_000

/** PostgreSQL stores no NUL in text, and an unpaired surrogate has no UTF-8 encoding. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export const UNSTORABLE = 'must not contain the NUL character or half of a surrogate pair.'

/** Throws 400 for JSON text that is too deep or has too many values. Takes less time than parsing
 *  the text. */
export function assertNotTooComplex(text: string, maxValues: number): void {
  let depth = 0
  let commas = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === '[' || character === '{') {
      if (++depth > MAX_DEPTH) throw tooDeep()
    } else if (character === ']' || character === '}') depth--
    else if (character === ',' && ++commas > maxValues) throw tooMany(maxValues)
  }
}

/** The index of the quotation mark that ends the string, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

const tooDeep = (): StatusError =>
  new StatusError(400, `The body is nested deeper than ${MAX_DEPTH} levels.`)
const tooMany = (maxValues: number): StatusError =>
  new StatusError(
    400,
    `The body has more than ${maxValues.toLocaleString('en')} fields and entries.`,
  )

/** Throws 400 for a value that is too deep or contains too many values, and InvalidInput for text
 *  that cannot be stored. */
export function assertStorable(value: unknown): void {
  const errors: FieldErrors = Object.create(null)
  let count = 0
  const visit = (child: unknown, path: string, depth: number): void => {
    if (++count > MAX_VALUES) throw tooMany(MAX_VALUES)
    if (typeof child === 'string' && !isStorable(child)) errors[path] = [UNSTORABLE]
    if (typeof child !== 'object' || child === null) return
    if (depth > MAX_DEPTH) throw tooDeep()
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
