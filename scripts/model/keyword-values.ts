/** Keywords of a schema whose values have the wrong type or contradict each other. Ajv or the
 *  generators would refuse such a schema, or no value would be valid. */
import type { Schema } from './schema.ts'
import { isObject } from './source.ts'

/** The steps that lead to the wrong value, and a sentence that ends with how to correct it. */
export interface KeywordFault {
  steps: (string | number)[]
  problem: string
}

interface Kind {
  /** For example `a number`. */
  name: string
  isValid(value: unknown): boolean
}

const isMap = (value: unknown): boolean => isObject(value) && !Array.isArray(value)
const NUMBER: Kind = { name: 'a number', isValid: (value) => typeof value === 'number' }
const COUNT: Kind = {
  name: 'a whole number, 0 or more',
  isValid: (value) => Number.isInteger(value) && Number(value) >= 0,
}
const BOOLEAN: Kind = { name: 'true or false', isValid: (value) => typeof value === 'boolean' }
const TEXT: Kind = { name: 'text', isValid: (value) => typeof value === 'string' }
const SCHEMA: Kind = {
  name: 'a schema',
  isValid: (value) => isMap(value) || typeof value === 'boolean',
}

const KINDS: Readonly<Record<string, Kind>> = {
  minimum: NUMBER,
  maximum: NUMBER,
  multipleOf: {
    name: 'a number above 0',
    isValid: (value) => typeof value === 'number' && value > 0,
  },
  minLength: COUNT,
  maxLength: COUNT,
  minItems: COUNT,
  maxItems: COUNT,
  minProperties: COUNT,
  maxProperties: COUNT,
  uniqueItems: BOOLEAN,
  nullable: BOOLEAN,
  readOnly: BOOLEAN,
  writeOnly: BOOLEAN,
  format: TEXT,
  title: TEXT,
  description: TEXT,
  enum: {
    name: 'a list of one or more values',
    isValid: (value) => Array.isArray(value) && value.length > 0,
  },
  required: {
    name: 'a list of names',
    // Some public documents have `required: true` of JSON Schema draft 3, without a meaning here.
    isValid: (value) =>
      typeof value === 'boolean' || (Array.isArray(value) && value.every(TEXT.isValid)),
  },
  items: SCHEMA,
  prefixItems: { name: 'a list of schemas', isValid: Array.isArray },
  additionalProperties: SCHEMA,
  not: SCHEMA,
}

/** In OpenAPI 3.0, `exclusiveMinimum: true` excludes `minimum`. In 3.1, its value is the bound. */
const KINDS_30 = new Map(
  Object.entries({ ...KINDS, exclusiveMinimum: BOOLEAN, exclusiveMaximum: BOOLEAN }),
)
const KINDS_31 = new Map(
  Object.entries({ ...KINDS, exclusiveMinimum: NUMBER, exclusiveMaximum: NUMBER }),
)

export function findWrongTypes(schema: Schema, is31: boolean): KeywordFault[] {
  const kinds = is31 ? KINDS_31 : KINDS_30
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const kind = kinds.get(keyword)
    if (kind === undefined || value === undefined || kind.isValid(value)) return []
    const problem = `${keyword} must be ${kind.name}, not ${describe(value)}: correct it`
    return [{ steps: [keyword], problem }]
  })
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'a mapping' : JSON.stringify(value)
}

const BOUNDS: readonly (readonly [lower: string, upper: string])[] = [
  ['minimum', 'maximum'],
  ['minimum', 'exclusiveMaximum'],
  ['exclusiveMinimum', 'maximum'],
  ['exclusiveMinimum', 'exclusiveMaximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['minProperties', 'maxProperties'],
]

export function findCrossedBounds(schema: Schema): KeywordFault[] {
  return BOUNDS.flatMap(([lower, upper]) => {
    const [low, high] = [schema[lower], schema[upper]]
    if (typeof low !== 'number' || typeof high !== 'number' || low <= high) return []
    const problem = `${lower} ${low} is above ${upper} ${high}: correct one of them`
    return [{ steps: [lower], problem }]
  })
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: TEXT.isValid,
  number: NUMBER.isValid,
  integer: Number.isInteger,
  boolean: BOOLEAN.isValid,
  array: Array.isArray,
  object: isMap,
  null: (value) => value === null,
}

/** Values of `enum` that the `type` of the same schema refuses. */
export function findMistypedOptions({ type, nullable, enum: options }: Schema): KeywordFault[] {
  if (type === undefined || !Array.isArray(options)) return []
  const types = [type].flat()
  const isOfType = (value: unknown): boolean =>
    (nullable === true && value === null) || types.some((name) => TYPES[name]?.(value) ?? true)
  return options.flatMap((value, index) => {
    if (isOfType(value)) return []
    const problem = `the value ${JSON.stringify(value)} of enum is not of type ${types.join(' or ')}: correct the value or the type`
    return [{ steps: ['enum', index], problem }]
  })
}
