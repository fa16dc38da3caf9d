/** The contract as the documentation uses it: resources, operations and events that refer to each
 *  other. */
import { type Contract, readGeneratedContract } from '../../scripts/model/contract.ts'
import type { EventMessage } from '../../scripts/model/events.ts'
import { type Operation, type ResponseHeader, readHeaders } from '../../scripts/model/operations.ts'
import { recordTypeOf } from '../../scripts/model/paths.ts'
import { dereference } from '../../scripts/model/references.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import { type Source, valueAt } from '../../scripts/model/source.ts'

/** `method` is in upper case, `responses` are sorted by status. */
export interface ApiOperation extends Operation {
  resource: ApiResource
  events: ApiEvent[]
}

export interface ApiEvent extends EventMessage {
  resource: ApiResource | undefined
  /** The operations that emit the event. */
  triggers: ApiOperation[]
  /** The service itself emits the event, without a request. The event may also have `triggers`. */
  isFromSystem: boolean
  /** The operation that returns the event's record. */
  recordOperation: ApiOperation | undefined
}

/** A tag of openapi.yaml with its operations and events. */
export interface ApiResource {
  name: string
  /** For URLs, for example `job-applications`. */
  slug: string
  description: string
  operations: ApiOperation[]
  events: ApiEvent[]
}

interface ApiInfo {
  title: string
  version: string
  description: string
}

export interface Api extends ApiInfo {
  webhooks: ApiInfo
  resources: ApiResource[]
  operations: ApiOperation[]
  events: ApiEvent[]
  /** Component schemas of openapi.yaml by name, sorted. */
  schemas: Map<string, Schema>
  /** Component headers of openapi.yaml. */
  headers: ResponseHeader[]
  /** The target of the schema's reference, or the schema itself. */
  follow(schema: Schema): Schema
}

/** Reads generated/openapi.json and generated/asyncapi.json of `root`. */
export function readApi(root: string): Api {
  const contract = readGeneratedContract(root)
  const { openapi, asyncapi, sources } = contract
  const resources = listResources(contract)
  const operations = contract.operations.map((operation) => addOperation(resources, operation))
  const events = contract.events.map((event) => addEvent(contract, operations, event))
  const headers = readHeaders(sources, { source: openapi, path: ['components', 'headers'] })
  const schemas = readComponents(openapi, 'schemas') as Record<string, Schema>
  return {
    ...readInfo(openapi),
    webhooks: readInfo(asyncapi),
    resources,
    operations,
    events,
    schemas: new Map(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    headers,
    // References in generated files name the file of their target, so it does not matter that
    // `source` is always openapi.
    follow: (schema) => dereference(sources, { source: openapi, path: [], value: schema }).value,
  }
}

function readComponents({ root }: Source, kind: string): object {
  return (valueAt(root, ['components', kind]) ?? {}) as object
}

function readInfo({ root }: Source): ApiInfo {
  const { title, version, description } = (valueAt(root, ['info']) ?? {}) as Partial<ApiInfo>
  return { title: title ?? '', version: version ?? '', description: description ?? '' }
}

/** The most characters, of up to 4 bytes. A slug becomes the name of a file, of at most 255 bytes. */
const MAX_SLUG_LENGTH = 60

function listResources({ tags }: Contract): ApiResource[] {
  const slugs = new Set<string>()
  return tags.map(({ name, description }): ApiResource => {
    const words = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-') || 'operations'
    const base = [...words].slice(0, MAX_SLUG_LENGTH).join('')
    let slug = base
    for (let count = 2; slugs.has(slug); count += 1) slug = `${base}-${count}`
    slugs.add(slug)
    return { name, slug, description, operations: [], events: [] }
  })
}

function addOperation(resources: ApiResource[], operation: Operation): ApiOperation {
  const resource = resources.find(({ name }) => name === operation.tag)
  if (!resource) throw new Error(`${operation.id}: add its tag to the tags of openapi.yaml`)
  const added: ApiOperation = {
    ...operation,
    method: operation.method.toUpperCase(),
    responses: operation.responses.toSorted((a, b) => a.status - b.status),
    resource,
    events: [],
  }
  resource.operations.push(added)
  return added
}

function addEvent(
  { emittedBySystem }: Contract,
  operations: ApiOperation[],
  event: EventMessage,
): ApiEvent {
  const recordOperation = findGetOperation(operations, event.resourceType)
  const triggers = operations.filter(({ emits }) => emits.includes(event.type))
  const added: ApiEvent = {
    ...event,
    resource: recordOperation?.resource,
    triggers,
    isFromSystem: event.isOperational || emittedBySystem.includes(event.type),
    recordOperation,
  }
  recordOperation?.resource.events.push(added)
  for (const operation of triggers) operation.events.push(added)
  return added
}

/** The operation that returns one record of the type. */
export function findGetOperation(
  operations: ApiOperation[],
  recordType: string,
): ApiOperation | undefined {
  return operations.find(({ method, path }) => {
    const [, idParameter] = /\/\{([^/{}]+)\}$/.exec(path) ?? []
    return method === 'GET' && idParameter && recordTypeOf(idParameter) === recordType
  })
}
