/** The contract as the outputs need it: operations and events, with the references between their parts followed. */
import { createHash } from 'node:crypto'
import { checkReferences, follow, inlineReferences, locate, type Place, type Placed, type Sources } from './references.ts'
import { type Schema, toJsonSchema } from './schema.ts'
import { at, fail, isObject, type Path, readSource, type Source } from './source.ts'

export interface Contract {
  sources: Sources
  /** The document of openapi.yaml. */
  openapi: unknown
  operations: Operation[]
  /** In the order of asyncapi.yaml. */
  events: Event[]
  /** SHA-256 of both files, hexadecimal. */
  hash: string
}

export interface Operation {
  id: string
  place: Place
  /** In lower case. */
  method: string
  /** The template, such as `/public/v1/participants/{participant}`. */
  path: string
  tag: string
  summary: string
  isPublic: boolean
  permission: string | null
  rateLimit: { limit: number; windowSeconds: number }
  parameters: Parameter[]
  body: Placed<Schema> | null
  responses: Response[]
  /** The one of `responses` that is 2xx. */
  success: Response
  emits: string[]
}

export interface Parameter {
  name: string
  in: string
  required: boolean
  style?: string
  explode?: boolean
  schema: Placed<Schema>
}

export interface Response {
  status: number
  place: Place
  /** By lower-case name. */
  headers: Record<string, { required: boolean; schema: Placed<Schema> }>
  /** By media type. */
  content: Record<string, Placed<Schema>>
}

export interface Event {
  type: string
  summary: string
  description: string
  /** Emitted by what happens, and on offer for subscription. The others are sent to one webhook, because somebody asks for it. */
  isSubscribable: boolean
  resourceType: string
  /** The name of the payload's component schema. */
  payloadName: string
  payload: Placed<Schema>
  headers: Placed<Schema>
  /** Of `data`, as JSON Schema draft 7 without references. */
  dataSchema: Schema
  example: unknown
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** Reads openapi.yaml and asyncapi.yaml of `directory`. Throws `ContractError` for the first thing that cannot be generated from. */
export async function readContract(directory: string): Promise<Contract> {
  const openapi = await readSource(directory, 'openapi.yaml')
  const asyncapi = await readSource(directory, 'asyncapi.yaml')
  const sources = { 'openapi.yaml': openapi, 'asyncapi.yaml': asyncapi }
  for (const source of [openapi, asyncapi]) checkReferences(sources, source)
  const operations = readOperations(sources, openapi)
  const events = readEvents(sources, asyncapi)
  checkEmits(openapi, asyncapi, operations, events)
  const hash = createHash('sha256').update(openapi.text).update('\0').update(asyncapi.text).digest('hex')
  return { sources, openapi: openapi.root, operations, events, hash }
}

function readOperations(sources: Sources, openapi: Source): Operation[] {
  const operations = new Map<string, Operation>()
  for (const [path, item] of Object.entries(mapping(openapi, ['paths']))) {
    for (const method of Object.keys(isObject(item) ? item : {})) {
      if (!METHODS.includes(method)) continue
      const operation = readOperation(sources, openapi, path, method)
      const first = operations.get(operation.id)
      if (first) {
        const line = openapi.line(first.place.path)
        fail(openapi, ['paths', path, method], `repeats the operationId ${operation.id} of line ${line}: give each operation its own`)
      }
      operations.set(operation.id, operation)
    }
  }
  return [...operations.values()]
}

function readOperation(sources: Sources, openapi: Source, path: string, method: string): Operation {
  const place = ['paths', path, method]
  const node = mapping(openapi, place)
  const id = node.operationId
  if (typeof id !== 'string')
    fail(openapi, place, `${method.toUpperCase()} ${path} has no operationId: give it one, such as listParticipants`)
  if (!/^[a-z][A-Za-z0-9]*$/.test(id))
    fail(openapi, [...place, 'operationId'], `operationId ${id} names a file and a function: write it in camelCase`)
  const responses = Object.keys(mapping(openapi, [...place, 'responses'])).map((status) => readResponse(sources, openapi, place, status))
  const [success, ...others] = responses.filter(({ status }) => status >= 200 && status < 300)
  if (!success || others.length > 0) fail(openapi, [...place, 'responses'], `operation ${id} must declare exactly one 2xx response`)
  const security = node.security ?? at(openapi.root, ['security']) ?? []
  return {
    id,
    place: { source: openapi, path: place },
    method,
    path,
    tag: String(at(node, ['tags', 0]) ?? ''),
    summary: String(node.summary ?? ''),
    isPublic: Array.isArray(security) && security.length === 0,
    permission: (node['x-permission'] as string | undefined) ?? null,
    rateLimit: readRateLimit(openapi, node['x-rate-limit'] ? place : []),
    parameters: readParameters(sources, openapi, path, method),
    body: readBody(sources, openapi, place),
    responses,
    success,
    emits: (node['x-emits'] as string[] | undefined) ?? [],
  }
}

function readRateLimit(openapi: Source, place: Path): Operation['rateLimit'] {
  const { limit, window_seconds: windowSeconds } = mapping(openapi, [...place, 'x-rate-limit'])
  return { limit: Number(limit), windowSeconds: Number(windowSeconds) }
}

/** OpenAPI 3.0.3, Path Item Object: an operation's parameters override its path's, by name and place. */
function readParameters(sources: Sources, openapi: Source, path: string, method: string): Parameter[] {
  const parameters = new Map<string, Parameter>()
  for (const place of [
    ['paths', path, 'parameters'],
    ['paths', path, method, 'parameters'],
  ]) {
    const list = (at(openapi.root, place) ?? []) as unknown[]
    for (const [index, value] of list.entries()) {
      const parameter = follow(sources, { source: openapi, path: [...place, index], value })
      const { name, in: where, required = false, style, explode } = parameter.value as Omit<Parameter, 'schema'>
      parameters.set(`${where} ${name}`, { name, in: where, required, style, explode, schema: schemaOf(parameter) })
    }
  }
  return [...parameters.values()]
}

function readBody(sources: Sources, openapi: Source, place: Path): Placed<Schema> | null {
  const path = [...place, 'requestBody']
  const value = at(openapi.root, path)
  if (value === undefined) return null
  const body = follow(sources, { source: openapi, path, value })
  const content = { ...body, path: [...body.path, 'content'] }
  if (Object.keys(mapping(content.source, content.path)).join() !== 'application/json')
    fail(content.source, content.path, 'a request body must be application/json and nothing else')
  return schemaOf({ ...content, path: [...content.path, 'application/json'] })
}

function readResponse(sources: Sources, openapi: Source, place: Path, status: string): Response {
  const path = [...place, 'responses', status]
  if (!/^\d{3}$/.test(status)) fail(openapi, path, `response ${status} must be one status code`)
  const response = follow(sources, { source: openapi, path, value: at(openapi.root, path) })
  const { headers = {}, content = {} } = response.value as { headers?: Record<string, unknown>; content?: Record<string, unknown> }
  const header = ([name, value]: [string, unknown]) => {
    const placed = follow(sources, { source: response.source, path: [...response.path, 'headers', name], value })
    const { required = false } = placed.value as { required?: boolean }
    return [name.toLowerCase(), { required, schema: schemaOf(placed) }]
  }
  const body = (mediaType: string) => [mediaType, schemaOf({ ...response, path: [...response.path, 'content', mediaType] })]
  return {
    status: Number(status),
    place: response,
    headers: Object.fromEntries(Object.entries(headers).map(header)),
    content: Object.fromEntries(Object.keys(content).map(body)),
  }
}

function readEvents(sources: Sources, asyncapi: Source): Event[] {
  const messages = ['components', 'messages']
  return Object.keys(mapping(asyncapi, messages)).map((name) => readEvent(sources, asyncapi, [...messages, name]))
}

function readEvent(sources: Sources, asyncapi: Source, path: Path): Event {
  const node = mapping(asyncapi, path)
  const type = node.name
  if (typeof type !== 'string') fail(asyncapi, path, 'a message must have a name: it is the event type')
  const example = at(node, ['examples', 0, 'payload'])
  if (example === undefined) fail(asyncapi, path, `message ${type} must have an example`)
  const payload = schemaOf({ source: asyncapi, path, value: node }, 'payload')
  if (!payload.value.$ref)
    fail(asyncapi, payload.path, `the payload of ${type} must be a $ref to a component: its name becomes the name of a type`)
  const { properties = {} } = inlineReferences(sources, payload)
  if (properties.event_type?.const !== type) fail(asyncapi, payload.path, `the event_type of this payload must be const: ${type}`)
  const resourceType = properties.resource?.properties?.type?.const
  if (typeof resourceType !== 'string') fail(asyncapi, payload.path, `the resource.type of ${type} must be a const`)
  return {
    type,
    summary: String(node.summary ?? ''),
    description: String(node.description ?? '').trim(),
    isSubscribable: node['x-subscribable'] !== false,
    resourceType,
    payloadName: String(locate(sources, asyncapi, payload.value.$ref).path.at(-1)),
    payload,
    headers: schemaOf({ source: asyncapi, path, value: node }, 'headers'),
    dataSchema: toJsonSchema(properties.data ?? {}),
    example,
  }
}

/** The two files must agree on what is emitted, in both directions. */
function checkEmits(openapi: Source, asyncapi: Source, operations: Operation[], events: Event[]): void {
  const subscribable = events.filter(({ isSubscribable }) => isSubscribable)
  const known = new Set(subscribable.map(({ type }) => type))
  const bySystem = (at(openapi.root, ['x-emitted-by-system']) ?? []) as string[]
  const check = (types: string[], place: Path, who: string) => {
    const unknown = types.find((type) => !known.has(type))
    if (unknown)
      fail(
        openapi,
        place,
        events.some(({ type }) => type === unknown)
          ? `${who} emits ${unknown}, which asyncapi.yaml says is not x-subscribable: correct one of them`
          : `${who} emits ${unknown}, which asyncapi.yaml does not have: add the message there or correct the name`,
      )
  }
  check(bySystem, ['x-emitted-by-system'], 'the system')
  for (const { id, place, emits } of operations) check(emits, [...place.path, 'x-emits'], `operation ${id}`)
  const emitted = new Set([...bySystem, ...operations.flatMap(({ emits }) => emits)])
  const silent = subscribable.find(({ type }) => !emitted.has(type))
  if (silent)
    fail(
      asyncapi,
      silent.payload.path,
      `nothing emits ${silent.type}: add it to the x-emits of an operation, or to x-emitted-by-system, in openapi.yaml`,
    )
}

function schemaOf({ source, path }: Placed, key = 'schema'): Placed<Schema> {
  const place = [...path, key]
  return { source, path: place, value: mapping(source, place) as Schema }
}

/** The mapping at `path`. Fails if there is something else, or nothing. */
function mapping(source: Source, path: Path): Record<string, unknown> {
  const value = at(source.root, path)
  if (!isObject(value) || Array.isArray(value)) fail(source, path, `must have a mapping at ${path.join('.')}`)
  return value
}
