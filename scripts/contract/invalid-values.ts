/** Values that break one rule of a schema each. */
import type { Schema } from '../model/schema.ts'
import {
  isWholePattern,
  least,
  type NamedValue,
  SAMPLES,
  variant,
  variants,
} from './valid-values.ts'
import { isDistinct, isValid, type Limits } from './validity.ts'
import { toEmail, toFields } from './value-limits.ts'

/** Turns a valid object into one that breaks one rule. */
export interface Fault {
  what: string
  applyTo(valid: Record<string, unknown>): unknown
}

/** Invalid values, each for one reason. */
export function faults(schema: Schema): NamedValue[] {
  const takesNull = schema.nullable || schema.enum?.includes(null)
  return [...faultsOfType(schema), ...(takesNull ? [] : [{ what: 'null', value: null }])]
}

const wrongTypes = (...values: unknown[]): NamedValue[] =>
  values.map((value) => ({ what: `is ${JSON.stringify(value)}`, value }))

function faultsOfType(schema: Schema): NamedValue[] {
  if (schema.oneOf)
    return [
      ...wrongTypes([], {}),
      ...schema.oneOf.flatMap((alternative) =>
        alternative.type === 'string' ? textFaults(alternative) : partFaults(alternative),
      ),
    ].filter(({ value }) => !isValid(schema, value))
  switch (schema.type) {
    case 'string':
      return [...wrongTypes(42, true, ['x'], {}), ...textFaults(schema)]
    case 'integer':
    case 'number': {
      const { minimum, maximum } = schema as Limits
      const outside = [
        ...(minimum === undefined ? [] : [minimum - 1, Math.min(-1, minimum - 1)]),
        ...(maximum === undefined ? [] : [maximum + 1, 1e30]),
      ]
      return wrongTypes('1', true, [1], {}, ...(schema.type === 'integer' ? [1.5] : []), ...outside)
    }
    case 'boolean':
      return wrongTypes('true', 1)
    case 'array':
      return arrayFaults(schema)
    default:
      return [...wrongTypes('x', 1, []), ...partFaults(schema)]
  }
}

/** Objects with one fault each. */
function partFaults(schema: Schema): NamedValue[] {
  const base = least(schema) as Record<string, unknown>
  return objectFaults(schema).map(({ what, applyTo }) => ({ what, value: applyTo(base) }))
}

/** Changes that make an object invalid. Each name begins with the field. */
export function objectFaults(schema: Schema): Fault[] {
  const { properties = {}, required = [], additionalProperties } = schema
  const { maxProperties } = schema as Limits
  const faultyProperties = Object.entries(properties).flatMap(([name, property]) =>
    faults(property).map(
      ({ what, value }): Fault => ({
        what: `${name}: ${what}`,
        applyTo: (valid) => ({ ...valid, [name]: value }),
      }),
    ),
  )
  const missing = required.map(
    (name): Fault => ({
      what: `${name}: is missing`,
      applyTo: ({ [name]: _, ...others }) => others,
    }),
  )
  const unknown: Fault[] =
    additionalProperties === false
      ? [{ what: 'an unknown field', applyTo: (valid) => ({ ...valid, not_a_field: 1 }) }]
      : []
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined
  const faultyOthers =
    others === undefined
      ? []
      : faults(others).map(
          ({ what, value }): Fault => ({ what, applyTo: (valid) => ({ ...valid, name: value }) }),
        )
  const tooMany: Fault[] =
    others === undefined || maxProperties === undefined
      ? []
      : [
          {
            what: `${maxProperties + 1} fields`,
            applyTo: () => toFields(others, maxProperties + 1),
          },
        ]
  return [...faultyProperties, ...missing, ...unknown, ...faultyOthers, ...tooMany]
}

const WRONG_FORMATS: Record<string, string[]> = {
  uuid: ['not-a-uuid', `${SAMPLES.uuid}0`],
  email: ['nobody', 'a@', '@example.com', 'a b@example.com'],
  'date-time': [
    'yesterday',
    '2026-03-02',
    '2026-03-02T09:30:00',
    '2026-02-30T00:00:00Z',
    '2026-03-02T25:00:00Z',
    '0999-12-31T23:59:59Z',
  ],
}

function textFaults(schema: Schema): NamedValue[] {
  const { format, pattern, minLength = 0, maxLength } = schema as Limits
  const named = (values: string[], what: string): NamedValue[] =>
    values.map((value) => ({ what, value }))
  if (schema.enum) return named(['none_of_these', ''], 'is not in its enumeration')
  if (format !== undefined) {
    const long = format === 'email' && maxLength !== undefined ? [toEmail(maxLength + 1)] : []
    return [
      ...named(WRONG_FORMATS[format] ?? [], `is no valid ${format}`),
      ...named(long, `${long[0]?.length} characters`),
    ]
  }
  const outside = [
    ...(minLength > 0 ? [minLength - 1] : []),
    ...(maxLength === undefined ? [] : [maxLength + 1]),
  ]
  const lengths = outside.map((length) => ({
    what: `${length} characters`,
    value: 'x'.repeat(length),
  }))
  const mismatches = ['', '!', ' ', '\u00fc', 'x\n', '\u00a0\t\n'].filter(
    (text) => pattern !== undefined && !new RegExp(pattern, 'u').test(text),
  )
  const unmatched = [...lengths, ...named(mismatches, 'does not match its pattern')]
  if (isWholePattern(pattern)) return unmatched
  return [
    ...unmatched,
    ...named(['a\0b'], 'with NUL'),
    ...named(['a\ud800'], 'with half of a surrogate pair'),
  ]
}

function arrayFaults(schema: Schema): NamedValue[] {
  const { minItems = 0, maxItems } = schema as Limits
  const items = schema.items ?? {}
  const one = variant(items, 0)
  const many = variants(items, (maxItems ?? 0) + 1)
  const sizes = [
    ...(minItems > 0 ? [variants(items, minItems - 1)] : []),
    ...(maxItems === undefined || (schema.uniqueItems && !isDistinct(many)) ? [] : [many]),
  ]
  return [
    ...wrongTypes('x', 1, {}),
    ...sizes.map((value) => ({ what: `${value.length} entries`, value })),
    ...(schema.uniqueItems ? [{ what: 'the same entry twice', value: [one, one] }] : []),
    ...faults(items).map(({ what, value }) => ({ what: `an entry: ${what}`, value: [value] })),
  ]
}
