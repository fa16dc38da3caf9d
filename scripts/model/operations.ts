/** Operations of openapi.yaml. */
import { type Deprecation, readDeprecation } from './deprecations.ts'
import { dereference } from './references.ts'
import type { Schema } from './schema.ts'
import {
  fail,
  isObject,
  type Located,
  mappingAt,
  type Path,
  type Place,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

export interface Operation {
  id: string
  place: Place
  /** In lower case. */
  method: string
  /** The template, for example `/public/v1/participants/{participant}`. */
  path: string
  tag: string
  summary: string
  description: string
  permission: string | null
  rateLimit: RateLimit
  parameters: Parameter[]
  /** The JSON body. */
  body: MediaType | null
  /** The media types of the file that is the body instead. */
  files: MediaType[]
  responses: OperationResponse[]
  /** The response to a request that succeeds. */
  success: OperationResponse
  emits: string[]
  deprecation: Deprecation | null
}

export interface RateLimit {
  limit: number
  windowSeconds: number
}

export interface Parameter {
  name: string
  in: string
  place: Place
  required: boolean
  description: string
  style?: string
  explode?: boolean
  schema: Located<Schema>
  /** Undefined if the contract has none. */
  example: unknown
}

export interface OperationResponse {
  status: number
  place: Place
  description: string
  /** By lower-case name. */
  headers: Record<string, ResponseHeader>
  /** By media type. */
  content: Record<string, MediaType>
}

export interface ResponseHeader {
  name: string
  required: boolean
  description: string
  schema: Located<Schema>
  example: unknown
}

export interface MediaType {
  mediaType: string
  place: Place
  schema: Located<Schema>
  /** `example`. Without it, the first of `examples`. */
  example: unknown
  examples: NamedExample[]
}

/** An entry of `examples`. */
export interface NamedExample {
  summary: string
  value: unknown
}

export function isJson(mediaType: string): boolean {
  return /[/+]json\s*(;|$)/i.test(mediaType)
}

export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

export function readOperations(sources: Sources, openapi: Source): Operation[] {
  return Object.entries(mappingAt(openapi, ['paths'])).flatMap(([path, item]) =>
    Object.keys(isObject(item) ? item : {})
      .filter((method) => METHODS.includes(method))
      .map((method) => readOperation(sources, openapi, path, method)),
  )
}

function readOperation(sources: Sources, openapi: Source, path: string, method: string): Operation {
  const place = { source: openapi, path: ['paths', path, method] }
  const node = mappingAt(openapi, place.path)
  const id = readId(place, node.operationId)
  const responses = readResponses(sources, { source: openapi, path: [...place.path, 'responses'] })
  const [success, ...others] = responses.filter(({ status }) => status >= 200 && status < 300)
  if (!success || others.length > 0)
    fail(openapi, [...place.path, 'responses'], `${id} must declare exactly one 2xx response`)
  const bodies = readBodies(sources, place)
  return {
    id,
    place,
    method,
    path,
    tag: String(valueAt(node, ['tags', 0]) ?? ''),
    summary: String(node.summary ?? ''),
    description: String(node.description ?? ''),
    permission: (node['x-permission'] as string | undefined) ?? null,
    rateLimit: readRateLimit(openapi, node['x-rate-limit'] ? place.path : []),
    parameters: readParameters(sources, place),
    body: bodies.find(({ mediaType }) => mediaType === JSON_TYPE) ?? null,
    files: bodies.filter(({ mediaType }) => mediaType !== JSON_TYPE),
    responses,
    success,
    emits: (node['x-emits'] as string[] | undefined) ?? [],
    deprecation: readDeprecation(place, `operation ${id}`, node.deprecated === true),
  }
}

function readId({ source, path }: Place, id: unknown): string {
  const [, template, method] = path
  if (typeof id !== 'string')
    fail(
      source,
      path,
      `${String(method).toUpperCase()} ${template} has no operationId: add one, for example listParticipants`,
    )
  if (!/^[a-z][A-Za-z0-9]*$/.test(id))
    fail(
      source,
      [...path, 'operationId'],
      `operationId ${id} must be in camelCase: it names a file`,
    )
  return id
}

/** `x-rate-limit` of the node at `path`. The document's default is at the path []. */
function readRateLimit(openapi: Source, path: Path): RateLimit {
  const { limit, window_seconds: windowSeconds } = mappingAt(openapi, [...path, 'x-rate-limit'])
  const problem = 'x-rate-limit must have limit and window_seconds: write two positive integers'
  if (![limit, windowSeconds].every((number) => Number.isInteger(number) && Number(number) > 0))
    fail(openapi, [...path, 'x-rate-limit'], problem)
  return { limit: Number(limit), windowSeconds: Number(windowSeconds) }
}

/** OpenAPI 3.0.3, Path Item Object: a parameter of the operation overrides that of its path with
 *  the same name and `in`. */
function readParameters(sources: Sources, { source, path }: Place): Parameter[] {
  const parameters = new Map<string, Parameter>()
  for (const owner of [path.slice(0, -1), path]) {
    const list = valueAt(source.root, [...owner, 'parameters'])
    for (const [index, value] of (Array.isArray(list) ? list : []).entries()) {
      const at = [...owner, 'parameters', index]
      const parameter = readParameter(sources, dereference(sources, { source, path: at, value }))
      parameters.set(`${parameter.in} ${parameter.name}`, parameter)
    }
  }
  return [...parameters.values()]
}

function readParameter(sources: Sources, placed: Located): Parameter {
  const {
    name,
    in: where,
    required = false,
    description = '',
    style,
    explode,
  } = (placed.value ?? {}) as Parameter
  return {
    name,
    in: where,
    place: placed,
    required,
    description,
    style,
    explode,
    schema: locateSchema(placed),
    example: readExample(sources, placed),
  }
}

const JSON_TYPE = 'application/json'
/** Files of rows: no program reads them as a whole. */
const FILE_TYPES = ['text/csv', 'application/x-ndjson']

function readBodies(sources: Sources, { source, path }: Place): MediaType[] {
  const at = [...path, 'requestBody']
  const value = valueAt(source.root, at)
  if (value === undefined) return []
  const body = dereference(sources, { source, path: at, value })
  const content = [...body.path, 'content']
  const types = Object.keys(mappingAt(body.source, content))
  if (types.join() !== JSON_TYPE && !types.every((type) => FILE_TYPES.includes(type)))
    fail(
      body.source,
      content,
      `a request body must be ${JSON_TYPE} only, or a file: ${FILE_TYPES.join(' or ')}`,
    )
  return readContent(sources, body)
}

/** Reads the object at the place, whose keys are statuses and whose values are Response Objects. */
export function readResponses(sources: Sources, { source, path }: Place): OperationResponse[] {
  return Object.keys(valueAt(source.root, path) ?? {}).map((status) =>
    readResponse(sources, { source, path: [...path, status] }, status),
  )
}

function readResponse(
  sources: Sources,
  { source, path }: Place,
  status: string,
): OperationResponse {
  if (!/^\d{3}$/.test(status))
    fail(source, path, `response ${status} must be one status code: declare each, for example 404`)
  const response = dereference(sources, { source, path, value: mappingAt(source, path) })
  return { status: Number(status), place: response, ...readResponseParts(sources, response) }
}

type ResponseParts = Pick<OperationResponse, 'description' | 'headers' | 'content'>

function readResponseParts(
  sources: Sources,
  response: Located<Record<string, unknown>>,
): ResponseParts {
  const cached = partsOfResponses.get(response.value)
  if (cached) return cached
  const { source, path, value } = response
  const headers = readHeaders(sources, { source, path: [...path, 'headers'] })
  const media = readContent(sources, response)
  const parts = {
    description: String(value.description ?? ''),
    headers: Object.fromEntries(headers.map((header) => [header.name.toLowerCase(), header])),
    content: Object.fromEntries(media.map((each) => [each.mediaType, each])),
  }
  partsOfResponses.set(value, parts)
  return parts
}

/** A cache by Response Object: most operations refer to the same ones. */
const partsOfResponses = new WeakMap<object, ResponseParts>()

/** Reads the object at the place, whose keys are names of headers and whose values are Header
 *  Objects. */
export function readHeaders(sources: Sources, { source, path }: Place): ResponseHeader[] {
  return Object.entries(valueAt(source.root, path) ?? {}).map(([name, value]) => {
    const header = dereference(sources, { source, path: [...path, name], value })
    const { required = false, description = '' } = (header.value ?? {}) as Partial<ResponseHeader>
    const example = readExample(sources, header)
    return { name, required, description, schema: locateSchema(header), example }
  })
}

/** The media types of `owner`, a request body or a response. */
function readContent(sources: Sources, owner: Place): MediaType[] {
  const content = valueAt(owner.source.root, [...owner.path, 'content'])
  return Object.entries(isObject(content) ? content : {}).map(([mediaType, value]) => {
    const place = { source: owner.source, path: [...owner.path, 'content', mediaType] }
    const located = { ...place, value }
    const [example, examples] = [readExample(sources, located), readExamples(sources, located)]
    return { mediaType, place, schema: locateSchema(place), example, examples }
  })
}

/** `example`. Without it, the first of `examples`. */
function readExample(sources: Sources, located: Located): unknown {
  const { example } = (located.value ?? {}) as { example?: unknown }
  return example ?? readExamples(sources, located)[0]?.value
}

function readExamples(sources: Sources, { source, path, value }: Located): NamedExample[] {
  const { examples = {} } = (value ?? {}) as { examples?: object }
  return Object.entries(examples).map(([name, entry]) => {
    const at = [...path, 'examples', name]
    const { value: named } = dereference(sources, { source, path: at, value: entry })
    return { summary: name, ...(named as Partial<NamedExample>) } as NamedExample
  })
}

/** The schema at the key below the place. Throws `ContractError` if there is none. */
export function locateSchema({ source, path }: Place, key = 'schema'): Located<Schema> {
  const at = [...path, key]
  return { source, path: at, value: mappingAt(source, at) as Schema }
}
