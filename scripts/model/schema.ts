/** Schemas of the contract, and functions that transform them. */

/** Keywords that do not change which values are valid. */
export const ANNOTATIONS: readonly string[] = [
  'title',
  'description',
  'example',
  'examples',
  'externalDocs',
  'deprecated',
  'xml',
]

/** A Schema Object of OpenAPI 3.0.3 or AsyncAPI 3.0 (JSON Schema draft 7), with the keywords that
 *  we read. */
export interface Schema {
  $ref?: string
  type?: string
  format?: string
  description?: string
  nullable?: boolean
  enum?: readonly unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  additionalProperties?: boolean | Schema
  allOf?: readonly Schema[]
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  uniqueItems?: boolean
  deprecated?: boolean
  /** The default of an array or object. Some generators refuse `default` there. */
  'x-default'?: unknown
  /** For an amount in minor units: the property beside it that names its currency. */
  'x-currency'?: string
  /** Only in generated/resources.ts: the property beside this one whose value selects the schema of
   *  this one. */
  'x-depends-on'?: string
  /** Only beside `x-depends-on`: the schema of this property for each value of the other one. */
  'x-by-option'?: Readonly<Record<string, Schema>>
  /** A sentence for each value of `enum`. */
  'x-enum-descriptions'?: readonly string[]
  [keyword: string]: unknown
}

/** Text without the NUL character. This pattern and those below need no lookahead, because some
 *  languages do not support it. They match each text in one way only: trying several ways can take
 *  quadratic time. */
export const TEXT_PATTERN = '^[^\\x00]*$'
/** Like `TEXT_PATTERN`, but these refuse text that is all white space. Only the first one refuses
 *  empty text. */
const NOT_BLANK_PATTERNS: readonly string[] = [
  '^\\s*[^\\s\\x00][^\\x00]*$',
  '^(\\s*[^\\s\\x00][^\\x00]*)?$',
]

export function isNotBlankPattern(pattern: string | undefined): boolean {
  return NOT_BLANK_PATTERNS.includes(pattern ?? '')
}

const SCHEMA_KEYWORDS = [
  ...['items', 'additionalProperties', 'not', 'contains', 'propertyNames'],
  ...['if', 'then', 'else'],
]
const LIST_KEYWORDS = ['allOf', 'anyOf', 'oneOf']
const MAP_KEYWORDS = ['properties', 'patternProperties']

/** A copy of the schema with `change` applied to each direct subschema. `steps` lead to the
 *  subschema. */
export function mapSubschemas(
  schema: Schema,
  change: (subschema: Schema, steps: (string | number)[]) => Schema,
): Schema {
  const copy: Schema = { ...schema }
  for (const keyword of SCHEMA_KEYWORDS) {
    const value = copy[keyword]
    if (typeof value === 'object') copy[keyword] = change(value as Schema, [keyword])
  }
  for (const keyword of LIST_KEYWORDS) {
    const value = copy[keyword] as Schema[] | undefined
    if (Array.isArray(value))
      copy[keyword] = value.map((subschema, index) => change(subschema, [keyword, index]))
  }
  for (const keyword of MAP_KEYWORDS) {
    const value = copy[keyword] as Record<string, Schema> | undefined
    if (value)
      copy[keyword] = mapValues(value, (subschema, name) => change(subschema, [keyword, name]))
  }
  return copy
}

/** The direct subschemas, with the steps that lead to each. */
export function listSubschemas(
  schema: Schema,
): { subschema: Schema; steps: (string | number)[] }[] {
  const found: ReturnType<typeof listSubschemas> = []
  mapSubschemas(schema, (subschema, steps) => {
    found.push({ subschema, steps })
    return subschema
  })
  return found
}

/** One schema with the properties and required names of both. Other keywords of `b` replace those
 *  of `a`. */
export function mergeSchemas(a: Schema, b: Schema): Schema {
  return {
    ...a,
    ...b,
    ...((a.properties || b.properties) && { properties: { ...a.properties, ...b.properties } }),
    ...((a.required || b.required) && { required: [...(a.required ?? []), ...(b.required ?? [])] }),
  }
}

/** A schema of `if`, `then` and `else`: a value must meet the schema of the first case whose
 *  condition it meets. A value that meets no condition must meet `otherwise`. */
export function chooseSchema(
  cases: readonly [condition: Schema, schema: Schema][],
  otherwise: Schema,
): Schema {
  const [first, ...others] = cases
  if (first === undefined) return otherwise
  const [condition, schema] = first
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { if: condition, then: schema, else: chooseSchema(others, otherwise) }
}

/** The value that the service assumes for an absent field or parameter. */
export function readDefault(schema: Schema): unknown {
  return schema.default === undefined ? schema['x-default'] : schema.default
}

/** Converts OpenAPI's `nullable` and `example`, and drops the keywords that JSON Schema does not
 *  have. */
export function toJsonSchema(schema: Schema): Schema {
  const {
    nullable,
    example,
    xml: _xml,
    externalDocs: _docs,
    discriminator: _discriminator,
    ...converted
  } = mapSubschemas(schema, toJsonSchema)
  if (example !== undefined) converted.examples = [example]
  const nullableType: object = { type: [converted.type, 'null'] }
  return nullable && converted.type !== undefined ? { ...converted, ...nullableType } : converted
}

export function mapValues<T, U>(
  record: Readonly<Record<string, T>>,
  change: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}
