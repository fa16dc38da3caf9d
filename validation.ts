/** Checks values with the generated validators, and turns their errors into sentences. */
import { domainToASCII } from 'node:url'
import type { ErrorObject } from 'ajv'
import { type FieldErrors, InvalidInput } from './errors.ts'
import type { QueryParameter } from './generated/operations.ts'
import type { Validator } from './generated/validators.js'

/** Throws `InvalidInput` unless `value` is valid. `fieldOf` turns a path in `value` into the name
 *  that the client used. */
export function assertValid(
  validator: Validator,
  value: unknown,
  fieldOf: (path: string[]) => string = (path) => path.join('.'),
): void {
  if (validator(value)) return
  throw new InvalidInput(fieldErrors(validator.errors ?? [], value, fieldOf))
}

/** Converts a query parameter to its type in the contract: integers to numbers, comma lists to
 *  arrays, without blanks around their entries. Text of another type stays text, which the validator
 *  refuses. Of a `text_list`, the text is one value. */
export function convertParameter(
  value: string,
  { type, nullable }: Partial<QueryParameter> = {},
): unknown {
  if (nullable && value === 'null') return null
  if (type === 'text_list') return [value]
  if (type === 'integer') return /^(0|-?[1-9]\d{0,15})$/.test(value) ? Number(value) : value
  if (type === 'boolean' && /^(true|false)$/.test(value)) return value === 'true'
  if (type === 'list') return value.split(',').map((entry) => entry.trim())
  return value
}

/** More errors make a response longer, but not more helpful. */
const MAX_ERRORS = 100

function fieldErrors(
  errors: ErrorObject[],
  value: unknown,
  fieldOf: (path: string[]) => string,
): FieldErrors {
  // No prototype, so that "constructor" and "__proto__" are ordinary names.
  const fields: FieldErrors = Object.create(null)
  const alternativeTypes = new Map<string, string[]>()
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const field = fieldOf(toPath(error))
    if (isTypeOfAlternative(error)) {
      const earlier = alternativeTypes.get(field) ?? []
      alternativeTypes.set(field, [...earlier, ...[error.params.type].flat()])
      continue
    }
    const message = toMessage(error, invalidText(error, value), alternativeTypes.get(field))
    if (message === undefined) continue
    const isFieldOrPart = (name: string): boolean => name === field || name.startsWith(`${field}.`)
    // An earlier error of one of the alternatives is clearer than that of the whole `oneOf`.
    if (error.keyword === 'oneOf' && Object.keys(fields).some(isFieldOrPart)) continue
    fields[field] ??= []
    // Empty text also breaks the first of the two `BLANK` patterns, and one message is enough.
    const isReported =
      fields[field].includes(message) || (message === BLANK && fields[field].includes(EMPTY))
    if (!isReported) fields[field].push(message)
  }
  return fields
}

function instancePath(error: ErrorObject): string[] {
  return error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The invalid part of the value, if it is text. */
function invalidText(error: ErrorObject, value: unknown): string {
  let part = value
  for (const name of instancePath(error)) part = (part as Record<string, unknown>)[name]
  return typeof part === 'string' ? part : ''
}

function toPath(error: ErrorObject): string[] {
  const path = instancePath(error)
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

const DATE_TIME = 'must be an RFC 3339 date and time, for example 2026-03-02T09:30:00Z.'

const FORMATS: Record<string, (value: string) => string> = {
  uuid: () => 'must be a UUID.',
  email: emailMessage,
  'date-time': dateTimeMessage,
}

/** RFC 5321 allows ASCII only. RFC 6531 extends it, but not every mail server does. */
function emailMessage(value: string): string {
  const notAscii = /\P{ASCII}/u
  if (!notAscii.test(value)) return 'must be an email address.'
  const [local = '', domain = ''] = value.split('@')
  const ascii = domainToASCII(domain)
  const cure = ascii === '' || notAscii.test(local) ? '' : ` Write ${local}@${ascii}.`
  return `must be an email address of ASCII characters.${cure}`
}

function dateTimeMessage(value: string): string {
  if (/^[03-9]\d{3}-\d{2}-\d{2}T/.test(value)) return 'must be in the years 1000 to 2999.'
  return / \d{2}:\d{2}$/.test(value) ? `${DATE_TIME} In a URL, write + as %2B.` : DATE_TIME
}

const EMPTY = 'must not be empty.'
const BLANK = 'must not be only white space.'

/** Messages by the exact pattern in openapi.yaml. */
const PATTERNS: Record<string, string | ((value: string) => string)> = {
  '^[12]\\d{3}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d{2}:\\d{2})$':
    dateTimeMessage,
  '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$':
    'must be 1 to 64 letters, digits, _, . and -, and begin with a letter, digit or _.',
  '^\\s*[^\\s\\x00][^\\x00]*$': BLANK,
  '^(\\s*[^\\s\\x00][^\\x00]*)?$': BLANK,
  '^[\\x21-\\x7e]+$': 'must contain printable ASCII characters only, without spaces.',
}

/** Whether the error names the type that one alternative of a `oneOf` accepts. The error about the
 *  whole `oneOf` comes later. */
function isTypeOfAlternative({ keyword, schemaPath }: ErrorObject): boolean {
  return keyword === 'type' && /\/oneOf\/\d+\/type$/.test(schemaPath)
}

/** A sentence that follows the name of the field. Undefined when another error of the same value is
 *  clearer. `alternativeTypes` are the types that `oneOf` accepts. */
function toMessage(
  { keyword, params, message }: ErrorObject,
  value: string,
  alternativeTypes: string[] | undefined,
): string | undefined {
  switch (keyword) {
    case 'required':
      return 'is required.'
    case 'additionalProperties':
      return 'is not a recognised field.'
    case 'type':
      return formatTypes([params.type].flat())
    // The errors of the `then` or `else` branch are reported instead.
    case 'if':
      return undefined
    case 'oneOf':
      return alternativeTypes ? formatTypes(alternativeTypes) : 'is not valid.'
    case 'enum':
      return enumMessage(params.allowedValues.map(String), value)
    case 'format':
      return FORMATS[params.format]?.(value) ?? `must have the format ${params.format}.`
    case 'pattern':
      return patternMessage(params.pattern, value)
    case 'minLength':
      return params.limit === 1 ? EMPTY : `must have at least ${params.limit} characters.`
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
      return 'must not contain the same value twice.'
    default:
      return `${message ?? 'is not valid'}.`
  }
}

function formatTypes(types: string[]): string {
  return `must be ${types.map((type) => TYPES[type] ?? type).join(' or ')}.`
}

function patternMessage(pattern: string, value: string): string {
  const message = PATTERNS[pattern] ?? 'has an invalid format.'
  return typeof message === 'string' ? message : message(value)
}

/** More values make a message longer, but not more helpful. */
const MAX_LISTED_VALUES = 50

function enumMessage(allowed: string[], value: string): string {
  if (allowed.length <= MAX_LISTED_VALUES) return `must be one of ${allowed.join(', ')}.`
  const nearest = findNearest(allowed, value.toUpperCase())
  const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  return `is not one of the ${allowed.length} possible values.${hint}`
}

/** The code with the most characters in the same places: all of them, or all but one. */
function findNearest(codes: string[], value: string): string | undefined {
  const differences = (code: string): number =>
    [...code].filter((character, index) => character !== value[index]).length
  const [nearest] = codes.toSorted((one, other) => differences(one) - differences(other))
  return nearest !== undefined && differences(nearest) <= 1 ? nearest : undefined
}
