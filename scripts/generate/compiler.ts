/** Compiles schemas of the contract to functions of one JavaScript module, with Ajv. */
import type { Ajv, CodeOptions, ValidateFunction } from 'ajv'
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

export class Compiler {
  readonly #sources: Sources
  readonly #ajv: Ajv
  /** The ID of its schema by the place and openness of each component. */
  readonly #components = new Map<string, string>()
  /** Schema ID by schema, as JSON. */
  readonly #ids = new Map<string, string>()
  /** Schema ID by function name. */
  readonly #functions: Record<string, string> = {}

  constructor(sources: Sources, codeOptions: CodeOptions) {
    this.#sources = sources
    this.#ajv = newAjv(codeOptions)
  }

  /** The schema for Ajv, with its references replaced by IDs of this compiler. */
  prepare({ source, path, value }: Located<Schema>, openness: Openness): Schema {
    const sources = this.#sources
    if (value.$ref) {
      const target = locate(sources, source, value.$ref) as Located<Schema>
      return { $ref: this.#addComponent(target, openness) }
    }
    assertNullable({ source, path, value })
    if (openness === 'closed') assertClosable(sources, { source, path, value })
    const schema = mapSubschemas(withoutAnnotations(value), (subschema, steps) => {
      const placed = { source, path: [...path, ...steps], value: subschema }
      return steps[0] === 'properties'
        ? this.prepareProperty(placed, openness)
        : this.prepare(placed, openness)
    })
    const chosen = boundItems(chooseByTag(sources, { source, path, value }, schema))
    return openness === 'closed' ? close(chosen) : chosen
  }

  /** Like `prepare`, for a property of an object. Ajv applies defaults of properties only, and it
   *  ignores the default behind a reference. So this function copies it to the property. */
  prepareProperty(placed: Located<Schema>, openness: Openness): Schema {
    const schema = this.prepare(placed, openness)
    // In a response, a default would hide that the field is missing.
    if (openness === 'closed') return schema
    const value = readDefault(dereference(this.#sources, placed).value)
    return value === undefined ? schema : { ...schema, default: value }
  }

  /** Returns a reference to a prepared schema that is in `components`, so that the operations share
   *  its function. Other schemas stay as they are. */
  share(schema: Schema, place: Place): Schema {
    if (place.path[0] !== 'components' || schema.$ref) return schema
    const { default: value, ...shared } = schema
    const $ref = this.#register(idOf(place, 'shared'), shared, place)
    return value === undefined ? { $ref } : { $ref, default: value }
  }

  /** Compiles a prepared schema and returns the name of its function. Equal schemas share one
   *  function. Throws `ContractError` at `place` if Ajv refuses the schema. */
  add(name: string, schema: Schema, place: Place): string {
    const id = schema.$ref ?? this.#register(`/${name}`, schema, place)
    compileAt(this.#sources, place, () => this.#ajv.getSchema(id))
    // /open/openapi.yaml/components/schemas/Task → open_openapi_schemas_Task
    const base = id.slice(1).replace('.yaml/components', '').replace(/\W/g, '_')
    let functionName = base
    for (let count = 2; (this.#functions[functionName] ?? id) !== id; count++)
      functionName = `${base}_${count}`
    this.#functions[functionName] = id
    return functionName
  }

  /** Compiles a prepared schema to a function for immediate use. */
  compile(schema: Schema, place: Place): ValidateFunction {
    const compile = () =>
      (schema.$ref && this.#ajv.getSchema(schema.$ref)) || this.#ajv.compile(schema)
    return compileAt(this.#sources, place, compile)
  }

  /** The source text of all functions: a module without exports. It defines `require`, because Ajv
   *  uses it even in an ES module. */
  code(): string {
    const module = standalone.default(this.#ajv, this.#functions)
    const body = module.replace(/^"use strict";\n/, '').replaceAll(/^export const/gm, 'const')
    return `import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
${body}`
  }

  /** Returns the ID of the component's schema. */
  #addComponent(target: Located<Schema>, openness: Openness): string {
    const own = idOf(target, openness)
    const known = this.#components.get(own)
    if (known !== undefined) return known
    this.#components.set(own, own) // before `prepare`: the component may contain itself
    const id = this.#register(own, this.prepare(target, openness), target)
    // While `prepare` ran, another component may have referred to `own`.
    if (id !== own) this.#ajv.addSchema({ $ref: id }, own)
    this.#components.set(own, id)
    return id
  }

  /** Returns the ID of the schema: that of an equal schema if there is one. */
  #register(id: string, schema: Schema, place: Place): string {
    const key = JSON.stringify(schema)
    const equal = this.#ids.get(key)
    if (equal !== undefined) return equal
    try {
      this.#ajv.addSchema(schema, id)
    } catch (error) {
      failAtCulprit(this.#sources, place, error as Error)
    }
    this.#ids.set(key, id)
    return id
  }
}

function idOf({ source, path }: Place, kind: Openness | 'shared'): string {
  return `/${kind}/${source.file}/${path.map((step) => encodeURIComponent(step)).join('/')}`
}

function compileAt<T>(sources: Sources, place: Place, compile: () => T): T {
  try {
    return compile()
  } catch (error) {
    return failAtCulprit(sources, place, error as Error)
  }
}

function close(schema: Schema): Schema {
  const isOpen = isObjectSchema(schema) && schema.additionalProperties === undefined
  return isOpen ? { ...schema, additionalProperties: false } : schema
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
