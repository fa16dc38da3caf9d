/** Rules of the contract that OpenAPI 3.0 cannot express, or only in a form that generators refuse.
 *  In generated/openapi-3.1.json, keywords of JSON Schema 2020-12 express these rules. The service
 *  checks the same rules in operations/request-rules.ts and operations/storable.ts. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import {
  chooseSchema,
  mapSubschemas,
  mapValues,
  type Schema,
  TEXT_PATTERN,
} from '../model/schema.ts'
import { isObject } from '../model/source.ts'
import { filterName } from './resources.ts'

export type Schemas = Readonly<Record<string, Schema>>

/** Adds the rules to component schemas. The schemas are in JSON Schema 2020-12. */
export function withRules({ operations }: Contract, schemas: Schemas): Schemas {
  return mapValues(schemas, (schema) =>
    withNamePatterns(
      withFiltersOfResource(operations, schemas, withNullAlternative(schemas, schema)),
    ),
  )
}

/** If the schema is an enumeration with null, and a component has the same values without null, the
 *  schema becomes that component or null: generators then use the component's type. */
function withNullAlternative(schemas: Schemas, schema: Schema): Schema {
  if (!schema.enum?.includes(null)) return schema
  const options = schema.enum.filter((option) => option !== null)
  const hasOptions = (other: Schema): boolean =>
    JSON.stringify(other.enum) === JSON.stringify(options)
  const [name] = Object.entries(schemas).find(([, other]) => hasOptions(other)) ?? []
  if (name === undefined) return schema
  return {
    description: schema.description,
    oneOf: [{ $ref: `#/components/schemas/${name}` }, { type: 'null' }],
  }
}

/** In objects that declare no property but allow any name: makes the names match `TEXT_PATTERN`. */
function withNamePatterns(schema: Schema): Schema {
  const whole = mapSubschemas(schema, withNamePatterns)
  return isObject(whole.additionalProperties) && whole.properties === undefined
    ? { ...whole, propertyNames: { pattern: TEXT_PATTERN } }
    : whole
}

/** In a schema with the properties `resource` and `filters`: allows in `filters` only the filters
 *  of that resource's list. */
function withFiltersOfResource(operations: Operation[], schemas: Schemas, schema: Schema): Schema {
  const { resource, filters } = schema.properties ?? {}
  if (!resource || !filters || schema.additionalProperties !== false) return schema
  const options = schemas[resource.$ref?.split('/').at(-1) ?? '']?.enum ?? []
  // Some validators refuse properties that a subschema does not name.
  const anyValues = mapValues(schema.properties ?? {}, () => ({}))
  const cases = options.map((option): [Schema, Schema] => {
    const propertyNames = { enum: listFilters(operations, option) }
    return [
      { properties: { ...anyValues, resource: { const: option } } },
      { properties: { ...anyValues, filters: { propertyNames } } },
    ]
  })
  return { ...schema, ...chooseSchema(cases, {}) }
}

/** The names of the filters of the resource's list, for example `status` for `filter[status]`. */
function listFilters(operations: Operation[], resource: unknown): string[] {
  const path = `/${String(resource).replaceAll('_', '-')}`
  const list = operations.find((one) => one.method === 'get' && one.path.endsWith(path))
  const names = list?.parameters.map(({ name }) => filterName(name))
  return (names ?? []).filter((name) => name !== undefined)
}

/** Adds a rule to the parameter `sort`: no field may occur both with and without `-`. Returns other
 *  parameters unchanged. */
export function withDistinctFields(parameter: object, schemas: Schemas): object {
  const { name, schema } = parameter as { name?: string; schema?: Schema }
  const options = schemas[schema?.items?.$ref?.split('/').at(-1) ?? '']?.enum ?? []
  const fields = options.map(String).filter((option) => options.includes(`-${option}`))
  if (name !== 'sort' || fields.length === 0) return parameter
  const repeats = fields.map((field) => ({
    allOf: [{ contains: { const: field } }, { contains: { const: `-${field}` } }],
  }))
  const not = repeats.length === 1 ? repeats[0] : { anyOf: repeats }
  return { ...parameter, schema: { ...schema, not } }
}
