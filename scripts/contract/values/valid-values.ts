/** Generators of valid values of a schema, and short values of its type. */
import fc from 'fast-check'
import { isNotBlankPattern, mapValues, type Schema, TEXT_PATTERN } from '../../model/schema.ts'
import { isValid } from './validity.ts'

/** Random values stay small, because larger ones would take seconds to generate. limit-values.ts
 *  tries the limits. */
const TEXT_SIZE = 'medium'
const LIST_SIZE = 'small'

/** The word for the only value that tests of other values send. */
const TEST_VALUE = 'x-test-value'

/** Generates valid values, which shrink to short ones. Throws for an unknown type. */
export function validValues(schema: Schema): fc.Arbitrary<unknown> {
  if (TEST_VALUE in schema) return fc.constant(schema[TEST_VALUE])
  const values = valuesOfType(schema)
  return schema.nullable ? fc.option(values, { nil: null, freq: 4 }) : values
}

function valuesOfType(schema: Schema): fc.Arbitrary<unknown> {
  const { minimum, maximum, minItems = 0, maxItems } = schema
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.oneOf) return fc.oneof(...schema.oneOf.map(validValues))
  switch (schema.type) {
    case 'string':
      return texts(schema)
    case 'integer':
      return fc.integer({
        min: minimum ?? Number.MIN_SAFE_INTEGER,
        max: maximum ?? Number.MAX_SAFE_INTEGER,
      })
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'array': {
      const items = validValues(schema.items ?? {})
      const size = { minLength: minItems, maxLength: maxItems, size: LIST_SIZE } as const
      return schema.uniqueItems
        ? fc.uniqueArray(items, { ...size, selector: (item) => JSON.stringify(item) })
        : fc.array(items, size)
    }
    case 'object':
      return objects(schema)
    default:
      throw new Error(
        `Add valid values for this schema to scripts/contract/values/valid-values.ts: ${JSON.stringify(schema)}`,
      )
  }
}

/** The contract forbids NUL in all text. */
const withoutNul = (text: string): string => text.replaceAll('\0', ' ')

const FORMATS: Record<string, fc.Arbitrary<string>> = {
  uuid: fc.uuid(),
  email: fc.emailAddress(),
  'date-time': fc
    .tuple(
      // A day from the ends of the years 1000 to 2999: no offset moves a time out of these years.
      fc.date({ min: new Date('1000-01-02'), max: new Date('2999-12-30'), noInvalidDate: true }),
      fc.constantFrom('Z', '+00:00', '-11:30', '+14:00'),
    )
    .map(([time, offset]) => time.toISOString().replace('Z', offset)),
}

function texts(schema: Schema): fc.Arbitrary<string> {
  const { format, pattern, minLength = 0, maxLength } = schema
  const isValidText = (text: string): boolean => isValid(schema, text)
  if (format !== undefined) return (FORMATS[format] ?? unknownFormat(format)).filter(isValidText)
  if (restrictsWholeText(pattern))
    return fc.stringMatching(new RegExp(pattern, 'u'), { size: TEXT_SIZE }).filter(isValidText)
  const size = { minLength, maxLength, size: TEXT_SIZE } as const
  return fc
    .oneof(
      fc.string({ unit: 'grapheme-ascii', ...size }),
      fc.string({ unit: 'binary', ...size }).map(withoutNul),
    )
    .filter(isValidText)
}

/** Whether random text hardly ever matches the pattern. Random text nearly always matches patterns
 *  without ^ and $, and patterns that only forbid NUL or blank text. */
export function restrictsWholeText(pattern: string | undefined): pattern is string {
  const isOrdinaryText = pattern === TEXT_PATTERN || isNotBlankPattern(pattern)
  return !isOrdinaryText && /^\^.*\$$/s.test(pattern ?? '')
}

function unknownFormat(format: string): never {
  throw new Error(
    `Add this format to FORMATS in scripts/contract/values/valid-values.ts: ${format}`,
  )
}

function objects({
  properties = {},
  required = [],
  additionalProperties,
  maxProperties,
}: Schema): fc.Arbitrary<object> {
  const named = fc.record(mapValues(properties, validValues), {
    requiredKeys: [...required],
  })
  if (typeof additionalProperties !== 'object') return named
  const otherNames = fc
    .string({ unit: 'binary', maxLength: 20 })
    .map(withoutNul)
    .filter((name) => !Object.hasOwn(properties, name))
  const others = fc.dictionary(otherNames, validValues(additionalProperties), {
    maxKeys: maxProperties && Math.max(0, maxProperties - Object.keys(properties).length),
    size: LIST_SIZE,
  })
  return fc.tuple(others, named).map(([other, declared]) => ({ ...other, ...declared }))
}

/** A valid text of each format. */
export const SAMPLES: Record<string, string> = {
  uuid: '019cade2-11c0-7000-8000-000000000000',
  email: 'a@example.com',
  'date-time': '2026-03-02T09:30:00Z',
}

/** A short value; an object has the required fields only. Ignores patterns and upper limits. */
export function minimalValue(schema: Schema): unknown {
  return variant(schema, 0)
}

/** A short value of the type. Numbers, UUIDs, and text without a format, differ for each `index`.
 *  Ignores patterns and upper limits. */
export function variant(schema: Schema, index: number): unknown {
  if (TEST_VALUE in schema) return schema[TEST_VALUE]
  const { minimum = 0, minLength = 0, minItems = 0, format } = schema
  if (schema.enum) return schema.enum[index % schema.enum.length]
  if (schema.oneOf?.[0]) return variant(schema.oneOf[0], index)
  switch (schema.type) {
    case 'string':
      if (format === 'uuid') return uuidVariant(index)
      return (format && SAMPLES[format]) || `v${index}`.padEnd(minLength, 'x')
    case 'integer':
    case 'number':
      return minimum + index
    case 'array':
      return variants(schema.items ?? {}, minItems)
    case 'object': {
      const { properties = {}, required = [] } = schema
      return Object.fromEntries(
        required.map((name) => [name, variant(properties[name] ?? {}, index)]),
      )
    }
    default:
      return true
  }
}

/** The sample for 0. */
function uuidVariant(index: number): string {
  const { uuid = '' } = SAMPLES
  const end = index.toString(16)
  return uuid.slice(0, uuid.length - end.length) + end
}

export function variants(schema: Schema, count: number): unknown[] {
  return Array.from({ length: count }, (_, index) => variant(schema, index))
}
