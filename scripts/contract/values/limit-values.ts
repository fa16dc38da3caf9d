/** Valid values at the limits of a schema. */
import { mapValues, type Schema } from '../../model/schema.ts'
import { minimalValue, SAMPLES, variants } from './valid-values.ts'
import { isValid } from './validity.ts'

/** Longer enumerations are tried with their first and last value only. */
const MAX_TRIED_OPTIONS = 10

export interface NamedValue {
  /** What is special about the value, for example `full_name: 200 characters`. */
  what: string
  value: unknown
  /** Where the fault of an invalid value is, for example `0.key` in a list. Undefined: the whole
   *  value is invalid. */
  at?: string
}

export function limitValues(schema: Schema): NamedValue[] {
  return [
    ...limitsOfType(schema).filter(({ value }) => isValid(schema, value)),
    ...(schema.nullable ? [{ what: 'null', value: null }] : []),
  ]
}

/** May also contain invalid values, for example when a limit of one keyword is beyond that of
 *  another. */
function limitsOfType(schema: Schema): NamedValue[] {
  if (schema.enum) {
    const options =
      schema.enum.length > MAX_TRIED_OPTIONS ? [schema.enum[0], schema.enum.at(-1)] : schema.enum
    return options.map((value) => ({ what: String(value), value }))
  }
  if (schema.oneOf) return schema.oneOf.flatMap(limitValues)
  switch (schema.type) {
    case 'string':
      return textLimits(schema)
    case 'integer':
    case 'number':
      return numberLimits(schema)
    case 'boolean':
      return [true, false].map((value) => ({ what: String(value), value }))
    case 'array':
      return arrayLimits(schema)
    default:
      return objectLimits(schema)
  }
}

function numberLimits(schema: Schema): NamedValue[] {
  const { minimum, maximum } = schema
  const low = minimum === undefined ? [-1, 0] : [minimum, minimum + 1]
  const high = maximum === undefined ? [Number.MAX_SAFE_INTEGER] : [maximum - 1, maximum]
  const values = schema.type === 'integer' ? [...low, ...high] : [...low, 0.1, 1e21, ...high]
  return values.map((value) => ({ what: String(value), value }))
}

function arrayLimits(schema: Schema): NamedValue[] {
  const { minItems = 0, maxItems } = schema
  const items = schema.items ?? {}
  const shortest = variants(items, minItems)
  const sizes = [shortest, validEntries(items, maxItems ?? minItems)].map((value) => ({
    what: `${value.length} entries`,
    value,
  }))
  const entries = limitValues(items).map(({ what, value }) => ({
    what: `an entry: ${what}`,
    value: [value, ...shortest.slice(1)],
  }))
  return [...sizes, ...entries]
}

/** Different values as far as the schema allows them. */
function validEntries(schema: Schema, count: number): unknown[] {
  const valid = variants(schema, count).filter((value) => isValid(schema, value))
  return Array.from({ length: count }, (_, index) => valid[index % valid.length])
}

function objectLimits(schema: Schema): NamedValue[] {
  const { properties = {}, additionalProperties, maxProperties } = schema
  const base = minimalValue(schema) as object
  const named = Object.entries(properties).flatMap(([name, property]) =>
    limitValues(property).map(({ what, value }) => ({
      what: `${name}: ${what}`,
      value: { ...base, [name]: value },
    })),
  )
  const whole = [
    { what: 'only what is required', value: base },
    { what: 'all fields', value: { ...mapValues(properties, minimalValue), ...base } },
    ...named,
  ]
  if (typeof additionalProperties !== 'object') return whole
  const more = limitValues(additionalProperties).map(({ what, value }) => ({
    what: `a field: ${what}`,
    value: { ...base, name: value },
  }))
  if (maxProperties === undefined) return [...whole, ...more]
  const count = Math.max(0, maxProperties - Object.keys(base).length)
  const full = { ...base, ...toFields(additionalProperties, count) }
  return [...whole, ...more, { what: `${maxProperties} fields`, value: full }]
}

export function toFields(schema: Schema, count: number): object {
  return Object.fromEntries(
    variants(schema, count).map((value, index) => [`field_${index}`, value]),
  )
}

/** The first and the last valid time, a leap day, the largest offsets and the Unix epoch. */
const TIMES = [
  '1000-01-01T00:00:00Z',
  '2999-12-31T23:59:59.999999999Z',
  '2000-02-29T23:59:59.9+23:59',
  '1969-12-31T23:59:59-23:59',
  '1970-01-01T00:00:00Z',
]

function textLimits(schema: Schema): NamedValue[] {
  const { format, minLength = 0, maxLength } = schema
  if (format === 'date-time') return TIMES.map((value) => ({ what: value, value }))
  if (format === 'email')
    return [SAMPLES.email, toEmail(maxLength ?? 254)].map((value) => ({
      what: `${value?.length} characters`,
      value,
    }))
  if (format === 'uuid') return [{ what: 'in upper case', value: SAMPLES.uuid?.toUpperCase() }]
  const lengths = maxLength === undefined ? [minLength] : [minLength, maxLength]
  // An emoji has two UTF-16 units and four bytes, so it detects a wrong count.
  return lengths.flatMap((length) =>
    ['x', '😀'].map((fill) => ({
      what: `${length} characters ${fill}`,
      value: fill.repeat(length),
    })),
  )
}

/** A valid email of `length` characters. `length` must be 6 or more. At most 64 characters stand
 *  before the @, and at most 63 between two dots. */
export function toEmail(length: number): string {
  const ofLabels = length - 64 - '@'.length - 'de'.length
  const domain = `${'d.'.repeat(Math.max(1, Math.ceil(ofLabels / 'd.'.length)))}de`
  return `${'a'.repeat(Math.max(1, length - 1 - domain.length))}@${domain}`
}

export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '')
}
