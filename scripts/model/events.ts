import { type Deprecation, readDeprecation } from './deprecations.ts'
import { locateSchema } from './operations.ts'
import { dereference, inlineReferences, locate } from './references.ts'
import { type Schema, toJsonSchema } from './schema.ts'
import {
  fail,
  type Located,
  mappingAt,
  type Place,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

/** A Message Object of asyncapi.yaml. */
export interface EventMessage {
  type: string
  place: Place
  summary: string
  description: string
  /** False for messages that the service sends to one webhook on request, for example a test
   *  event. */
  isSubscribable: boolean
  /** Webhooks subscribe to it by its name alone: `*` does not include it. It is no stored event. */
  isOperational: boolean
  resourceType: string
  deprecation: Deprecation | null
  /** Name of the payload's component schema. */
  payloadName: string
  payload: Located<Schema>
  headers: Located<Schema>
  /** Schema of `data`: JSON Schema draft 7 without references. */
  dataSchema: Schema
  example: unknown
}

/** In the order of asyncapi.yaml. */
export function readEvents(sources: Sources, asyncapi: Source): EventMessage[] {
  const messages = ['components', 'messages']
  return Object.keys(mappingAt(asyncapi, messages)).map((name) =>
    readEvent(sources, { source: asyncapi, path: [...messages, name] }),
  )
}

function readEvent(sources: Sources, place: Place): EventMessage {
  const { source: asyncapi, path } = place
  const node = mappingAt(asyncapi, path)
  const type = node.name
  if (typeof type !== 'string')
    fail(asyncapi, path, 'a message must have a name: it is the event type')
  if (!/^[\w.-]+$/.test(type))
    fail(asyncapi, [...path, 'name'], `the event type ${type} must be like task.created`)
  const example = valueAt(node, ['examples', 0, 'payload'])
  if (example === undefined) fail(asyncapi, path, `message ${type} must have an example`)
  const payload = locateSchema(place, 'payload')
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
  const payloadName = String(locate(sources, asyncapi, payload.value.$ref).path.at(-1))
  if (!/^[A-Z]\w*$/.test(payloadName))
    fail(asyncapi, payload.path, `${payloadName} must be like TaskCreated: it names a type`)
  return {
    type,
    place,
    summary: String(node.summary ?? ''),
    description: String(node.description ?? '').trim(),
    isSubscribable: (node['x-subscribable'] ?? true) === true,
    isOperational: node['x-subscribable'] === 'by_name',
    resourceType,
    // AsyncAPI has no `deprecated`: the date alone deprecates a message.
    deprecation: readDeprecation(place, type, 'x-deprecated-since' in node),
    payloadName,
    payload,
    headers: locateSchema(place, 'headers'),
    dataSchema: toJsonSchema(properties.data ?? {}),
    example,
  }
}

/** The messages of all channels of asyncapi.yaml. */
export function listSentMessages(sources: Sources, asyncapi: Source): unknown[] {
  const channels = (valueAt(asyncapi.root, ['channels']) ?? {}) as Record<string, unknown>
  return Object.entries(channels).flatMap(([name, channel]) =>
    Object.entries((valueAt(channel, ['messages']) ?? {}) as object).map(([key, value]) => {
      const path = ['channels', name, 'messages', key]
      return dereference(sources, { source: asyncapi, path, value }).value
    }),
  )
}
