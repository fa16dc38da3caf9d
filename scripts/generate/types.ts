/** TypeScript types of both files, by openapi-typescript. */
import type { OpenAPI3, OpenAPITSOptions } from 'openapi-typescript'
import { Refused } from '../../errors.ts'
import type { Contract } from './contract.ts'
import { locate, type Placed, renameReferences } from './references.ts'
import { type Schema, toJsonSchema } from './schema.ts'
import { fail } from './source.ts'
import { HEADER, union } from './text.ts'

/** generated/openapi.ts: `paths`, `components`, `operations`, and each component schema by its name. */
export async function openapi(contract: Contract): Promise<string> {
  return HEADER + (await typesOf(contract.openapi as OpenAPI3))
}

/** generated/client.ts: the same as those who send requests see it: what has a default can be left out. */
export async function client(contract: Contract): Promise<string> {
  return HEADER + (await typesOf(contract.openapi as OpenAPI3, { defaultNonNullable: false }))
}

/** generated/asyncapi.ts: `EventType` and `DeliveredType`, `EventPayloads`, `EventData`, and each payload by its name. */
export async function asyncapi(contract: Contract): Promise<string> {
  // openapi-typescript reads no AsyncAPI, but it reads schemas: an OpenAPI document of nothing else.
  const document = {
    openapi: '3.1.0',
    info: { title: '', version: '' },
    paths: {},
    components: { schemas: payloadSchemas(contract) },
  }
  const types = await typesOf(document as unknown as OpenAPI3, { arrayLength: true }, [
    'paths',
    'webhooks',
    'operations',
    '$defs',
  ])
  const members = contract.events
    .map(({ type, payloadName }) => `\n  '${type}': ${payloadName}`)
    .join('')
  return `${HEADER}${types}
/** What happens, and what webhooks can be subscribed to. */
export type EventType =${union(contract.events.filter(({ isSubscribable }) => isSubscribable).map(({ type }) => type))}

/** The \`event_type\` of a delivery: those, and what is sent to one webhook because somebody asks for it. */
export type DeliveredType = keyof EventPayloads

/** The whole body of a delivery. */
export interface EventPayloads {${members}
}

/** The \`data\` of a delivery's body. */
export type EventData = { [T in EventType]: EventPayloads[T]['data'] }
`
}

/** The payloads and all that they refer to, by name, with local references. */
function payloadSchemas({ sources, events }: Contract): Record<string, Schema> {
  const schemas: Record<string, Schema> = {}
  const origins = new Map<string, Placed<Schema>>()
  const add = (target: Placed<Schema>): string => {
    const name = String(target.path.at(-1))
    const origin = origins.get(name)
    if (origin && origin.value !== target.value)
      fail(
        target.source,
        target.path,
        `${name} is also at line ${origin.source.line(origin.path)} of ${origin.source.file}: rename one of them`,
      )
    if (!origin) {
      origins.set(name, target) // before what it refers to: it may contain itself
      schemas[name] = toJsonSchema(renameReferences(sources, target, add))
    }
    return `#/components/schemas/${name}`
  }
  for (const { payload } of events)
    add(locate(sources, payload.source, payload.value.$ref ?? '') as Placed<Schema>)
  return schemas
}

async function typesOf(
  document: OpenAPI3,
  options: OpenAPITSOptions = {},
  without: string[] = [],
): Promise<string> {
  const { default: openapiTS, astToString } = await loadOpenapiTypescript()
  const nodes = await openapiTS(document, {
    ...options,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    silent: true,
  })
  const nameOf = (node: object) => ('name' in node ? (node.name as { text: string }).text : '')
  return astToString(nodes.filter((node) => !without.includes(nameOf(node))))
}

async function loadOpenapiTypescript(): Promise<typeof import('openapi-typescript')> {
  return import('openapi-typescript').catch((cause) => {
    if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new Refused(
      'openapi-typescript is not installed, as after `npm ci --omit=dev`: run `npm ci`, then generate again',
      { cause },
    )
  })
}
