/** Reads the parameters of a request by their style (OpenAPI 3.0.3, Parameter Object, "Style
 *  Values"). */
import type { Operation, Parameter } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import type { Located, Source } from '../model/source.ts'
import type { Problem, Validation } from './schemas.ts'

const PLACES = ['path', 'query', 'header', 'cookie'] as const
export type PlaceName = (typeof PLACES)[number]

export type Values = Record<string, unknown>

export interface RawParameters {
  path: Record<string, string>
  query: URLSearchParams
  /** By lower-case name. */
  headers: Record<string, string | string[] | undefined>
}

export interface ParameterReader {
  /** Converts and validates the values. Header names are in lower case. `problems` is empty if all
   *  values are valid. */
  read(raw: RawParameters): { values: Record<PlaceName, Values>; problems: Problem[] }
}

/** OpenAPI 3.0.3: header parameters with these names are ignored. */
const IGNORED_HEADERS = ['accept', 'content-type', 'authorization']

export function listParameters({ parameters }: Operation, place: PlaceName): Parameter[] {
  return parameters.filter(
    (parameter) =>
      parameter.in === place &&
      !(place === 'header' && IGNORED_HEADERS.includes(parameter.name.toLowerCase())),
  )
}

export function newParameterReader(
  openapi: Source,
  validation: Validation,
  operation: Operation,
): ParameterReader {
  const groups = PLACES.map((place) => {
    const parameters = listParameters(operation, place)
    return { place, parameters, schema: toObjectSchema(openapi, place, parameters) }
  })
  return {
    read(raw) {
      const problems: Problem[] = []
      const values = {} as Record<PlaceName, Values>
      for (const { place, parameters, schema } of groups) {
        const found = new Map<string, unknown>()
        for (const parameter of parameters) {
          const name = keyOf(place, parameter)
          try {
            const value = readValue(openapi, raw, place, parameter)
            if (value !== undefined) found.set(name, value)
          } catch (error) {
            const message = error instanceof URIError ? 'must be percent-encoded' : 'must be JSON'
            problems.push({ field: `${place}.${name}`, message })
          }
        }
        values[place] = Object.fromEntries(found)
        for (const { field, message } of validation.convertInPlace(schema, values[place]))
          problems.push({ field: `${place}.${field}`, message })
      }
      return { values, problems }
    },
  }
}

function keyOf(place: PlaceName, { name }: Parameter): string {
  return place === 'header' ? name.toLowerCase() : name
}

function toObjectSchema(
  openapi: Source,
  place: PlaceName,
  parameters: Parameter[],
): Located<Schema> {
  const value: Schema = {
    type: 'object',
    properties: Object.fromEntries(
      parameters.map((parameter) => [keyOf(place, parameter), parameter.schema.value]),
    ),
    required: parameters.filter(({ required }) => required).map((one) => keyOf(place, one)),
  }
  return { source: openapi, path: [], value }
}

/** Undefined if the request does not have the parameter. Throws `SyntaxError` for text that must be
 *  JSON and is not, and `URIError` for a cookie that cannot be decoded. */
function readValue(
  openapi: Source,
  raw: RawParameters,
  place: PlaceName,
  parameter: Parameter,
): unknown {
  if (place === 'query') return readQuery(openapi, raw.query, parameter)
  const text = readText(raw, place, parameter)
  if (text === undefined) return undefined
  if (parameter.mediaType !== undefined) return JSON.parse(text)
  const kind = kindOf(openapi, parameter.schema)
  if (kind === 'array') return text.split(/, */)
  if (kind !== 'object') return text
  return parameter.explode === true ? readAssignments(text) : readPairs(text)
}

function readText(raw: RawParameters, place: PlaceName, { name }: Parameter): string | undefined {
  if (place === 'path') return raw.path[name]
  if (place === 'header') return raw.headers[name.toLowerCase()]?.toString()
  const text = findCookie(raw, name)
  return text === undefined ? undefined : decodeURIComponent(text)
}

/** The text of the cookie as it was sent. */
export function findCookie({ headers }: RawParameters, name: string): string | undefined {
  const pairs = (headers.cookie?.toString() ?? '').split(/; */)
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** The separators of the items of a list, by style. All other styles use a comma. */
export const DELIMITERS: Record<string, string> = { spaceDelimited: ' ', pipeDelimited: '|' }

function readQuery(openapi: Source, query: URLSearchParams, parameter: Parameter): unknown {
  const { name, mediaType, schema, style = 'form', explode = style === 'form' } = parameter
  const texts = query.getAll(name)
  const [first] = texts
  if (mediaType !== undefined) return first === undefined ? undefined : JSON.parse(first)
  const nested = readNested(query, name)
  if (nested !== undefined) return nested
  const kind = kindOf(openapi, schema)
  if (kind === 'object' && style === 'form' && explode)
    return readProperties(openapi, query, schema)
  if (first === undefined) return undefined
  if (kind === 'array')
    return explode ? texts : texts.flatMap((text) => text.split(DELIMITERS[style] ?? ','))
  if (kind === 'object' && style === 'form') return readPairs(first)
  return texts.length === 1 ? first : texts
}

/** The value of a parameter whose properties are separate in the query: `role=admin&name=Ada`. */
function readProperties(openapi: Source, query: URLSearchParams, schema: Located<Schema>): unknown {
  const found = listProperties(openapi, schema.value).filter(([name]) => query.has(name))
  if (found.length === 0) return undefined
  return Object.fromEntries(
    found.map(([name, value]) => {
      const isList = kindOf(openapi, { ...schema, value }) === 'array'
      return [name, isList ? query.getAll(name) : query.get(name)]
    }),
  )
}

function listProperties(openapi: Source, value: Schema): [string, Schema][] {
  const schema = follow(openapi, value)
  return [
    ...Object.entries(schema.properties ?? {}),
    ...listParts(schema).flatMap((one) => listProperties(openapi, one)),
  ]
}

type Nested = Map<string, Nested> | string

/** The most keys of an entry: `name[b][c]` has two. Entries with more keys are ignored. */
const MAX_DEPTH = 32

/** The value of a nested parameter, for example `name[a]=1&name[b][c]=2`, or `name[]=1` or
 *  `name[0]=1` for a list. Undefined if no entry has such a name. */
export function readNested(entries: Iterable<[string, string]>, name: string): unknown {
  const root = new Map<string, Nested>()
  for (const [key, value] of entries) {
    if (!key.startsWith(`${name}[`) || !key.endsWith(']')) continue
    const steps = key.slice(name.length + 1, -1).split('][')
    if (steps.length <= MAX_DEPTH) addNested(root, steps, value)
  }
  return root.size === 0 ? undefined : toListOrObject(root)
}

function addNested(root: Map<string, Nested>, steps: string[], value: string): void {
  let node = root
  for (const [depth, step] of steps.entries()) {
    const key = step === '' ? String(node.size) : step
    if (depth === steps.length - 1) {
      node.set(key, value)
      return
    }
    const child = node.get(key)
    const next = child instanceof Map ? child : new Map<string, Nested>()
    node.set(key, next)
    node = next
  }
}

function toListOrObject(node: Nested): unknown {
  if (!(node instanceof Map)) return node
  const entries = [...node].map(([key, child]): [string, unknown] => [key, toListOrObject(child)])
  if (!entries.every(([key]) => /^\d+$/.test(key))) return Object.fromEntries(entries)
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => value)
}

/** For example `role=admin,name=Ada`. */
function readAssignments(text: string): object {
  const pairs = text.split(',').map((part) => {
    const [name = '', ...rest] = part.split('=')
    return [name, rest.join('=')]
  })
  return Object.fromEntries(pairs)
}

/** For example `role,admin,name,Ada`. */
function readPairs(text: string): object {
  const parts = text.split(',')
  const names = parts.filter((_, index) => index % 2 === 0)
  return Object.fromEntries(names.map((name, index) => [name, parts[2 * index + 1] ?? '']))
}

function follow(openapi: Source, value: Schema): Schema {
  return dereference({ [openapi.file]: openapi }, { source: openapi, path: [], value }).value
}

export function kindOf(openapi: Source, { value }: Located<Schema>): 'array' | 'object' | 'text' {
  const schema = follow(openapi, value)
  const types = ([schema.type] as unknown[]).flat()
  if (types.includes('array') || schema.items) return 'array'
  if (types.includes('object') || schema.properties) return 'object'
  const kinds = listParts(schema).map((one) =>
    kindOf(openapi, { source: openapi, path: [], value: one }),
  )
  return kinds.find((kind) => kind !== 'text') ?? 'text'
}

function listParts({ oneOf = [], anyOf = [], allOf = [] }: Schema): readonly Schema[] {
  return [...oneOf, ...anyOf, ...allOf]
}
