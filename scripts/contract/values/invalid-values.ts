/** Values that each break one rule of a schema. */
import type { Schema } from '../../model/schema.ts'
import { type NamedValue, toEmail, toFields } from './limit-values.ts'
import { minimalValue, restrictsWholeText, SAMPLES, variant, variants } from './valid-values.ts'
import { isDistinct, isValid } from './validity.ts'

/** Turns a valid object into one that breaks one rule. */
export interface Mutation {
  what: string
  /** The field that errors must name, for example `entries.0.key`. Undefined: any field. */
  field?: string
  applyTo(valid: Record<string, unknown>): unknown
}

export function invalidValues(schema: Schema): NamedValue[] {
  const takesNull = schema.nullable || schema.enum?.includes(null)
  return [...invalidValuesOfType(schema), ...(takesNull ? [] : [{ what: 'null', value: null }])]
}

const namedByJson = (...values: unknown[]): NamedValue[] =>
  values.map((value) => ({ what: `is ${JSON.stringify(value)}`, value }))

function invalidValuesOfType(schema: Schema): NamedValue[] {
  if (schema.oneOf)
    return (
      [
        ...namedByJson([], {}),
        ...schema.oneOf.flatMap((alternative) =>
          alternative.type === 'string' ? invalidTexts(alternative) : invalidObjects(alternative),
        ),
      ]
        .filter(({ value }) => !isValid(schema, value))
        // Another alternative can have its fault at another place.
        .map(({ what, value }) => ({ what, value }))
    )
  switch (schema.type) {
    case 'string':
      return [...namedByJson(42, true, ['x'], {}), ...invalidTexts(schema)]
    case 'integer':
    case 'number': {
      const { minimum, maximum } = schema
      const outside = [
        ...(minimum === undefined ? [] : [minimum - 1, Math.min(-1, minimum - 1)]),
        ...(maximum === undefined ? [] : [maximum + 1, 1e30]),
      ]
      const fractions = schema.type === 'integer' ? [1.5] : []
      return namedByJson('1', true, [1], {}, ...fractions, ...outside)
    }
    case 'boolean':
      return namedByJson('true', 1)
    case 'array':
      return invalidArrays(schema)
    default:
      return [...namedByJson('x', 1, []), ...invalidObjects(schema)]
  }
}

function invalidObjects(schema: Schema): NamedValue[] {
  const base = minimalValue(schema) as Record<string, unknown>
  return objectMutations(schema).map(({ what, field, applyTo }) => ({
    what,
    value: applyTo(base),
    at: field,
  }))
}

export function objectMutations(schema: Schema): Mutation[] {
  const { properties = {}, required = [], additionalProperties } = schema
  const wrong = Object.entries(properties).flatMap(([name, property]) =>
    invalidValues(property).map((invalid) => setField(name, invalid)),
  )
  const missing = required.map(
    (name): Mutation => ({
      what: `${name}: is missing`,
      field: name,
      applyTo: ({ [name]: _, ...others }) => others,
    }),
  )
  if (additionalProperties === false)
    return [...wrong, ...missing, setField('not_a_field', { what: 'is unknown', value: 1 })]
  // Without a schema, an entry can have any value.
  const entries = typeof additionalProperties === 'object' ? additionalProperties : undefined
  const wrongEntries = entries
    ? invalidValues(entries).map((invalid) => setField('name', invalid))
    : []
  const { maxProperties } = schema
  if (maxProperties === undefined) return [...wrong, ...missing, ...wrongEntries]
  const count = maxProperties + 1
  const tooMany = { what: `${count} fields`, applyTo: () => toFields(entries ?? {}, count) }
  return [...wrong, ...missing, ...wrongEntries, tooMany]
}

function setField(name: string, { what, value, at }: NamedValue): Mutation {
  return {
    what: `${name}: ${what}`,
    field: at === undefined ? name : `${name}.${at}`,
    applyTo: (valid) => ({ ...valid, [name]: value }),
  }
}

/** Valid texts of at least `length` characters, by format. */
const LONG_TEXTS: Record<string, (length: number) => string[]> = {
  email: (length) => [toEmail(length)],
  'date-time': (length) => [`2026-03-02T09:30:00.${'0'.repeat(length)}Z`],
}

export const WRONG_FORMATS: Record<string, string[]> = {
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

function invalidTexts(schema: Schema): NamedValue[] {
  const { format, pattern, minLength = 0, maxLength } = schema
  const named = (values: string[], what: string): NamedValue[] =>
    values.map((value) => ({ what, value }))
  if (schema.enum) return named(['none_of_these', ''], 'is not in its enumeration')
  if (format !== undefined) {
    const long = maxLength === undefined ? [] : (LONG_TEXTS[format]?.(maxLength + 1) ?? [])
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
  const mismatches = ['', '!', ' ', '\u00fc', 'x x', 'x\n', '\u00a0\t\n'].filter(
    (text) => pattern !== undefined && !new RegExp(pattern, 'u').test(text),
  )
  const unmatched = [...lengths, ...named(mismatches, 'does not match its pattern')]
  if (restrictsWholeText(pattern)) return unmatched
  return [
    ...unmatched,
    ...named(['a\0b'], 'with NUL'),
    ...named(['a\ud800'], 'with half of a surrogate pair'),
  ]
}

function invalidArrays(schema: Schema): NamedValue[] {
  const { minItems = 0, maxItems } = schema
  const items = schema.items ?? {}
  const entry = variant(items, 0)
  const many = variants(items, (maxItems ?? 0) + 1)
  // Equal entries would also break `uniqueItems`.
  const isOnlyTooLong = !schema.uniqueItems || isDistinct(many)
  const sizes = [
    ...(minItems > 0 ? [variants(items, minItems - 1)] : []),
    ...(maxItems !== undefined && isOnlyTooLong ? [many] : []),
  ]
  return [
    ...namedByJson('x', 1, {}),
    ...sizes.map((value) => ({ what: `${value.length} entries`, value })),
    ...(schema.uniqueItems ? [{ what: 'the same entry twice', value: [entry, entry] }] : []),
    ...invalidValues(items).map(({ what, value, at }) => ({
      what: `an entry: ${what}`,
      value: [value],
      at: at === undefined ? '0' : `0.${at}`,
    })),
  ]
}
