import { modules } from '../../records/users.ts'
import type { Contract, Finding, Operation } from './contract.ts'
import { follow, inlineReferences, type Placed, type Sources } from './references.ts'
import { mapSubschemas, type Schema } from './schema.ts'
import { at, fail, isObject, type Path } from './source.ts'
import { HEADER, literal } from './text.ts'

/** generated/resources.ts: what people list, read and change in the console, and which permission rules it. */
export function resources(contract: Contract): string {
  for (const { source, path, problem } of unknownModules(contract)) fail(source, path, problem)
  const rows = tagsOf(contract).flatMap(({ name, module, description }) => {
    if (module === undefined || module === NO_MODULE) return []
    const operations = contract.operations.filter(({ tag }) => tag === name)
    return operations.flatMap(
      (list) => row(contract, list, operations, { module, description }) ?? [],
    )
  })
  return `${HEADER}import type { Module } from '../records/users.ts'
import type { OperationId } from './operations.ts'

/** A Schema Object of OpenAPI 3.0 with its references followed. What would contain itself is empty there: it may be anything. */
export interface Schema {
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly items?: Schema
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly uniqueItems?: boolean
  readonly deprecated?: boolean
  /** Of an amount in minor units: the field beside it that names its currency. */
  readonly 'x-currency'?: string
}

export interface Resource {
  /** The last part of its path, such as \`job-applications\`. */
  readonly slug: string
  /** Of one, such as \`job_application\`: what its path parameter, its events and references to it (\`job_application_id\`) say. */
  readonly type: string
  readonly description: string
  /** The permission that rules it in the console: \`x-module\` of its tag. */
  readonly module: Module
  readonly operations: {
    readonly list: OperationId
    readonly get: OperationId
    readonly create: OperationId | null
    readonly update: OperationId | null
    readonly delete: OperationId | null
    /** Downloads what belongs to a record. */
    readonly file: OperationId | null
  }
  /** Of a record in the list. */
  readonly record: Schema
  /** The bodies of \`create\` and \`update\`. */
  readonly creation: Schema | null
  readonly change: Schema | null
  /** Of the list: \`name\` is \`status\` of \`filter[status]\`. */
  readonly filters: readonly { readonly name: string; readonly description: string; readonly schema: Schema }[]
}

/** In the order of openapi.yaml. */
export const resources: readonly Resource[] = ${literal(rows)}
`
}

/** `x-module` of what has no pages in the console. */
const NO_MODULE = 'none'

interface Tag {
  name: string
  description: string
  module: string | undefined
  path: Path
}

function tagsOf({ openapi }: Contract): Tag[] {
  const tags = at(openapi, ['tags'])
  return (Array.isArray(tags) ? tags : [])
    .filter(isObject)
    .map(({ name, description, 'x-module': module }, index) => ({
      name: String(name),
      description: String(description ?? ''),
      module: module === undefined ? undefined : String(module),
      path: ['tags', index],
    }))
}

function unknownModules(contract: Contract): Finding[] {
  const known: string[] = [...modules, NO_MODULE]
  const source = sourceOf(contract)
  return tagsOf(contract)
    .filter(({ module }) => module !== undefined && !known.includes(module))
    .map(({ name, path }) => ({
      source,
      path: [...path, 'x-module'],
      problem: `x-module of ${name} must be one of ${known.join(', ')}`,
    }))
}

/** Tags with a list and no module: nobody would know who may see it. */
export function listsWithoutModule(contract: Contract): Finding[] {
  const source = sourceOf(contract)
  const listed = contract.operations
    .filter((operation) => isList(contract, operation))
    .map(({ tag }) => tag)
  const without = tagsOf(contract)
    .filter(({ name, module }) => module === undefined && listed.includes(name))
    .map(({ name, path }) => ({
      source,
      path,
      problem: `${name} has a list: add x-module, the permission that rules it in the console (${modules.join(', ')}), or ${NO_MODULE}`,
    }))
  return [...unknownModules(contract), ...without]
}

function sourceOf({ sources }: Contract) {
  const source = sources['openapi.yaml']
  if (!source) throw new Error('The contract has no openapi.yaml')
  return source
}

/** Does it answer with a page of records? */
export function isList({ sources }: Contract, { method, success }: Operation): boolean {
  const schema = success.content['application/json']
  if (method !== 'get' || !schema) return false
  const { properties = {} } = inlineReferences(sources, schema)
  return properties.data?.type === 'array' && properties.meta !== undefined
}

/** Undefined for what is no list, or one whose records cannot be read one by one. */
function row(
  contract: Contract,
  list: Operation,
  operations: Operation[],
  tag: { module: string; description: string },
): object | undefined {
  if (!isList(contract, list) || list.path.includes('{')) return undefined
  const inside = operations.filter(({ path }) => path.startsWith(`${list.path}/{`))
  const one = inside.find(
    ({ method, path }) => method === 'get' && /^\/\{[^/]+\}$/.test(path.slice(list.path.length)),
  )
  if (!one) return undefined
  const find = (method: string, path: string): Operation | undefined =>
    operations.find((operation) => operation.method === method && operation.path === path)
  const create = find('post', list.path)
  const update = find('patch', one.path)
  const { data } =
    inlined(contract.sources, list.success.content['application/json'] as Placed<Schema>)
      .properties ?? {}
  return {
    slug: list.path.split('/').at(-1),
    type: one.path.slice(list.path.length + 2, -1),
    ...tag,
    operations: {
      list: list.id,
      get: one.id,
      create: create?.id ?? null,
      update: update?.id ?? null,
      delete: find('delete', one.path)?.id ?? null,
      file: find('get', `${one.path}/file`)?.id ?? null,
    },
    record: data?.items ?? {},
    creation: create?.body ? inlined(contract.sources, create.body) : null,
    change: update?.body ? inlined(contract.sources, update.body) : null,
    filters: list.parameters.flatMap(({ name, schema }) => {
      const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
      if (filter === undefined) return []
      const description = at(schema.source.root, [...schema.path.slice(0, -1), 'description'])
      return [
        {
          name: filter,
          description: String(description ?? ''),
          schema: inlined(contract.sources, schema),
        },
      ]
    }),
  }
}

/** What a form and a table can tell from a schema. */
const KEYWORDS = new Set([
  ...[
    'type',
    'format',
    'description',
    'nullable',
    'enum',
    'default',
    'items',
    'properties',
    'required',
    'additionalProperties',
  ],
  ...[
    'allOf',
    'anyOf',
    'oneOf',
    'pattern',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'minItems',
    'maxItems',
    'maxProperties',
  ],
  ...['uniqueItems', 'deprecated', 'x-currency'],
])

function inlined(
  sources: Sources,
  placed: Placed<Schema>,
  inside: readonly unknown[] = [],
): Schema {
  const { source, path, value } = follow(sources, placed)
  if (inside.includes(value)) return {}
  const whole = mapSubschemas(value, (subschema, steps) =>
    inlined(sources, { source, path: [...path, ...steps], value: subschema }, [...inside, value]),
  )
  return Object.fromEntries(Object.entries(whole).filter(([keyword]) => KEYWORDS.has(keyword)))
}
