/** Whether a value is what the contract says, by the generated validators; and what their errors say to people. */
import type { ErrorObject } from 'ajv'
import { type FieldErrors, InvalidInput } from '../errors.ts'
import type { QueryParameter } from '../generated/operations.ts'
import type { Validator } from '../generated/validators.js'

/** Throws InvalidInput unless `value` is valid. `fieldOf` names what is at a path, as the client wrote it. */
export function assertValid(
  validator: Validator,
  value: unknown,
  fieldOf: (path: string[]) => string = (path) => path.join('.'),
): void {
  if (validator(value)) return
  throw new InvalidInput(fieldErrors(validator.errors ?? [], fieldOf))
}

/** A query parameter's text as the contract types it: integers as numbers, comma lists as arrays. What cannot be converted stays text, for
 *  the validator to refuse. */
export function convertParameter(value: string, type: QueryParameter['type'] | undefined): unknown {
  if (type === 'integer') return /^(0|-?[1-9]\d{0,15})$/.test(value) ? Number(value) : value
  if (type === 'list') return value.split(',')
  return value
}

/** Enough for anyone to mend; an answer that names thousands would only be long. */
const MAX_ERRORS = 100

function fieldErrors(errors: ErrorObject[], fieldOf: (path: string[]) => string): FieldErrors {
  // Without a prototype: "constructor" and "__proto__" are names like any other.
  const fields: FieldErrors = Object.create(null)
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const message = messageOf(error)
    if (message === undefined) continue
    const field = fieldOf(pathOf(error))
    fields[field] ??= []
    if (!fields[field].includes(message)) fields[field].push(message)
  }
  return fields
}

function pathOf(error: ErrorObject): string[] {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const name = error.params.missingProperty ?? error.params.additionalProperty
  return name === undefined ? path : [...path, String(name)]
}

const TYPES: Record<string, string> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
}

const FORMATS: Record<string, string> = {
  uuid: 'must be a UUID.',
  email: 'must be an email address.',
  'date-time': 'must be an RFC 3339 date and time, such as 2026-03-02T09:30:00Z.',
}

/** The sentence goes after the name of the field. Undefined: another error of the same value says it better. */
function messageOf({ keyword, params, message, schemaPath }: ErrorObject): string | undefined {
  switch (keyword) {
    case 'required':
      return 'is required.'
    case 'additionalProperties':
      return 'is not known here.'
    case 'type': {
      if (/\/oneOf\/\d+\/type$/.test(schemaPath)) return undefined
      const types = [params.type].flat().filter((type) => type !== undefined)
      return `must be ${types.map((type) => TYPES[type] ?? type).join(' or ')}.`
    }
    case 'oneOf':
      return 'has a value of a type that is not accepted here.'
    case 'enum':
      return `must be one of ${params.allowedValues.map((value: unknown) => (value === null ? 'null' : value)).join(', ')}.`
    case 'format':
      return FORMATS[params.format] ?? `must be in the form of ${params.format}.`
    case 'pattern':
      return params.pattern.startsWith('^[12]\\d{3}-')
        ? FORMATS['date-time']
        : 'does not have the form that is asked for.'
    case 'minLength':
      return params.limit === 1
        ? 'must not be empty.'
        : `must have at least ${params.limit} characters.`
    case 'maxLength':
      return `must have at most ${params.limit} characters.`
    case 'minimum':
      return `must be at least ${params.limit}.`
    case 'maximum':
      return `must be at most ${params.limit}.`
    case 'minItems':
      return `must have at least ${params.limit} entries.`
    case 'maxItems':
      return `must have at most ${params.limit} entries.`
    case 'maxProperties':
      return `must have at most ${params.limit} fields.`
    case 'uniqueItems':
      return 'must not name the same twice.'
    default:
      return `${message ?? 'is not valid'}.`
  }
}
