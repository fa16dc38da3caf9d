/** Schemas of the contract, compiled ahead of time by Ajv to functions of one JavaScript module. */
import { Ajv, type ValidateFunction } from 'ajv'
import standalone from 'ajv/dist/standalone/index.js'
import addFormats from 'ajv-formats'
import { follow, locate } from '../model/references.ts'
import { mapSubschemas, type Schema } from '../model/schema.ts'
import { fail, type Place, type Placed, type Sources } from '../model/source.ts'

/** Whether an object schema that says nothing of additionalProperties lets them pass: `closed` is for what we send, so that a field too many is caught. */
export type Openness = 'open' | 'closed'

export interface Compiler {
  /** The schema as Ajv takes it, its references to components replaced by ids that this compiler knows. */
  prepare(placed: Placed<Schema>, openness: Openness): Schema
  /** Compiles a prepared schema; returns the name of its function. Equal schemas share one, by the name of the first. `place` is where
   *  to look when it is refused. */
  add(name: string, schema: Schema, place: Place): string
  /** Compiles a prepared schema to a function for use here and now. */
  compile(schema: Schema, place: Place): ValidateFunction
  /** The functions, as a module without exports. */
  code(): string
}

/** They do not affect validation, and would fill the module. */
const ANNOTATIONS = [
  'title',
  'description',
  'example',
  'examples',
  'externalDocs',
  'xml',
  'deprecated',
  'readOnly',
  'writeOnly',
]

export function newCompiler(sources: Sources): Compiler {
  const ajv = new Ajv({
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    allErrors: true,
    useDefaults: true,
    discriminator: true,
    // Each schema is one function that others call: inlined, the module is many times the size.
    inlineRefs: false,
    code: { source: true, esm: true, lines: true },
  })
  addFormats.default(ajv)
  const components = new Set<string>()
  /** The name of the function for each schema, and the schema's id for each name. */
  const names = new Map<string, string>()
  const functions: Record<string, string> = {}

  function prepare({ source, path, value }: Placed<Schema>, openness: Openness): Schema {
    if (value.$ref)
      return { $ref: component(locate(sources, source, value.$ref) as Placed<Schema>, openness) }
    checkNullable({ source, path, value })
    if (openness === 'closed') checkClosable(sources, { source, path, value })
    const schema = mapSubschemas(withoutAnnotations(value), (subschema, steps) =>
      prepare({ source, path: [...path, ...steps], value: subschema }, openness),
    )
    return openness === 'closed' ? close(schema) : schema
  }

  /** The id of the component, which is made known to Ajv first. */
  function component(target: Placed<Schema>, openness: Openness): string {
    const { source, path } = target
    const id = `/${openness}/${source.file}/${path.map((step) => encodeURIComponent(step)).join('/')}`
    if (!components.has(id)) {
      components.add(id) // before it is prepared: it may contain itself
      register(id, prepare(target, openness), target)
    }
    return id
  }

  function register(id: string, schema: Schema, { source, path }: Place): void {
    try {
      ajv.addSchema(schema, id)
    } catch (error) {
      fail(source, path, `is a schema that Ajv refuses: ${(error as Error).message}`)
    }
  }

  function add(name: string, schema: Schema, place: Place): string {
    const key = JSON.stringify(schema)
    const known = names.get(key)
    if (known) return known
    const id = schema.$ref ?? `/${name}`
    if (!schema.$ref) register(id, schema, place)
    attempt(place, () => ajv.getSchema(id))
    const unique = id.slice(1).replace('.yaml/components', '').replace(/\W/g, '_')
    names.set(key, unique)
    functions[unique] = id
    return unique
  }

  function compile(schema: Schema, place: Place): ValidateFunction {
    return attempt(place, () => ajv.compile(schema))
  }

  function attempt<T>({ source, path }: Place, work: () => T): T {
    try {
      return work()
    } catch (error) {
      return fail(
        source,
        path,
        `is, or refers to, a schema that Ajv refuses: ${(error as Error).message}`,
      )
    }
  }

  /** Ajv writes CommonJS `require` for its runtime even in an ES module. */
  function code(): string {
    const module = standalone.default(ajv, functions)
    const body = module.replace(/^"use strict";\n/, '').replaceAll(/^export const/gm, 'const')
    return `import { createRequire } from 'node:module'\n\nconst require = createRequire(import.meta.url)\n${body}`
  }

  return { prepare, add, compile, code }
}

function withoutAnnotations(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema).filter(
      ([keyword]) => !ANNOTATIONS.includes(keyword) && !keyword.startsWith('x-'),
    ),
  )
}

/** What we send gets no defaults either: they would hide that something is missing. */
function close({ default: _default, ...schema }: Schema): Schema {
  return isObjectSchema(schema) ? { additionalProperties: false, ...schema } : schema
}

function isObjectSchema({ type, properties }: Schema): boolean {
  return type === 'object' || properties !== undefined
}

function checkNullable({
  source,
  path,
  value: { nullable, type, enum: options },
}: Placed<Schema>): void {
  if (!nullable) return
  if (type === undefined) fail(source, path, 'is nullable without a type: give it one')
  if (options && !options.includes(null))
    fail(source, path, 'is nullable, but its enum does not list null: add it')
}

/** A closed part of a composition refuses the properties of the others. */
function checkClosable(sources: Sources, { source, path, value }: Placed<Schema>): void {
  const isObject = (schema: Schema) =>
    isObjectSchema(follow(sources, { source, path, value: schema }).value as Schema)
  if (value.allOf?.some(isObject))
    fail(
      source,
      path,
      'combines objects by allOf, which cannot be checked for fields too many: write the properties out',
    )
  const alternatives = [...(value.oneOf ?? []), ...(value.anyOf ?? [])]
  if (value.properties && alternatives.some(isObject))
    fail(
      source,
      path,
      'has properties beside alternatives that are objects: write the properties out in each alternative',
    )
}
