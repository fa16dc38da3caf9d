/** What the two contracts say, as the pages need it: references followed, operations and events linked to each other. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A Schema Object of OpenAPI 3.0 or AsyncAPI 3.0, as far as pages show it. `$ref` begins with the file, such as `openapi.json#/…`. */
export interface Schema {
  $ref?: string
  type?: string
  format?: string
  description?: string
  nullable?: boolean
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  uniqueItems?: boolean
  deprecated?: boolean
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description: string
  schema: Schema
  example?: unknown
}

export interface Header {
  name: string
  required: boolean
  description: string
  schema: Schema
  example?: unknown
}

export interface Response {
  status: number
  description: string
  headers: Header[]
  content: { mediaType: string; schema: Schema; example?: unknown }[]
}

export interface Operation {
  id: string
  /** In upper case. */
  method: string
  path: string
  summary: string
  description: string
  deprecation: Deprecation | undefined
  permission: string | undefined
  rateLimit: RateLimit
  resource: Resource
  parameters: Parameter[]
  body: { schema: Schema; example?: unknown } | undefined
  /** By rising status. */
  responses: Response[]
  emits: Event[]
}

/** Days, such as `2027-01-31`. */
export interface Deprecation {
  since: string | undefined
  /** From when on it may be gone, if that is known. */
  sunset: string | undefined
}

export interface RateLimit {
  limit: number
  windowSeconds: number
}

export interface Event {
  type: string
  summary: string
  description: string
  deprecation: Deprecation | undefined
  isSubscribable: boolean
  resource: Resource | undefined
  headers: Schema
  payload: Schema
  example: unknown
  /** The operations that emit it. */
  triggers: Operation[]
  /** Is it emitted without a request, too? */
  isFromSystem: boolean
  /** The operation that fetches the record concerned. */
  fetch: Operation | undefined
}

/** A tag of openapi.yaml, with what belongs to it. */
export interface Resource {
  name: string
  /** For addresses, such as `job-applications`. */
  slug: string
  description: string
  operations: Operation[]
  events: Event[]
}

export interface Api {
  title: string
  version: string
  description: string
  rateLimit: RateLimit
  webhooks: { title: string; version: string; description: string }
  resources: Resource[]
  operations: Operation[]
  events: Event[]
  /** The components of openapi.yaml. */
  schemas: Map<string, Schema>
  headers: Header[]
  /** The schema that a reference leads to, or the schema itself. */
  follow(schema: Schema): Schema
}

// biome-ignore lint/suspicious/noExplicitAny: the documents were checked when generated/ was written.
type Node = any

const METHODS = ['get', 'put', 'post', 'patch', 'delete']

/** Reads generated/openapi.json and generated/asyncapi.json of `root`. */
export function readApi(root: string): Api {
  const read = (file: string): Node =>
    placeReferences(JSON.parse(readFileSync(join(root, 'generated', file), 'utf8')), file)
  const documents: Record<string, Node> = {
    'openapi.json': read('openapi.json'),
    'asyncapi.json': read('asyncapi.json'),
  }
  const openapi = documents['openapi.json']
  const asyncapi = documents['asyncapi.json']

  const follow = (node: Node): Node => {
    if (typeof node?.$ref !== 'string') return node
    const [file = '', pointer = ''] = node.$ref.split('#')
    const steps = pointer.split('/').slice(1)
    return follow(
      steps.reduce(
        (found: Node, step: string) => found[step.replaceAll('~1', '/').replaceAll('~0', '~')],
        documents[file],
      ),
    )
  }

  const resources: Resource[] = openapi.tags.map(({ name, description = '' }: Node) => ({
    name,
    slug: name.toLowerCase().replaceAll(' ', '-'),
    description,
    operations: [],
    events: [],
  }))
  const readHeader = (name: string, node: Node): Header => {
    const { required = false, description = '', schema, example } = follow(node)
    return { name, required, description, schema, example }
  }
  const readResponse = ([status, node]: [string, Node]): Response => {
    const { description, headers = {}, content = {} } = follow(node)
    return {
      status: Number(status),
      description,
      headers: Object.entries(headers).map(([name, header]) => readHeader(name, header)),
      content: Object.entries(content).map(([mediaType, media]) => ({
        mediaType,
        ...readMedia(media),
      })),
    }
  }
  const readOperation = (path: string, item: Node, method: string): Operation => {
    const node = item[method]
    const resource = resources.find(({ name }) => name === node.tags?.[0])
    if (!resource)
      throw new Error(`${node.operationId} has no tag that openapi.yaml describes in tags`)
    const body = follow(node.requestBody)
    const operation: Operation = {
      id: node.operationId,
      method: method.toUpperCase(),
      path,
      summary: node.summary ?? node.operationId,
      description: node.description ?? '',
      deprecation: readDeprecation(node),
      permission: node['x-permission'],
      rateLimit: readRateLimit(node['x-rate-limit'] ?? openapi['x-rate-limit']),
      resource,
      parameters: parametersOf(
        [...(item.parameters ?? []), ...(node.parameters ?? [])].map(follow),
      ),
      body: body && readMedia(body.content['application/json']),
      responses: Object.entries(node.responses)
        .map(readResponse)
        .sort((a, b) => a.status - b.status),
      emits: [],
    }
    resource.operations.push(operation)
    return operation
  }
  const operations = Object.entries<Node>(openapi.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => readOperation(path, item, method)),
  )

  const fromSystem: string[] = openapi['x-emitted-by-system'] ?? []
  const events = Object.values<Node>(asyncapi.components.messages).map((node): Event => {
    const payload = follow(node.payload)
    const resourceType = follow(follow(payload.properties.resource).properties.type).const
    const fetch = operations.find(
      ({ method, path }) => method === 'GET' && path.endsWith(`/{${resourceType}}`),
    )
    const event: Event = {
      type: node.name,
      summary: node.summary ?? '',
      description: node.description ?? '',
      deprecation: readDeprecation(node),
      isSubscribable: node['x-subscribable'] !== false,
      resource: fetch?.resource,
      headers: node.headers,
      payload: node.payload,
      example: node.examples[0].payload,
      triggers: [],
      isFromSystem: fromSystem.includes(node.name),
      fetch,
    }
    fetch?.resource.events.push(event)
    return event
  })
  for (const operation of operations) {
    const emitted: string[] =
      openapi.paths[operation.path][operation.method.toLowerCase()]['x-emits'] ?? []
    operation.emits = events.filter(({ type }) => emitted.includes(type))
    for (const event of operation.emits) event.triggers.push(operation)
  }

  return {
    title: openapi.info.title,
    version: openapi.info.version,
    description: openapi.info.description,
    rateLimit: readRateLimit(openapi['x-rate-limit']),
    webhooks: asyncapi.info,
    resources,
    operations,
    events,
    schemas: new Map(Object.entries<Schema>(openapi.components.schemas)),
    headers: Object.entries(openapi.components.headers).map(([name, node]) =>
      readHeader(name, node),
    ),
    follow,
  }
}

/** OpenAPI 3.0.3, Path Item Object: an operation's parameters, which come last, override its path's, by name and place. */
function parametersOf(nodes: Node[]): Parameter[] {
  const parameters = nodes.map((node) => ({
    ...node,
    required: node.required === true,
    description: node.description ?? '',
  }))
  return [
    ...new Map(
      parameters.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter]),
    ).values(),
  ]
}

function readMedia(media: Node): { schema: Schema; example?: unknown } {
  const [first] = Object.values<Node>(media.examples ?? {})
  return { schema: media.schema, example: media.example ?? first?.value }
}

/** AsyncAPI has no `deprecated`: there, the day alone says it. */
function readDeprecation(node: Node): Deprecation | undefined {
  const since = node['x-deprecated-since']
  return node.deprecated === true || since !== undefined
    ? { since, sunset: node['x-sunset'] }
    : undefined
}

function readRateLimit({ limit, window_seconds: windowSeconds }: Node): RateLimit {
  return { limit, windowSeconds }
}

/** The document, with each reference beginning with the name of the file that it leads into. */
function placeReferences(node: Node, file: string): Node {
  if (Array.isArray(node)) return node.map((item) => placeReferences(item, file))
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, placeReferences(value, file)]),
  )
  if (typeof node.$ref === 'string')
    copy.$ref = node.$ref.startsWith('#') ? file + node.$ref : node.$ref.replace(/^\.\//, '')
  return copy
}
