/** Compiles schemas of the contract to functions of one JavaScript module, with Ajv. */
import type { CodeOptions, ValidateFunction } from 'ajv'
import standalone from 'ajv/dist/standalone/index.js'
import { findTag, listOptions } from '../model/alternatives.ts'
import { dereference, locate } from '../model/references.ts'
import { chooseSchema, mapSubschemas, readDefault, type Schema } from '../model/schema.ts'
import { fail, type Located, type Place, type Sources } from '../model/source.ts'
import { newAjv, withoutAnnotations } from './ajv.ts'
import { failAtCulprit } from './culprit.ts'

/** `closed` refuses additional properties unless the schema allows them. It is for bodies that the
 *  service sends. */
export type Openness = 'open' | 'closed'

export interface Compiler {
  /** The schema for Ajv, with its references replaced by IDs of this compiler. */
  prepare(placed: Located<Schema>, openness: Openness): Schema
  /** Like `prepare`, for a property of an object. Ajv applies defaults of properties only, and it
   *  ignores the default behind a reference. So this function copies it to the property. */
  prepareProperty(placed: Located<Schema>, openness: Openness): Schema
  /** Compiles a prepared schema and returns the name of its function. Equal schemas share one
   *  function. Throws `ContractError` at `place` if Ajv refuses the schema. */
  add(name: string, schema: Schema, place: Place): string
  /** Compiles a prepared schema to a function for immediate use. */
  compile(schema: Schema, place: Place): ValidateFunction
  /** The source text of all functions: a module without exports. */
  code(): string
}

export function newCompiler(sources: Sources, codeOptions: CodeOptions): Compiler {
  const ajv = newAjv(codeOptions)
  const components = new Set<string>()
  /** Function name by schema, as JSON. */
  const names = new Map<string, string>()
  /** Schema ID by function name. */
  const functions: Record<string, string> = {}

  function prepare({ source, path, value }: Located<Schema>, openness: Openness): Schema {
    if (value.$ref)
      return {
        $ref: addComponent(locate(sources, source, value.$ref) as Located<Schema>, openness),
      }
    assertNullable({ source, path, value })
    if (openness === 'closed') assertClosable(sources, { source, path, value })
    const schema = mapSubschemas(withoutAnnotations(value), (subschema, steps) =>
      (steps[0] === 'properties' ? prepareProperty : prepare)(
        { source, path: [...path, ...steps], value: subschema },
        openness,
      ),
    )
    const chosen = boundItems(chooseByTag(sources, { source, path, value }, schema))
    return openness === 'closed' ? close(chosen) : chosen
  }

  function prepareProperty(placed: Located<Schema>, openness: Openness): Schema {
    const schema = prepare(placed, openness)
    // In a response, a default would hide that the field is missing.
    if (openness === 'closed') return schema
    const value = readDefault(dereference(sources, placed).value)
    return value === undefined ? schema : { ...schema, default: value }
  }

  /** Registers the component with Ajv and returns its ID. */
  function addComponent(target: Located<Schema>, openness: Openness): string {
    const { source, path } = target
    const id = `/${openness}/${source.file}/${path.map((step) => encodeURIComponent(step)).join('/')}`
    if (!components.has(id)) {
      components.add(id) // before `prepare`: the component may contain itself
      register(id, prepare(target, openness), target)
    }
    return id
  }

  function register(id: string, schema: Schema, { source, path }: Place): void {
    try {
      ajv.addSchema(schema, id)
    } catch (error) {
      failAtCulprit(sources, { source, path }, error as Error)
    }
  }

  function add(name: string, schema: Schema, place: Place): string {
    const key = JSON.stringify(schema)
    const existing = names.get(key)
    if (existing) return existing
    const id = schema.$ref ?? `/${name}`
    if (!schema.$ref) register(id, schema, place)
    compileAt(sources, place, () => ajv.getSchema(id))
    // /open/openapi.yaml/components/schemas/Task → open_openapi_schemas_Task
    const base = id.slice(1).replace('.yaml/components', '').replace(/\W/g, '_')
    let functionName = base
    for (let count = 2; functionName in functions; count++) functionName = `${base}_${count}`
    names.set(key, functionName)
    functions[functionName] = id
    return functionName
  }

  function compile(schema: Schema, place: Place): ValidateFunction {
    return compileAt(
      sources,
      place,
      () => (schema.$ref && ajv.getSchema(schema.$ref)) || ajv.compile(schema),
    )
  }

  /** Defines `require`, because Ajv uses it even in an ES module. */
  function code(): string {
    const module = standalone.default(ajv, functions)
    const body = module.replace(/^"use strict";\n/, '').replaceAll(/^export const/gm, 'const')
    return `import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
${body}`
  }

  return { prepare, prepareProperty, add, compile, code }
}

function compileAt<T>(sources: Sources, place: Place, compile: () => T): T {
  try {
    return compile()
  } catch (error) {
    return failAtCulprit(sources, place, error as Error)
  }
}

function close(schema: Schema): Schema {
  return isObjectSchema(schema) ? { additionalProperties: false, ...schema } : schema
}

/** Validates the entries of a list only if there are not too many: Ajv takes quadratic time for the
 *  errors of many entries. */
function boundItems({ items, uniqueItems, ...others }: Schema): Schema {
  const entries = { ...(items && { items }), ...(uniqueItems !== undefined && { uniqueItems }) }
  const { maxItems } = others
  const hasBound = items !== undefined && maxItems !== undefined
  return !hasBound || others.if !== undefined
    ? { ...others, ...entries }
    : {
        ...others,
        if: { maxItems },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: entries,
      }
}

/** If a property tells the alternatives of `oneOf` apart, replaces `oneOf` by a choice. Errors are
 *  then about the chosen alternative only. The second parameter is the schema of the contract,
 *  which shows the property and its values. The third is the prepared schema. */
function chooseByTag(
  sources: Sources,
  { source, path, value }: Located<Schema>,
  { oneOf = [], ...others }: Schema,
): Schema {
  const resolve = (schema: Schema): Schema =>
    dereference(sources, { source, path, value: schema }).value
  const alternatives = (value.oneOf ?? []).map(resolve)
  const tag = findTag(alternatives, resolve)
  if (tag === undefined) return value.oneOf ? { ...others, oneOf } : others
  const options = alternatives.map((alternative) => listOptions(alternative, tag, resolve))
  const cases = oneOf.map((alternative, index): [Schema, Schema] => [
    tagSchema(tag, options[index] ?? []),
    alternative,
  ])
  return { ...others, ...chooseSchema(cases, tagSchema(tag, options.flat())) }
}

/** Matches objects whose `tag` is one of the options. If there are no options, it matches objects
 *  without `tag`. */
function tagSchema(tag: string, options: readonly unknown[]): Schema {
  return options.length === 0
    ? { type: 'object', not: { required: [tag] } }
    : { type: 'object', properties: { [tag]: { enum: options } }, required: [tag] }
}

function isObjectSchema({ type, properties }: Schema): boolean {
  return type === 'object' || properties !== undefined
}

function assertNullable({
  source,
  path,
  value: { nullable, type, enum: options },
}: Located<Schema>): void {
  if (!nullable) return
  if (type === undefined) fail(source, path, 'is nullable without a type: add a type')
  if (options && !options.includes(null))
    fail(source, path, 'is nullable, but its enum does not list null: add it')
}

/** Throws for a composition of objects: each closed part would refuse properties of the others. */
function assertClosable(sources: Sources, { source, path, value }: Located<Schema>): void {
  const isObject = (schema: Schema) =>
    isObjectSchema(dereference(sources, { source, path, value: schema }).value as Schema)
  if (value.allOf?.some(isObject))
    fail(
      source,
      path,
      'combines objects by allOf, which cannot be closed: list all properties in one object',
    )
  const alternatives = [...(value.oneOf ?? []), ...(value.anyOf ?? [])]
  if (value.properties && alternatives.some(isObject))
    fail(
      source,
      path,
      'has properties beside alternatives that are objects: list the properties in each alternative',
    )
}
