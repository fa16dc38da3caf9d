/** The contract for the documentation: operations and events by resource, with links between them. */
import { type Contract, readGeneratedContract } from '../../scripts/model/contract.ts'
import type { EventMessage } from '../../scripts/model/events.ts'
import {
  type Operation,
  type RateLimit,
  type ResponseHeader,
  readRateLimit,
  readResponseHeader,
} from '../../scripts/model/operations.ts'
import { dereference } from '../../scripts/model/references.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import { mappingAt, type Source, valueAt } from '../../scripts/model/source.ts'

/** `method` is in upper case, `responses` are sorted by status. */
export interface ApiOperation extends Operation {
  resource: ApiResource
  events: ApiEvent[]
}

export interface ApiEvent extends EventMessage {
  resource: ApiResource | undefined
  /** The operations that emit it. */
  triggers: ApiOperation[]
  /** The service also emits it without a request. */
  isFromSystem: boolean
  /** The operation that fetches the event's record. */
  fetch: ApiOperation | undefined
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
  rateLimit: RateLimit
  resources: ApiResource[]
  operations: ApiOperation[]
  events: ApiEvent[]
  /** Component schemas of openapi.yaml by name. */
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
  const resources = contract.tags.map(({ name, description }): ApiResource => {
    const slug = name.toLowerCase().replaceAll(' ', '-')
    return { name, slug, description, operations: [], events: [] }
  })
  const operations = contract.operations.map((operation) => addOperation(resources, operation))
  const events = contract.events.map((event) => addEvent(contract, operations, event))
  const components = mappingAt(openapi, ['components'])
  const headers = Object.entries(components.headers as object).map(([name, value]) =>
    readResponseHeader(sources, name, {
      source: openapi,
      path: ['components', 'headers', name],
      value,
    }),
  )
  return {
    ...readInfo(openapi),
    webhooks: readInfo(asyncapi),
    rateLimit: readRateLimit(openapi, []),
    resources,
    operations,
    events,
    schemas: new Map(Object.entries(components.schemas as Record<string, Schema>)),
    headers,
    // Generated references name their file, so the source that they are followed from does not matter.
    follow: (schema) => dereference(sources, { source: openapi, path: [], value: schema }).value,
  }
}

function readInfo({ root }: Source): ApiInfo {
  return valueAt(root, ['info']) as ApiInfo
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
  const fetch = operations.find(
    ({ method, path }) => method === 'GET' && path.endsWith(`/{${event.resourceType}}`),
  )
  const triggers = operations.filter(({ emits }) => emits.includes(event.type))
  const isFromSystem = emittedBySystem.includes(event.type)
  const added: ApiEvent = { ...event, resource: fetch?.resource, triggers, isFromSystem, fetch }
  fetch?.resource.events.push(added)
  for (const operation of triggers) operation.events.push(added)
  return added
}
