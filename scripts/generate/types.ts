/** TypeScript types of openapi.yaml and asyncapi.yaml, by openapi-typescript. */
import type { GlobalContext, OpenAPI3, OpenAPITSOptions } from 'openapi-typescript'
import { Refused } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import { locate, renameReferences } from '../model/references.ts'
import { type Schema, toJsonSchema } from '../model/schema.ts'
import { fail, type Located, lineOf } from '../model/source.ts'
import { HEADER, union } from './typescript-text.ts'

/** The text of generated/openapi.ts: `paths`, `components`, `operations`, and each component schema
 *  by its name. Fields with a default are optional, as in requests. generated/operations.ts has the
 *  types after validation. */
export async function renderOpenapiTypes({ openapi }: Contract): Promise<string> {
  return HEADER + (await renderTypes(openapi.root as object, { defaultNonNullable: false }))
}

/** The text of generated/asyncapi.ts: `EventType`, `DeliveredType`, `EventPayloads`, `EventData`,
 *  and each payload by its name. */
export async function renderAsyncapiTypes(contract: Contract): Promise<string> {
  // openapi-typescript does not read AsyncAPI: give it an OpenAPI document that has only the
  // schemas.
  const document = {
    openapi: '3.1.0',
    info: { title: '', version: '' },
    paths: {},
    components: { schemas: listPayloadSchemas(contract) },
  }
  const emptyTypes = ['paths', 'webhooks', 'operations', '$defs']
  const types = await renderTypes(document, { arrayLength: true }, emptyTypes)
  const subscribable = contract.events.filter(({ isSubscribable }) => isSubscribable)
  const operational = contract.events.filter(({ isOperational }) => isOperational)
  const members = contract.events
    .map(({ type, payloadName }) => `\n  '${type}': ${payloadName}`)
    .join('')
  return `${HEADER}${types}
/** The event types that webhooks can subscribe to. */
export type EventType =${union(subscribable.map(({ type }) => type))}

/** The event types that webhooks subscribe to by name alone. */
export type OperationalType =${union(operational.map(({ type }) => type))}

/** The \`event_type\` of a delivery: an \`EventType\`, or a message that is sent to one webhook on
 *  request. */
export type DeliveredType = keyof EventPayloads

/** The body of a delivery. */
export interface EventPayloads {${members}
}

/** The \`data\` of a delivery's body. */
export type EventData = { [T in EventType]: EventPayloads[T]['data'] }
`
}

/** The payloads and every schema that they refer to, by name. References become
 *  `#/components/schemas/<name>`. */
export function listPayloadSchemas({ sources, events }: Contract): Record<string, Schema> {
  const schemas: Record<string, Schema> = {}
  const origins = new Map<string, Located<Schema>>()
  const add = (target: Located<Schema>): string => {
    const name = String(target.path.at(-1))
    const origin = origins.get(name)
    if (origin && origin.value !== target.value) {
      const other = `line ${lineOf(origin)} of ${origin.source.file}`
      fail(target.source, target.path, `${name} is also at ${other}: rename one of them`)
    }
    if (!origin) {
      origins.set(name, target) // before its references: the schema may contain itself
      schemas[name] = toJsonSchema(renameReferences(sources, target, add))
    }
    return `#/components/schemas/${name}`
  }
  for (const { payload } of events)
    add(locate(sources, payload.source, payload.value.$ref ?? '') as Located<Schema>)
  return schemas
}

/** The types of an OpenAPI document. `omitted` are names of types to leave out. */
export async function renderTypes(
  document: object,
  options: OpenAPITSOptions,
  omitted: string[] = [],
): Promise<string> {
  const library = await loadOpenapiTypescript()
  const nodes = toNodes(library, document, options)
  const isOmitted = (node: object): boolean =>
    'name' in node && omitted.includes((node.name as { text: string }).text)
  return library.astToString(nodes.filter((node) => !isOmitted(node)))
}

/** Does what the default export of openapi-typescript does, but without Redocly, which takes long
 *  to check and bundle the document. The document is checked already, and refers to no other
 *  file. */
function toNodes(
  { transformSchema, scanDiscriminators, resolveRef }: OpenapiTypescript,
  document: object,
  overrides: OpenAPITSOptions,
) {
  const options = {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    defaultNonNullable: true,
    silent: true,
    ...overrides,
  }
  // A copy: openapi-typescript changes documents that have a discriminator.
  const copy = structuredClone(document) as OpenAPI3
  try {
    const context: Partial<GlobalContext> = {
      ...options,
      discriminators: scanDiscriminators(copy, options),
      injectFooter: [],
      resolve: (ref) => resolveRef(copy, ref, { silent: true }),
    }
    return transformSchema(copy, context as GlobalContext)
  } catch (cause) {
    const { message } = cause as Error
    throw new Refused(`openapi-typescript cannot write the types: ${message}`, { cause })
  }
}

type OpenapiTypescript = Awaited<ReturnType<typeof loadOpenapiTypescript>>

/** Does not import the main module of openapi-typescript, because it also loads Redocly. */
async function loadOpenapiTypescript() {
  try {
    const [{ default: transformSchema }, { scanDiscriminators, resolveRef }, { astToString }] =
      await Promise.all([
        import('openapi-typescript/dist/transform/index.mjs'),
        import('openapi-typescript/dist/lib/utils.mjs'),
        import('openapi-typescript/dist/lib/ts.mjs'),
      ])
    return { transformSchema, scanDiscriminators, resolveRef, astToString }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new Refused(
      'openapi-typescript is not installed: run `npm ci` without --omit=dev, then generate again',
      { cause },
    )
  }
}
