/** generated/openapi-3.1.json: openapi.yaml as OpenAPI 3.1, with a `webhooks` section from
 *  asyncapi.yaml. Generators that read only OpenAPI need that section for the types of
 *  deliveries. */
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import { dereference } from '../model/references.ts'
import { mapValues, type Schema, toJsonSchema } from '../model/schema.ts'
import { isObject, type Sources } from '../model/source.ts'
import { type Schemas, withDistinctFields, withRules } from './rules-31.ts'
import { listPayloadSchemas } from './types.ts'

const WEBHOOKS_TAG = {
  name: 'Webhook events',
  description: 'Deliveries of events to your endpoint.',
}

export function toOpenapi31(contract: Contract): object {
  const {
    openapi: _version,
    tags,
    paths = {},
    components,
    ...others
  } = convertNode(contract.openapi.root) as Record<string, Record<string, object>>
  const webhooks = Object.fromEntries(
    contract.events.map((event) => [event.type, toWebhook(contract.sources, event)]),
  )
  const schemas = withRules(contract, { ...listPayloadSchemas(contract), ...components?.schemas })
  return {
    openapi: '3.1.0',
    ...others,
    tags: [...((tags ?? []) as object[]), WEBHOOKS_TAG],
    paths: mapValues(paths, (item) => withListRules(item, schemas)),
    webhooks,
    components: { ...components, schemas },
  }
}

/** Adds the rule of `withDistinctFields` to the parameter `sort` of the path's GET. */
function withListRules(item: object, schemas: Schemas): object {
  const { get } = item as { get?: { parameters?: object[] } }
  if (!get?.parameters) return item
  const parameters = get.parameters.map((parameter) => withDistinctFields(parameter, schemas))
  return { ...item, get: { ...get, parameters } }
}

/** A copy of the document's node with its schemas in JSON Schema 2020-12. */
function convertNode(node: unknown, key = ''): unknown {
  if (Array.isArray(node)) return node.map((item) => convertNode(item))
  if (!isObject(node)) return node
  if (EXAMPLES.has(key)) return node
  if (key === 'schema') return toJsonSchema(node)
  if (key === 'schemas') return mapValues(node as Record<string, Schema>, convertSchema)
  return mapValues(node, convertNode)
}

/** Keeps the discriminator, which `toJsonSchema` drops: OpenAPI 3.1 has discriminators. */
function convertSchema(schema: Schema): Schema {
  const { discriminator } = schema
  return { ...toJsonSchema(schema), ...(discriminator !== undefined && { discriminator }) }
}

const EXAMPLES = new Set(['example', 'examples'])

/** The request that delivers the event, as an OpenAPI 3.1 Path Item Object. */
function toWebhook(sources: Sources, event: EventMessage): object {
  const headers = dereference(sources, event.headers)
  const declared = Object.entries(headers.value.properties ?? {}).filter(
    // OpenAPI 3.1, Parameter Object: `Content-Type` is ignored as a parameter.
    ([name]) => name !== 'content-type',
  )
  return {
    post: {
      operationId: `on${event.payloadName}`,
      tags: [WEBHOOKS_TAG.name],
      summary: event.summary,
      description: event.description,
      // Deliveries have no credentials: the receiver verifies the signature in the headers.
      security: [],
      parameters: declared.map(([name, { description, ...schema }]) => ({
        name,
        in: 'header',
        required: headers.value.required?.includes(name) ?? false,
        description,
        schema,
      })),
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { $ref: `#/components/schemas/${event.payloadName}` },
            example: event.example,
          },
        },
      },
      responses: {
        '2XX': { description: 'You have received the event. There is no further attempt.' },
        default: { description: 'The attempt has failed. The next one comes later.' },
      },
    },
  }
}
