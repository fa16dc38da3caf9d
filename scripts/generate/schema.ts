/** What the two files call a schema, and the ways to walk and change one. */

/** A Schema Object of OpenAPI 3.0 or AsyncAPI 3.0 (JSON Schema draft 7), as far as we look into it. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  nullable?: boolean
  enum?: unknown[]
  const?: unknown
  default?: unknown
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  [keyword: string]: unknown
}

const SINGLE = [
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
]
const LISTS = ['allOf', 'anyOf', 'oneOf']
const MAPS = ['properties', 'patternProperties']

/** A copy of the schema in which each direct subschema is what `change` makes of it. */
export function mapSubschemas(
  schema: Schema,
  change: (subschema: Schema, steps: (string | number)[]) => Schema,
): Schema {
  const copy: Schema = { ...schema }
  for (const keyword of SINGLE) {
    const value = copy[keyword]
    if (typeof value === 'object') copy[keyword] = change(value as Schema, [keyword])
  }
  for (const keyword of LISTS) {
    const value = copy[keyword] as Schema[] | undefined
    if (value) copy[keyword] = value.map((subschema, index) => change(subschema, [keyword, index]))
  }
  for (const keyword of MAPS) {
    const value = copy[keyword] as Record<string, Schema> | undefined
    if (value)
      copy[keyword] = mapValues(value, (subschema, name) => change(subschema, [keyword, name]))
  }
  return copy
}

/** `nullable` of OpenAPI 3.0 in the words of JSON Schema. What means nothing there is left out. */
export function toJsonSchema(schema: Schema): Schema {
  const {
    nullable,
    example,
    xml: _xml,
    externalDocs: _docs,
    discriminator: _discriminator,
    ...rest
  } = mapSubschemas(schema, toJsonSchema)
  if (example !== undefined) rest.examples = [example]
  return nullable && typeof rest.type === 'string' ? { ...rest, type: [rest.type, 'null'] } : rest
}

export function mapValues<T, U>(
  record: Record<string, T>,
  change: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}
