/** generated/resources.ts: the resources that the console lists, shows and edits. */
import { findTag, mergeAlternatives } from '../model/alternatives.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { recordTypeOf } from '../model/paths.ts'
import { dereference, inlineReferences } from '../model/references.ts'
import { mapSubschemas, readDefault, type Schema } from '../model/schema.ts'
import { type Finding, fail, type Located } from '../model/source.ts'
import { type Counted, readRecordWords } from '../words/records.ts'
import { HEADER, literal, union } from './typescript-text.ts'

export function renderResources(contract: Contract): string {
  for (const { source, path, problem } of findUnknownModules(contract)) fail(source, path, problem)
  const rows = contract.tags.flatMap(({ name, module, description }) => {
    if (module === undefined || module === NO_MODULE) return []
    const operations = contract.operations.filter(({ tag }) => tag === name)
    return operations.flatMap(
      (operation) => toRow(contract, operation, operations, { module, description }) ?? [],
    )
  })
  return `${HEADER}import type { Schema } from '../scripts/model/schema.ts'
import type { OperationId } from './operations.ts'

export interface Resource {
  /** The last part of its path, for example \`job-applications\`. */
  readonly slug: string
  /** In the singular, for example \`job_application\`: the path parameter without \`_id\`. The events and
   *  references (\`job_application_id\`) use it. */
  readonly type: string
  /** The path parameter with the ID of a record. */
  readonly idParameter: string
  readonly description: string
  /** The permission that guards its console pages: \`x-module\` of its tag. */
  readonly module: Module
  readonly operations: {
    readonly list: OperationId
    readonly get: OperationId
    readonly create: OperationId | null
    readonly update: OperationId | null
    readonly delete: OperationId | null
    /** Downloads the file of a record. */
    readonly file: OperationId | null
  }
  /** The statuses that can follow each status: \`states\` of \`x-record\`. Null if any can follow. */
  readonly nextStatuses: Readonly<Record<string, readonly string[]>> | null
  /** What \`include\` of \`x-record\` counts: records of the resource \`slug\` with the ID of a record in
   *  \`reference\`. */
  readonly counted: readonly { readonly slug: string; readonly reference: string }[]
  /** Schema of a record in the list. Like all schemas below, it has no references. */
  readonly record: Schema
  /** Body schema of \`create\`. */
  readonly creation: Schema | null
  /** Body schema of \`update\`. */
  readonly change: Schema | null
  /** Filters of the list; \`name\` is \`status\` for \`filter[status]\`. */
  readonly filters: readonly {
    readonly name: string
    readonly description: string
    readonly schema: Schema
  }[]
}

/** The modules of openapi.yaml: a user has a permission for each. */
export type Module =${union(contract.modules)}

/** In the order of openapi.yaml. */
export const resources: readonly Resource[] = ${literal(rows)}
`
}

/** The console does not embed records. */
function withoutIncluded(record: Schema, contract: Contract, get: Operation): Schema {
  const { include = {} } = readRecordWords(contract, get)
  const own = Object.entries(record.properties ?? {}).filter(([name]) => !(name in include))
  return { ...record, properties: Object.fromEntries(own) }
}

function listCounted(contract: Contract, get: Operation): object[] {
  const { include = {} } = readRecordWords(contract, get)
  const counts = Object.values(include).filter((included) => typeof included !== 'string')
  return counts.flatMap(Object.values<Counted>).map(({ list, reference }) => {
    const path = contract.operations.find(({ id }) => id === list)?.path ?? ''
    return { slug: slugOf(path), reference }
  })
}

/** The last part of the path of a list. */
function slugOf(path: string): string {
  return path.split('/').at(-1) ?? ''
}

/** `x-module` of a tag without console pages. */
const NO_MODULE = 'none'

function findUnknownModules({ openapi, tags, modules }: Contract): Finding[] {
  const allowed = [...modules, NO_MODULE]
  return tags
    .filter(({ module }) => module !== undefined && !allowed.includes(module))
    .map(({ name, path }) => ({
      source: openapi,
      path: [...path, 'x-module'],
      problem: `x-module of ${name} must be one of ${allowed.join(', ')}`,
    }))
}

/** Tags with an unknown module, and tags with a list but no module: the console cannot decide who
 *  may see the list. */
export function findMissingModules(contract: Contract): Finding[] {
  const { openapi, tags, modules, operations } = contract
  const listed = operations.filter((operation) => isList(contract, operation)).map(({ tag }) => tag)
  const missing = tags
    .filter(({ name, module }) => module === undefined && listed.includes(name))
    .map(({ name, path }) => ({
      source: openapi,
      path,
      problem:
        `${name} has a list: add x-module, the permission for its console pages ` +
        `(${modules.join(', ')}), or ${NO_MODULE}`,
    }))
  return [...findUnknownModules(contract), ...missing]
}

/** Whether the operation responds with a page of records. */
export function isList({ sources }: Contract, { method, success }: Operation): boolean {
  const schema = success.content['application/json']?.schema
  if (method !== 'get' || !schema) return false
  const envelope = dereference(sources, schema)
  const { data = {}, meta } = envelope.value.properties ?? {}
  const isArray = dereference(sources, { ...envelope, value: data }).value.type === 'array'
  return isArray && meta !== undefined
}

/** The resource of the operation `list`, as an item of `resources` in generated/resources.ts.
 *  Undefined if `findRecordOperations` returns undefined. */
function toRow(
  contract: Contract,
  list: Operation,
  operations: Operation[],
  tag: { module: string; description: string },
): object | undefined {
  const found = findRecordOperations(contract, list, operations)
  if (found === undefined) return undefined
  const { slug, type, page, idParameter, get, create, update } = found
  const inline = (schema: Located<Schema>): Schema =>
    toConsoleSchema(inlineReferences(contract.sources, schema))
  return {
    slug,
    type,
    idParameter,
    ...tag,
    operations: {
      list: list.id,
      get: get.id,
      create: create?.body ? create.id : null,
      update: update?.id ?? null,
      delete: found.delete?.id ?? null,
      file: found.file?.id ?? null,
    },
    nextStatuses: readRecordWords(contract, get).states?.status ?? null,
    counted: listCounted(contract, get),
    record: withoutIncluded(inline(page.schema).properties?.data?.items ?? {}, contract, get),
    creation: create?.body ? inline(create.body.schema) : null,
    change: update?.body ? inline(update.body.schema) : null,
    filters: list.parameters.flatMap(({ name, description, schema }: Parameter) => {
      const filter = filterName(name)
      return filter === undefined ? [] : [{ name: filter, description, schema: inline(schema) }]
    }),
  }
}

/** The operations on the records of `list`. Undefined if it is not a list, if it is below another
 *  record, or if no operation gets one record. */
export function findRecordOperations(contract: Contract, list: Operation, operations: Operation[]) {
  const page = list.success.content['application/json']
  const isBelowRecord = list.path.includes('{')
  if (!page || !isList(contract, list) || isBelowRecord) return undefined
  const isRecordPath = (path: string): boolean =>
    path.startsWith(list.path) && /^\/\{[^/]+\}$/.test(path.slice(list.path.length))
  const get = operations.find(({ method, path }) => method === 'get' && isRecordPath(path))
  if (!get) return undefined
  const find = (method: string, path: string): Operation | undefined =>
    operations.find((operation) => operation.method === method && operation.path === path)
  const idParameter = get.path.slice(list.path.length + 2, -1)
  return {
    slug: slugOf(list.path),
    type: recordTypeOf(idParameter),
    page,
    get,
    idParameter,
    create: find('post', list.path),
    update: find('patch', get.path),
    delete: find('delete', get.path),
    file: operations.find(
      ({ method, path, success }) =>
        method === 'get' &&
        path.startsWith(`${get.path}/`) &&
        Object.keys(success.content).some((mediaType) => mediaType !== 'application/json'),
    ),
  }
}

/** The table of a resource: `job_applications` for `job-applications`. */
export function tableOf(slug: string): string {
  return slug.replaceAll('-', '_')
}

/** `job application` for `job_application`. */
export function nounOf(type: string): string {
  return type.replaceAll('_', ' ')
}

/** `status` for the parameter `filter[status]`. Undefined for a parameter that is not a filter. */
export function filterName(parameter: string): string | undefined {
  return /^filter\[(.+)\]$/.exec(parameter)?.[1]
}

/** The keywords that the forms and tables of the console use. */
const CONSOLE_KEYWORDS = new Set([
  ...['type', 'format', 'description', 'nullable', 'enum', 'default'],
  ...['items', 'properties', 'required', 'additionalProperties', 'allOf', 'anyOf', 'oneOf'],
  ...['pattern', 'minLength', 'maxLength', 'minimum', 'maximum'],
  ...['minItems', 'maxItems', 'maxProperties', 'uniqueItems', 'deprecated'],
  ...['x-currency', 'x-depends-on', 'x-by-option', 'x-enum-descriptions'],
])

/** Merges the alternatives of objects, and keeps only `CONSOLE_KEYWORDS`. */
function toConsoleSchema(inlined: Schema): Schema {
  const whole = mapSubschemas(inlined, toConsoleSchema)
  const alternatives = whole.oneOf ?? []
  const tagName = findTag(alternatives)
  const schema =
    tagName === undefined
      ? whole
      : {
          ...whole,
          oneOf: undefined,
          ...mergeAlternatives(alternatives, tagName),
          description: whole.description,
        }
  return Object.fromEntries(
    Object.entries({ ...schema, default: readDefault(whole) }).filter(
      ([keyword, value]) => CONSOLE_KEYWORDS.has(keyword) && value !== undefined,
    ),
  )
}
