import type { Contract, Operation, Parameter } from './contract.ts'
import { follow, type Placed, type Sources } from './references.ts'
import type { Schema } from './schema.ts'
import { fail } from './source.ts'
import { HEADER, literal, union } from './text.ts'

/** generated/operations.ts: the operations as data, and the types of their parts by operationId. */
export function operations(contract: Contract): string {
  const rows = Object.fromEntries(
    contract.operations.map((operation) => [operation.id, row(contract.sources, operation)]),
  )
  return `${HEADER}import type { Readable } from 'node:stream'
import type { EventType } from './asyncapi.ts'
import type { operations as Types } from './openapi.ts'

/** SHA-256 of openapi.yaml and asyncapi.yaml. */
export const contractHash = '${contract.hash}'

export type OperationId =${union(contract.operations.map(({ id }) => id))}

export interface Operation {
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch' | 'trace'
  /** The template, such as \`/public/v1/participants/{participant}\`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** Needs no API key. */
  readonly isPublic: boolean
  /** What an API key's access level must allow. */
  readonly access: 'read' | 'write'
  /** The module permission that the key's owner must have. */
  readonly permission: 'finance' | null
  readonly rateLimit: { readonly limit: number; readonly windowSeconds: number }
  /** How to convert each query parameter from its text, and what its absence means. */
  readonly query: { readonly [name: string]: QueryParameter }
  /** What \`sort\` takes, without \`-\`. */
  readonly sorts: readonly string[]
  /** The filters by name, such as \`status\` of \`filter[status]\`, with what each takes if that is an enumeration. */
  readonly filters: { readonly [name: string]: { readonly list: boolean; readonly options: readonly string[] | null } }
  readonly emits: readonly EventType[]
  /** The 2xx status. */
  readonly success: number
  /** Of the 2xx response. */
  readonly mediaTypes: readonly string[]
  /** The 2xx response has an ETag. */
  readonly etag: boolean
  /** The 2xx response has a Location. */
  readonly location: boolean
  /** Every declared status. */
  readonly statuses: readonly number[]
  /** Takes an Idempotency-Key. */
  readonly idempotent: boolean
  /** Takes If-Match. */
  readonly ifMatch: boolean
  /** Days, such as \`2026-03-01\`: since when it is deprecated, and from when on it may be gone. */
  readonly deprecation: { readonly since: string; readonly sunset: string | null } | null
}

/** A list is one text with commas. */
export interface QueryParameter {
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list'
  readonly default?: string | number | boolean
}

export const operations = ${literal(rows)} as const satisfies Record<OperationId, Operation>

type Table = typeof operations

type Parameters<Id extends OperationId, In extends 'path' | 'query'> = NonNullable<Types[Id]['parameters'][In]>

export type PathParams<Id extends OperationId> = [Parameters<Id, 'path'>] extends [never] ? Record<never, never> : Parameters<Id, 'path'>

/** After validation: what has a default is there. */
export type QueryParams<Id extends OperationId> = [Parameters<Id, 'query'>] extends [never]
  ? Record<never, never>
  : WithDefaults<Parameters<Id, 'query'>, Table[Id]['query']>

type WithDefaults<Query, Rows> = Query & { [Name in keyof Query as Name extends Defaulted<Rows> ? Name : never]-?: NonNullable<Query[Name]> }

type Defaulted<Rows> = { [Name in keyof Rows]: Rows[Name] extends { default: unknown } ? Name : never }[keyof Rows]

/** After validation: what has a default is there. \`never\` if the operation takes no body. */
export type Body<Id extends OperationId> = JsonContent<NonNullable<Types[Id]['requestBody']>>

type JsonContent<T> = T extends { content: { 'application/json': infer Json } } ? Json : never

/** The 2xx response of an operation that returns something else than JSON. */
export interface FileBody {
  headers: Record<string, string>
  stream: Readable
}

/** The body of the 2xx response. */
export type SuccessBody<Id extends OperationId> = Types[Id]['responses'][Table[Id]['success'] & keyof Types[Id]['responses']] extends {
  content: infer Content
}
  ? [Exclude<keyof Content, 'application/json'>] extends [never]
    ? Content['application/json' & keyof Content]
    : FileBody
  : void

/** The event types that the operation declares; \`never\` if none. */
export type Emits<Id extends OperationId> = Table[Id]['emits'][number]
`
}

function row(sources: Sources, operation: Operation): object {
  const {
    id,
    method,
    path,
    tag,
    summary,
    isPublic,
    permission,
    rateLimit,
    parameters,
    responses,
    success,
    emits,
    deprecation,
  } = operation
  const ofQuery = parameters.filter((parameter) => parameter.in === 'query')
  const takesHeader = (name: string) =>
    parameters.some(
      (parameter) => parameter.in === 'header' && parameter.name.toLowerCase() === name,
    )
  const sort = ofQuery.find(({ name }) => name === 'sort')
  const filters = ofQuery.flatMap((parameter) => {
    const name = /^filter\[(.+)\]$/.exec(parameter.name)?.[1]
    return name
      ? [
          [
            name,
            {
              list: target(sources, parameter.schema).type === 'array',
              options: options(sources, parameter),
            },
          ],
        ]
      : []
  })
  return {
    method,
    path,
    tag,
    summary,
    isPublic,
    access: method === 'get' || method === 'head' ? 'read' : 'write',
    permission,
    rateLimit,
    query: Object.fromEntries(
      ofQuery.map((parameter) => [parameter.name, queryParameter(sources, id, parameter)]),
    ),
    sorts: [...new Set((sort && options(sources, sort))?.map((name) => name.replace(/^-/, '')))],
    filters: Object.fromEntries(filters),
    emits,
    success: success.status,
    mediaTypes: Object.keys(success.content),
    etag: 'etag' in success.headers,
    location: 'location' in success.headers,
    statuses: responses.map(({ status }) => status),
    idempotent: takesHeader('idempotency-key'),
    ifMatch: takesHeader('if-match'),
    deprecation,
  }
}

function queryParameter(
  sources: Sources,
  id: string,
  { name, schema, style, explode }: Parameter,
): object {
  const { type, default: byDefault } = target(sources, schema)
  if (type === 'array') {
    if (style === 'form' && explode === false) return { type: 'list' }
    fail(
      schema.source,
      schema.path,
      `parameter ${name} of ${id} is an array: it must have style: form and explode: false, a comma-separated list`,
    )
  }
  if (!['string', 'integer', 'number', 'boolean'].includes(String(type)))
    fail(
      schema.source,
      schema.path,
      `parameter ${name} of ${id} must be a string, integer, number, boolean or array`,
    )
  return byDefault === undefined ? { type } : { type, default: byDefault }
}

/** What the parameter, or each item of its list, may be; null if that is not an enumeration. */
function options(sources: Sources, { schema }: Parameter): string[] | null {
  const { items, enum: values } = target(sources, schema)
  return (
    ((items ? target(sources, { ...schema, value: items }).enum : values) as
      | string[]
      | undefined) ?? null
  )
}

function target(sources: Sources, schema: Placed<Schema>): Schema {
  return follow(sources, schema).value as Schema
}
