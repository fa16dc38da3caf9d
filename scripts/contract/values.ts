/** From a schema of the contract: data that it takes, at random and at its limits, and data that breaks one of its rules. */
import fc from 'fast-check'
import { mapValues, type Schema } from '../model/schema.ts'

/** A value, and what is special about it, such as `full_name: 200 characters`. */
export interface Sample {
  what: string
  value: unknown
}

/** Turns a valid object into one that breaks one rule. */
export interface Fault {
  what: string
  applyTo(valid: Record<string, unknown>): unknown
}

/** Values that the schema takes; they shrink to short ones. Throws for a schema of no type that we know. */
export function validValues(schema: Schema): fc.Arbitrary<unknown> {
  const values = valuesOfType(schema)
  return schema.nullable ? fc.option(values, { nil: null, freq: 4 }) : values
}

function valuesOfType(schema: Schema): fc.Arbitrary<unknown> {
  const { minimum, maximum, minItems = 0, maxItems } = schema as Limits
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
      const size = { minLength: minItems, maxLength: maxItems }
      return schema.uniqueItems
        ? fc.uniqueArray(items, { ...size, selector: (item) => JSON.stringify(item) })
        : fc.array(items, size)
    }
    case 'object':
      return objects(schema)
    default:
      throw new Error(`There is no way yet to make values for ${JSON.stringify(schema)}`)
  }
}

interface Limits {
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  minItems?: number
  maxItems?: number
  maxProperties?: number
}

/** What the contract says of all text, in words: no NUL, no half of a surrogate pair. */
const withoutNul = (text: string): string => text.replaceAll('\0', ' ')

const FORMATS: Record<string, fc.Arbitrary<string>> = {
  uuid: fc.uuid(),
  email: fc.emailAddress(),
  'date-time': fc
    .tuple(
      fc.date({ min: new Date('1000-01-02'), max: new Date('2999-12-30'), noInvalidDate: true }),
      fc.constantFrom('Z', '+00:00', '-11:30', '+14:00'),
    )
    .map(([time, offset]) => time.toISOString().replace('Z', offset)),
}

function texts(schema: Schema): fc.Arbitrary<string> {
  const { format, pattern, minLength = 0, maxLength } = schema as Limits
  const takes = (text: string): boolean => accepts(schema, text)
  if (format !== undefined) return (FORMATS[format] ?? unknownFormat(format)).filter(takes)
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern, 'u')).filter(takes)
  const size = { minLength, maxLength }
  return fc.oneof(
    fc.string({ unit: 'grapheme-ascii', ...size }),
    fc.string({ unit: 'binary', ...size }).map(withoutNul),
  )
}

function unknownFormat(format: string): never {
  throw new Error(`There is no way yet to make values of the format ${format}`)
}

/** By length, in code points as JSON Schema counts, and pattern. */
function accepts(schema: Schema, text: string): boolean {
  const { pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema as Limits
  const length = [...text].length
  return (
    length >= minLength &&
    length <= maxLength &&
    (pattern === undefined || new RegExp(pattern, 'u').test(text))
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
  const names = fc.string({ unit: 'binary', maxLength: 20 }).map(withoutNul)
  const others = fc.dictionary(names, validValues(additionalProperties), {
    maxKeys: maxProperties as number | undefined,
  })
  return fc.tuple(others, named).map(([more, known]) => ({ ...more, ...known }))
}

const SAMPLES: Record<string, string> = {
  uuid: '0193d7a0-0000-7000-8000-000000000000',
  email: 'a@example.com',
  'date-time': '2026-03-02T09:30:00Z',
}

/** The least that the schema takes: of an object, what is required. */
export function least(schema: Schema): unknown {
  return variant(schema, 0)
}

/** One of many values that differ from each other, as far as the schema lets them. */
function variant(schema: Schema, index: number): unknown {
  const { minimum = 0, minLength = 0, minItems = 0, format } = schema as Limits
  if (schema.enum) return schema.enum[index % schema.enum.length]
  if (schema.oneOf?.[0]) return variant(schema.oneOf[0], index)
  switch (schema.type) {
    case 'string':
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

function variants(schema: Schema, count: number): unknown[] {
  return Array.from({ length: count }, (_, index) => variant(schema, index))
}

function isDistinct(values: unknown[]): boolean {
  return new Set(values.map((value) => JSON.stringify(value))).size === values.length
}

/** More options than these are taken to be alike. */
const MANY_OPTIONS = 10

/** Valid values at each limit that the schema sets. */
export function limits(schema: Schema): Sample[] {
  return [...limitsOfType(schema), ...(schema.nullable ? [{ what: 'null', value: null }] : [])]
}

function limitsOfType(schema: Schema): Sample[] {
  const { minimum, maximum, minItems = 0, maxItems, maxProperties } = schema as Limits
  if (schema.enum) {
    const options =
      schema.enum.length > MANY_OPTIONS ? [schema.enum[0], schema.enum.at(-1)] : schema.enum
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
      const full = variants(items, maxItems ?? 0)
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
          : [{ what: `${maxProperties} fields`, value: fieldsOf(others, maxProperties) }]
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

function fieldsOf(schema: Schema, count: number): object {
  return Object.fromEntries(
    variants(schema, count).map((value, index) => [`field_${index}`, value]),
  )
}

/** At the ends of what the pattern of our times takes, in UTC and with the widest offsets. */
const TIMES = [
  '1000-01-01T00:00:00Z',
  '2999-12-31T23:59:59.999999999Z',
  '2000-02-29T23:59:59.9+23:59',
  '1969-12-31T23:59:59-23:59',
  '1970-01-01T00:00:00Z',
]

function textLimits(schema: Schema): Sample[] {
  const { format, pattern, minLength = 0, maxLength } = schema as Limits
  if (format === 'date-time') return TIMES.map((value) => ({ what: value, value }))
  if (format === 'email')
    return [SAMPLES.email, addressOf(maxLength ?? 254)].map((value) => ({
      what: `${value?.length} characters`,
      value,
    }))
  if (format === 'uuid') return [{ what: 'in upper case', value: SAMPLES.uuid?.toUpperCase() }]
  const lengths = maxLength === undefined ? [minLength] : [minLength, maxLength]
  // Two UTF-16 units each, and four bytes: whoever counts those takes too few.
  const fills = pattern === undefined ? ['x', '😀'] : ['x']
  return lengths
    .flatMap((length) =>
      fills.map((fill) => ({ what: `${length} characters ${fill}`, value: fill.repeat(length) })),
    )
    .filter(({ value }) => accepts(schema, value))
}

/** A valid address of so many characters: up to 64 before the @ and 63 between two dots. */
function addressOf(length: number): string {
  const domain = 'd.'.repeat(Math.ceil((length - 64 - 1 - 2) / 2))
  return `${'a'.repeat(length - 1 - domain.length - 2)}@${domain}de`
}

/** Values that the schema does not take, each for one reason. */
export function faults(schema: Schema): Sample[] {
  const takesNull = schema.nullable || schema.enum?.includes(null)
  return [...faultsOfType(schema), ...(takesNull ? [] : [{ what: 'null', value: null }])]
}

const wrongTypes = (...values: unknown[]): Sample[] =>
  values.map((value) => ({ what: `is ${JSON.stringify(value)}`, value }))

function faultsOfType(schema: Schema): Sample[] {
  if (schema.oneOf)
    return [
      ...wrongTypes([], {}),
      ...schema.oneOf.flatMap((branch) => (branch.type === 'string' ? textFaults(branch) : [])),
    ]
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
    default: {
      const base = least(schema) as Record<string, unknown>
      return [
        ...wrongTypes('x', 1, []),
        ...objectFaults(schema).map(({ what, applyTo }) => ({ what, value: applyTo(base) })),
      ]
    }
  }
}

/** Ways to break an object of the schema: each names the field. */
export function objectFaults(schema: Schema): Fault[] {
  const { properties = {}, required = [], additionalProperties } = schema
  const { maxProperties } = schema as Limits
  const inside = Object.entries(properties).flatMap(([name, property]) =>
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
      ? [{ what: 'a field that there is not', applyTo: (valid) => ({ ...valid, not_a_field: 1 }) }]
      : []
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined
  const more =
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
            applyTo: () => fieldsOf(others, maxProperties + 1),
          },
        ]
  return [...inside, ...missing, ...unknown, ...more, ...tooMany]
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

function textFaults(schema: Schema): Sample[] {
  const { format, pattern, minLength = 0, maxLength } = schema as Limits
  const named = (values: string[], what: string): Sample[] =>
    values.map((value) => ({ what, value }))
  if (schema.enum) return named(['none_of_these', ''], 'none of its options')
  if (format !== undefined) {
    const long = format === 'email' && maxLength !== undefined ? [addressOf(maxLength + 1)] : []
    return [
      ...named(WRONG_FORMATS[format] ?? [], `not in the form of ${format}`),
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
  if (pattern !== undefined) {
    const others = ['', '!', ' ', '\u00fc', 'x\n'].filter(
      (text) => !new RegExp(pattern, 'u').test(text),
    )
    return [...lengths, ...named(others, 'not of its pattern')]
  }
  return [
    ...lengths,
    ...named(['a\0b'], 'with NUL'),
    ...named(['a\ud800'], 'with half of a surrogate pair'),
  ]
}

function arrayFaults(schema: Schema): Sample[] {
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
