/** Valid values at the limits of a schema. */
import { mapValues, type Schema } from '../model/schema.ts'
import {
  accepts,
  isDistinct,
  type Limits,
  least,
  type NamedValue,
  SAMPLES,
  variants,
} from './valid-values.ts'

/** Longer enumerations are tried with their first and last value only. */
const MAX_TRIED_OPTIONS = 10

/** Valid values at each limit of the schema. */
export function limits(schema: Schema): NamedValue[] {
  return [...limitsOfType(schema), ...(schema.nullable ? [{ what: 'null', value: null }] : [])]
}

function limitsOfType(schema: Schema): NamedValue[] {
  const { minimum, maximum, minItems = 0, maxItems, maxProperties } = schema as Limits
  if (schema.enum) {
    const options =
      schema.enum.length > MAX_TRIED_OPTIONS ? [schema.enum[0], schema.enum.at(-1)] : schema.enum
    return options.map((value) => ({ what: String(value), value }))
  }
  if (schema.oneOf) return schema.oneOf.flatMap(limits)
  switch (schema.type) {
    case 'string':
      return textLimits(schema)
    case 'integer':
    case 'number': {
      const low = minimum === undefined ? [-1, 0] : [minimum, minimum + 1]
      const high = maximum === undefined ? [Number.MAX_SAFE_INTEGER] : [maximum - 1, maximum]
      const values = schema.type === 'integer' ? [...low, ...high] : [...low, 0.1, 1e21, ...high]
      return values.map((value) => ({ what: String(value), value }))
    }
    case 'boolean':
      return [true, false].map((value) => ({ what: String(value), value }))
    case 'array': {
      const items = schema.items ?? {}
      const full = variants(items, maxItems ?? minItems)
      const most = schema.uniqueItems && !isDistinct(full) ? [] : [full]
      const sizes = [variants(items, minItems), ...most].map((value) => ({
        what: `${value.length} entries`,
        value,
      }))
      return [
        ...sizes,
        ...limits(items).map(({ what, value }) => ({ what: `an entry: ${what}`, value: [value] })),
      ]
    }
    default: {
      const { properties = {}, additionalProperties } = schema
      const base = least(schema) as object
      const named = Object.entries(properties).flatMap(([name, property]) =>
        limits(property).map(({ what, value }) => ({
          what: `${name}: ${what}`,
          value: { ...base, [name]: value },
        })),
      )
      const whole = { ...mapValues(properties, least), ...base }
      const others = typeof additionalProperties === 'object' ? additionalProperties : undefined
      const more =
        others === undefined
          ? []
          : limits(others).map(({ what, value }) => ({
              what: `a field: ${what}`,
              value: { name: value },
            }))
      const full =
        others === undefined || maxProperties === undefined
          ? []
          : [{ what: `${maxProperties} fields`, value: toFields(others, maxProperties) }]
      return [
        { what: 'only what is required', value: base },
        { what: 'all fields', value: whole },
        ...named,
        ...more,
        ...full,
      ]
    }
  }
}

export function toFields(schema: Schema, count: number): object {
  return Object.fromEntries(
    variants(schema, count).map((value, index) => [`field_${index}`, value]),
  )
}

/** The first and last valid times, in UTC and with the largest offsets. */
const TIMES = [
  '1000-01-01T00:00:00Z',
  '2999-12-31T23:59:59.999999999Z',
  '2000-02-29T23:59:59.9+23:59',
  '1969-12-31T23:59:59-23:59',
  '1970-01-01T00:00:00Z',
]

function textLimits(schema: Schema): NamedValue[] {
  const { format, minLength = 0, maxLength } = schema as Limits
  if (format === 'date-time') return TIMES.map((value) => ({ what: value, value }))
  if (format === 'email')
    return [SAMPLES.email, toEmail(maxLength ?? 254)].map((value) => ({
      what: `${value?.length} characters`,
      value,
    }))
  if (format === 'uuid') return [{ what: 'in upper case', value: SAMPLES.uuid?.toUpperCase() }]
  const lengths = maxLength === undefined ? [minLength] : [minLength, maxLength]
  // An emoji has two UTF-16 units and four bytes, so it detects a wrong count.
  return lengths
    .flatMap((length) =>
      ['x', '😀'].map((fill) => ({
        what: `${length} characters ${fill}`,
        value: fill.repeat(length),
      })),
    )
    .filter(({ value }) => accepts(schema, value))
}

/** A valid email of `length` characters: at most 64 before the @ and 63 between two dots. */
export function toEmail(length: number): string {
  const domain = 'd.'.repeat(Math.ceil((length - 64 - 1 - 2) / 2))
  return `${'a'.repeat(length - 1 - domain.length - 2)}@${domain}de`
}
