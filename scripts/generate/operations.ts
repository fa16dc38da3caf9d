/** generated/operations.ts: the operations as data, and the types of their parts (parameters,
 *  bodies and event types) by operationId. */
import type { Contract } from '../model/contract.ts'
import type { Operation, OperationResponse, Parameter } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import { readDefault, type Schema } from '../model/schema.ts'
import { fail, type Located, type Sources } from '../model/source.ts'
import { readBatchWords } from '../words/batches.ts'
import { filterName } from './resources.ts'
import { HEADER, literal, union } from './typescript-text.ts'

export function renderOperations(contract: Contract): string {
  const { sources } = contract
  const rows = Object.fromEntries(
    contract.operations.map((operation) => [operation.id, toRow(sources, operation)]),
  )
  const defaults = contract.operations.map((operation) => renderBodyDefaults(sources, operation))
  return `${HEADER}import type { Readable } from 'node:stream'
import type { EventType } from './asyncapi.ts'
import type { operations as Types } from './openapi.ts'

export type OperationId =${union(contract.operations.map(({ id }) => id))}

${ROW_TYPES}
export const operations = ${literal(rows)} as const satisfies Record<OperationId, OperationRow>

/** The fields of each body that have a default. */
interface BodyDefaults {${defaults.join('')}
}

${PART_TYPES}`
}

const ROW_TYPES = `/** An operation of the contract. */
export interface OperationRow {
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch' | 'trace'
  /** The template, for example \`/public/v1/participants/{participant}\`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** The access level that the API key needs. */
  readonly access: 'read' | 'write'
  /** What the key's owner must be permitted to do. */
  readonly permission: 'finance' | 'webhooks' | null
  readonly rateLimit: { readonly limit: number; readonly windowSeconds: number }
  /** Type and default of each query parameter. */
  readonly query: { readonly [name: string]: QueryParameter }
  /** Values of \`sort\`, without \`-\`. */
  readonly sorts: readonly string[]
  /** Filters by name, for example \`status\` for \`filter[status]\`. \`list\`: whether the filter
   *  takes several values. \`options\`: the values of an enumeration. */
  readonly filters: {
    readonly [name: string]: { readonly list: boolean; readonly options: readonly string[] | null }
  }
  readonly emits: readonly EventType[]
  /** The 2xx status. */
  readonly success: number
  /** Media types of the 2xx response. */
  readonly mediaTypes: readonly string[]
  /** Media types of the file that is the body. Empty: the body is JSON, or there is none. */
  readonly files: readonly string[]
  /** Whether the 2xx response has an ETag. */
  readonly etag: boolean
  /** Whether the 2xx response has a Location. */
  readonly location: boolean
  /** Every declared status. */
  readonly statuses: readonly number[]
  /** The fields of the 2xx response that a repeated response has as null. */
  readonly shownOnce: readonly string[]
  /** Whether requests can have an Idempotency-Key. */
  readonly idempotent: boolean
  /** Whether requests can have If-Match. */
  readonly ifMatch: boolean
  /** The operations for one record, if this one creates and updates several. */
  readonly batch: {
    readonly create: OperationId
    readonly update: OperationId
    readonly maxBodyBytes: number
  } | null
  /** The day of the deprecation, for example \`2026-03-01\`, and the earliest day of the removal. */
  readonly deprecation: { readonly since: string; readonly sunset: string | null } | null
}

/** A list is comma-separated text. A \`text_list\` has values that can contain commas: these are
 *  encoded as \`%2C\` in a URL. \`nullable\`: the text \`null\` stands for null. */
export interface QueryParameter {
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'text_list'
  readonly nullable?: boolean
  readonly default?: string | number | boolean
}
`

const PART_TYPES = `type Table = typeof operations

type Parameters<Id extends OperationId, In extends 'path' | 'query'> = NonNullable<
  Types[Id]['parameters'][In]
>

export type PathParams<Id extends OperationId> = [Parameters<Id, 'path'>] extends [never]
  ? Record<never, never>
  : Parameters<Id, 'path'>

/** After validation: a parameter with a default is always present. */
export type QueryParams<Id extends OperationId> = [Parameters<Id, 'query'>] extends [never]
  ? Record<never, never>
  : WithDefaults<Parameters<Id, 'query'>, DefaultedQuery<Table[Id]['query']>>

type DefaultedQuery<Rows> = {
  [Name in keyof Rows]: Rows[Name] extends { default: unknown } ? Name : never
}[keyof Rows]

type WithDefaults<T, Name> = T & {
  [N in keyof T as N extends Name ? N : never]-?: NonNullable<T[N]>
}

/** After validation: a field with a default is always present. \`never\` without a body. */
export type Body<Id extends OperationId> = Table[Id]['files'] extends readonly []
  ? WithDefaults<
      JsonContent<NonNullable<Types[Id]['requestBody']>>,
      Id extends keyof BodyDefaults ? BodyDefaults[Id] : never
    >
  : Upload

/** A file that is the body of a request. It is stored under the ID before the operation runs. */
export interface Upload {
  id: string
  mediaType: string
  byteSize: number
}

type JsonContent<T> = T extends { content: { 'application/json': infer Json } } ? Json : never

/** The 2xx response of an operation that has a media type other than JSON. */
export interface FileBody {
  headers: Record<string, string>
  stream: Readable
}

/** The body of the 2xx response. */
export type SuccessBody<Id extends OperationId> =
  Types[Id]['responses'][Table[Id]['success'] & keyof Types[Id]['responses']] extends {
    content: infer Content
  }
    ? [Exclude<keyof Content, 'application/json'>] extends [never]
      ? Content['application/json' & keyof Content]
      : FileBody
    : void

/** The event types that the operation declares; \`never\` if none. */
export type Emits<Id extends OperationId> = Table[Id]['emits'][number]
`

function toRow(sources: Sources, operation: Operation): object {
  const { method, parameters, responses, success } = operation
  const { path, tag, summary, permission, rateLimit, emits, deprecation } = operation
  const query = parameters.filter((parameter) => parameter.in === 'query')
  const takesHeader = (name: string) =>
    parameters.some(
      (parameter) => parameter.in === 'header' && parameter.name.toLowerCase() === name,
    )
  const batch = readBatchWords(operation)
  const sort = query.find(({ name }) => name === 'sort')
  const sorts = (sort && listOptions(sources, sort)) ?? []
  return {
    method,
    path,
    tag,
    summary,
    access: method === 'get' || method === 'head' ? 'read' : 'write',
    permission,
    rateLimit,
    query: Object.fromEntries(
      query.map((parameter) => [parameter.name, toQueryParameter(sources, operation, parameter)]),
    ),
    sorts: [...new Set(sorts.map((name) => name.replace(/^-/, '')))],
    filters: Object.fromEntries(query.flatMap((parameter) => toFilter(sources, parameter))),
    emits,
    success: success.status,
    mediaTypes: Object.keys(success.content),
    files: operation.files.map(({ mediaType }) => mediaType),
    etag: 'etag' in success.headers,
    location: 'location' in success.headers,
    statuses: responses.map(({ status }) => status),
    shownOnce: listShownOnce(sources, success),
    idempotent: takesHeader('idempotency-key'),
    ifMatch: takesHeader('if-match'),
    batch: batch
      ? { create: batch.create, update: batch.update, maxBodyBytes: batch.max_body_bytes }
      : null,
    deprecation,
  }
}

function listShownOnce(sources: Sources, { content }: OperationResponse): string[] {
  const media = content['application/json']
  if (!media) return []
  const schema = dereference(sources, media.schema)
  return Object.entries(schema.value.properties ?? {})
    .filter(([, value]) => followSchema(sources, { ...schema, value })['x-shown-once'])
    .map(([name]) => name)
}

/** The entry of the parameter in `filters` of the row. Empty for a parameter that is not a
 *  filter. */
function toFilter(sources: Sources, parameter: Parameter): [string, object][] {
  const name = filterName(parameter.name)
  if (name === undefined) return []
  const list = followSchema(sources, parameter.schema).type === 'array'
  return [[name, { list, options: listOptions(sources, parameter) }]]
}

function toQueryParameter(
  sources: Sources,
  { id }: Operation,
  { name, schema, style, explode }: Parameter,
): object {
  const target = followSchema(sources, schema)
  const [type, defaultValue] = [target.type, readDefault(target)]
  const nullable = target.nullable && { nullable: true }
  const refuse = (rule: string): never =>
    fail(schema.source, schema.path, `parameter ${name} of ${id} ${rule}`)
  if (type === 'array') {
    if (style === 'form' && explode === false)
      return { type: isFreeText(sources, schema, target) ? 'text_list' : 'list', ...nullable }
    refuse('is an array: make it a comma-separated list with style: form and explode: false')
  }
  if (!['string', 'integer', 'number', 'boolean'].includes(String(type)))
    refuse('must be a string, integer, number, boolean or array')
  return { type, ...nullable, ...(defaultValue !== undefined && { default: defaultValue }) }
}

/** Whether the items of a list are text that can contain commas. */
function isFreeText(sources: Sources, place: Located, { items = {} }: Schema): boolean {
  const { type, format, enum: options } = followSchema(sources, { ...place, value: items })
  return type === 'string' && format === undefined && options === undefined
}

/** The values of `enum` that the parameter can have, or that the items of its list can have. Null
 *  without `enum`. */
function listOptions(sources: Sources, { schema }: Parameter): string[] | null {
  const { items, enum: values } = followSchema(sources, schema)
  const options = items ? followSchema(sources, { ...schema, value: items }).enum : values
  return (options as string[] | undefined) ?? null
}

function renderBodyDefaults(sources: Sources, { id, body }: Operation): string {
  if (!body) return ''
  const schema = dereference(sources, body.schema)
  const names = Object.entries(schema.value.properties ?? {})
    .filter(([, value]) => readDefault(followSchema(sources, { ...schema, value })) !== undefined)
    .map(([name]) => name)
  return names.length === 0 ? '' : `\n  ${id}: ${names.map((name) => `'${name}'`).join(' | ')}`
}

function followSchema(sources: Sources, schema: Located<Schema>): Schema {
  return dereference(sources, schema).value
}
