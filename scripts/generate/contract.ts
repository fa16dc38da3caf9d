/** The contract as the outputs need it: operations and events, with the references between their parts followed. */
import { createHash } from 'node:crypto'
import {
  checkReferences,
  follow,
  inlineReferences,
  locate,
  type Place,
  type Placed,
  type Sources,
} from './references.ts'
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
  deprecation: Deprecation | null
}

/** Days, such as `2026-03-01`. */
export interface Deprecation {
  since: string
  /** When the operation may be gone. */
  sunset: string | null
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

/** A part of the contract that has to change: where it is, what is wrong with it and what to do. */
export interface Finding extends Place {
  problem: string
}

/** Reads openapi.yaml and asyncapi.yaml of `directory`. Throws `ContractError` for the first thing that cannot be generated from. */
export async function readContract(directory: string): Promise<Contract> {
  const openapi = await readSource(directory, 'openapi.yaml')
  const asyncapi = await readSource(directory, 'asyncapi.yaml')
  const contract = contractOf(openapi, asyncapi)
  for (const { source, path, problem } of [...repeatedIds(contract), ...emitsAtOdds(contract)])
    fail(source, path, problem)
  return contract
}

/** The contract of the two files, which may still be at odds with each other: `repeatedIds` and `emitsAtOdds` say where. */
export function contractOf(openapi: Source, asyncapi: Source): Contract {
  const sources = { 'openapi.yaml': openapi, 'asyncapi.yaml': asyncapi }
  for (const source of [openapi, asyncapi]) checkReferences(sources, source)
  const operations = readOperations(sources, openapi)
  const events = readEvents(sources, asyncapi)
  const hash = createHash('sha256')
    .update(openapi.text)
    .update('\0')
    .update(asyncapi.text)
    .digest('hex')
  return { sources, openapi: openapi.root, operations, events, hash }
}

function readOperations(sources: Sources, openapi: Source): Operation[] {
  return Object.entries(mapping(openapi, ['paths'])).flatMap(([path, item]) =>
    Object.keys(isObject(item) ? item : {})
      .filter((method) => METHODS.includes(method))
      .map((method) => readOperation(sources, openapi, path, method)),
  )
}

/** Operations with the operationId of an earlier one. */
export function repeatedIds({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, place }, index) => {
    const first = operations.findIndex((operation) => operation.id === id)
    if (first === index) return []
    const line = place.source.line(operations[first]?.place.path ?? [])
    return [
      {
        ...place,
        problem: `repeats the operationId ${id} of line ${line}: give each operation its own`,
      },
    ]
  })
}

function readOperation(sources: Sources, openapi: Source, path: string, method: string): Operation {
  const place = ['paths', path, method]
  const node = mapping(openapi, place)
  const id = node.operationId
  if (typeof id !== 'string')
    fail(
      openapi,
      place,
      `${method.toUpperCase()} ${path} has no operationId: give it one, such as listParticipants`,
    )
  if (!/^[a-z][A-Za-z0-9]*$/.test(id))
    fail(
      openapi,
      [...place, 'operationId'],
      `operationId ${id} names a file and a function: write it in camelCase`,
    )
  const responses = Object.keys(mapping(openapi, [...place, 'responses'])).map((status) =>
    readResponse(sources, openapi, place, status),
  )
  const [success, ...others] = responses.filter(({ status }) => status >= 200 && status < 300)
  if (!success || others.length > 0)
    fail(openapi, [...place, 'responses'], `operation ${id} must declare exactly one 2xx response`)
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
    deprecation: readDeprecation(openapi, place),
  }
}

function readDeprecation(openapi: Source, place: Path): Deprecation | null {
  const node = mapping(openapi, place)
  const day = (key: string): string | null => {
    const value = node[key]
    if (value === undefined) return null
    if (typeof value !== 'string' || !isDay(value))
      fail(openapi, [...place, key], `${key} must be a day, such as '2026-03-01'`)
    return value
  }
  const [since, sunset] = [day('x-deprecated-since'), day('x-sunset')]
  if (node.deprecated !== true) {
    if (since ?? sunset)
      fail(
        openapi,
        place,
        `operation ${node.operationId} has the dates of a deprecation: add deprecated: true`,
      )
    return null
  }
  if (since === null)
    fail(
      openapi,
      place,
      `operation ${node.operationId} is deprecated: add x-deprecated-since with the day`,
    )
  if (sunset !== null && sunset < since)
    fail(openapi, [...place, 'x-sunset'], 'x-sunset must not come before x-deprecated-since')
  return { since, sunset }
}

/** Is it a day that there is, written as `2026-03-01`? */
export function isDay(text: string): boolean {
  return (
    /^\d{4}-\d{2}-\d{2}$/.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.startsWith(text)
  )
}

function readRateLimit(openapi: Source, place: Path): Operation['rateLimit'] {
  const { limit, window_seconds: windowSeconds } = mapping(openapi, [...place, 'x-rate-limit'])
  return { limit: Number(limit), windowSeconds: Number(windowSeconds) }
}

/** OpenAPI 3.0.3, Path Item Object: an operation's parameters override its path's, by name and place. */
function readParameters(
  sources: Sources,
  openapi: Source,
  path: string,
  method: string,
): Parameter[] {
  const parameters = new Map<string, Parameter>()
  for (const place of [
    ['paths', path, 'parameters'],
    ['paths', path, method, 'parameters'],
  ]) {
    const list = (at(openapi.root, place) ?? []) as unknown[]
    for (const [index, value] of list.entries()) {
      const parameter = follow(sources, { source: openapi, path: [...place, index], value })
      const {
        name,
        in: where,
        required = false,
        style,
        explode,
      } = parameter.value as Omit<Parameter, 'schema'>
      parameters.set(`${where} ${name}`, {
        name,
        in: where,
        required,
        style,
        explode,
        schema: schemaOf(parameter),
      })
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
  const { headers = {}, content = {} } = response.value as {
    headers?: Record<string, unknown>
    content?: Record<string, unknown>
  }
  const header = ([name, value]: [string, unknown]) => {
    const placed = follow(sources, {
      source: response.source,
      path: [...response.path, 'headers', name],
      value,
    })
    const { required = false } = placed.value as { required?: boolean }
    return [name.toLowerCase(), { required, schema: schemaOf(placed) }]
  }
  const body = (mediaType: string) => [
    mediaType,
    schemaOf({ ...response, path: [...response.path, 'content', mediaType] }),
  ]
  return {
    status: Number(status),
    place: response,
    headers: Object.fromEntries(Object.entries(headers).map(header)),
    content: Object.fromEntries(Object.keys(content).map(body)),
  }
}

function readEvents(sources: Sources, asyncapi: Source): Event[] {
  const messages = ['components', 'messages']
  return Object.keys(mapping(asyncapi, messages)).map((name) =>
    readEvent(sources, asyncapi, [...messages, name]),
  )
}

function readEvent(sources: Sources, asyncapi: Source, path: Path): Event {
  const node = mapping(asyncapi, path)
  const type = node.name
  if (typeof type !== 'string')
    fail(asyncapi, path, 'a message must have a name: it is the event type')
  const example = at(node, ['examples', 0, 'payload'])
  if (example === undefined) fail(asyncapi, path, `message ${type} must have an example`)
  const payload = schemaOf({ source: asyncapi, path, value: node }, 'payload')
  if (!payload.value.$ref)
    fail(
      asyncapi,
      payload.path,
      `the payload of ${type} must be a $ref to a component: its name becomes the name of a type`,
    )
  const { properties = {} } = inlineReferences(sources, payload)
  if (properties.event_type?.const !== type)
    fail(asyncapi, payload.path, `the event_type of this payload must be const: ${type}`)
  const resourceType = properties.resource?.properties?.type?.const
  if (typeof resourceType !== 'string')
    fail(asyncapi, payload.path, `the resource.type of ${type} must be a const`)
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

/** Where the two files disagree on what is emitted, in both directions. */
export function emitsAtOdds({ sources, operations, events }: Contract): Finding[] {
  const openapi = sources['openapi.yaml'] as Source
  const bySystem = (at(openapi.root, ['x-emitted-by-system']) ?? []) as string[]
  const emitted = new Set([...bySystem, ...operations.flatMap(({ emits }) => emits)])
  const check = (types: string[], path: Path, who: string): Finding[] =>
    types.flatMap((type) => {
      const event = events.find((candidate) => candidate.type === type)
      if (event?.isSubscribable) return []
      const what = event
        ? 'which asyncapi.yaml says is not x-subscribable: correct one of them'
        : 'which asyncapi.yaml does not have: add the message there or correct the name'
      return [{ source: openapi, path, problem: `${who} emits ${type}, ${what}` }]
    })
  const silent = events.filter(({ type, isSubscribable }) => isSubscribable && !emitted.has(type))
  return [
    ...check(bySystem, ['x-emitted-by-system'], 'the system'),
    ...operations.flatMap(({ id, place, emits }) =>
      check(emits, [...place.path, 'x-emits'], `operation ${id}`),
    ),
    ...silent.map(({ type, payload }) => ({
      ...payload,
      problem: `nothing emits ${type}: add it to the x-emits of an operation, or to x-emitted-by-system, in openapi.yaml`,
    })),
  ]
}

function schemaOf({ source, path }: Placed, key = 'schema'): Placed<Schema> {
  const place = [...path, key]
  return { source, path: place, value: mapping(source, place) as Schema }
}

/** The mapping at `path`. Fails if there is something else, or nothing. */
function mapping(source: Source, path: Path): Record<string, unknown> {
  const value = at(source.root, path)
  if (!isObject(value) || Array.isArray(value))
    fail(source, path, `must have a mapping at ${path.join('.')}`)
  return value
}
