/** Parts of OpenAPI and AsyncAPI that the toolchain does not support. `readContract` in yaml.ts
 *  refuses a contract with such a part. */
import { listComponents } from './components.ts'
import type { Contract } from './contract.ts'
import { hasNamesAsKeys, listNodes } from './nodes.ts'
import type { Operation } from './operations.ts'
import { findPathItemReferences, findPathProblems, parameterNames } from './paths.ts'
import { locate } from './references.ts'
import { listSubschemas, type Schema } from './schema.ts'
import { readServerPath } from './servers.ts'
import {
  type Finding,
  isObject,
  type Located,
  type Path,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

const SUPPORTED_METHODS = ['get', 'post', 'patch', 'delete']

export function findUnsupportedParts(contract: Contract): Finding[] {
  const { openapi, asyncapi, operations } = contract
  return [
    ...findUnsupportedVersion(openapi, 'openapi', '3.0.'),
    ...findUnsupportedVersion(asyncapi, 'asyncapi', '3.0.'),
    ...findServerPaths(openapi, []),
    ...findPathItemReferences(openapi),
    ...findPathProblems(contract),
    ...operations.flatMap((operation) => findOperationProblems(contract, operation)),
    ...operations.flatMap((operation) => findParameterProblems(operation)),
    ...findSchemaProblems(openapi),
    ...findAccessKeywords(openapi),
    ...findAccessKeywords(asyncapi),
    ...findRecursion(contract),
  ]
}

/** Recursive schemas. The contract tests, the mock and the documentation would not end. */
function findRecursion({ sources, openapi }: Contract): Finding[] {
  const schemas = listComponents(openapi).filter(({ path }) => path[1] === 'schemas')
  const sound = new Set<Schema>()
  return schemas.flatMap((schema) => {
    const found = findCycle(sources, schema as Located<Schema>, sound)
    if (!found) return []
    const problem = `${found.value.$ref} contains itself: write it without recursion`
    return [{ source: found.source, path: found.path, problem }]
  })
}

/** The first reference to a schema that contains this reference. `sound` are the schemas that are
 *  known to have none. */
function findCycle(
  sources: Sources,
  { source, path, value }: Located<Schema>,
  sound: Set<Schema>,
  ancestors = new Set<Schema>(),
): Located<Schema> | undefined {
  if (sound.has(value)) return undefined
  if (value.$ref) {
    const target = locate(sources, source, value.$ref) as Located<Schema>
    if (ancestors.has(target.value)) return { source, path, value }
    ancestors.add(target.value)
    const found = findCycle(sources, target, sound, ancestors)
    ancestors.delete(target.value)
    return found
  }
  for (const { subschema, steps } of listSubschemas(value)) {
    const inner = { source, path: [...path, ...steps], value: subschema }
    const found = findCycle(sources, inner, sound, ancestors)
    if (found) return found
  }
  sound.add(value)
  return undefined
}

function findUnsupportedVersion(source: Source, key: string, want: string): Finding[] {
  const version = String(valueAt(source.root, [key]))
  if (version.startsWith(want)) return []
  const remedy = `write ${want}x`
  return [{ source, path: [key], problem: `${key}: ${version} is not supported: ${remedy}` }]
}

function findOperationProblems(contract: Contract, operation: Operation): Finding[] {
  const { id, place } = operation
  const { source, path } = place
  const callbacks = [...path, 'callbacks']
  return [
    ...findUnsupportedMethod(operation),
    ...(valueAt(source.root, callbacks) === undefined
      ? []
      : [
          {
            source,
            path: callbacks,
            problem: `${id} has callbacks: describe the requests as events in asyncapi.yaml`,
          },
        ]),
    ...findServerPaths(source, path.slice(0, -1)),
    ...findServerPaths(source, path),
    ...findUnsupportedSecurity(contract, operation),
    ...findUnknownPermission(contract, operation),
  ]
}

function findUnsupportedMethod({ id, method, place }: Operation): Finding[] {
  if (SUPPORTED_METHODS.includes(method)) return []
  const remedy =
    method === 'head'
      ? 'remove it, because the service responds to HEAD wherever there is a GET'
      : `use one of ${SUPPORTED_METHODS.join(', ')}`
  return [{ ...place, problem: `${id} is ${method.toUpperCase()}: ${remedy}` }]
}

/** Servers whose URL has a path. The service serves the paths of operations without a prefix. */
function findServerPaths(source: Source, owner: Path): Finding[] {
  const path = [...owner, 'servers']
  const servers = valueAt(source.root, path)
  return (Array.isArray(servers) ? servers : []).flatMap((server, index) => {
    const prefix = readServerPath(server)
    if (prefix === '') return []
    const url = valueAt(server, ['url'])
    const problem = `the server ${url} has the path ${prefix}: write it at the beginning of each path`
    return [{ source, path: [...path, index, 'url'], problem }]
  })
}

/** The only security scheme of the service. */
const SCHEME = 'apiKey'

function findUnsupportedSecurity({ openapi }: Contract, operation: Operation): Finding[] {
  const ofOperation = [...operation.place.path, 'security']
  const path = valueAt(openapi.root, ofOperation) === undefined ? ['security'] : ofOperation
  const requirements = (valueAt(openapi.root, path) ?? []) as Record<string, unknown>[]
  const isKeyOnly = requirements.every((names) => Object.keys(names).join() === SCHEME)
  if (requirements.length === 0 || !isKeyOnly) {
    const owner = path.length === 1 ? 'the contract' : operation.id
    const problem = `${owner} must have security: [{ ${SCHEME}: [] }], the only authentication of the service`
    return [{ source: openapi, path, problem }]
  }
  const scheme = ['components', 'securitySchemes', SCHEME]
  const { type, scheme: name } = (valueAt(openapi.root, scheme) ?? {}) as Record<string, unknown>
  if (type === 'http' && String(name).toLowerCase() === 'bearer') return []
  const problem = `the security scheme ${SCHEME} must have type: http and scheme: bearer`
  return [{ source: openapi, path: scheme, problem }]
}

/** A permission that is no module: the owner of the key may manage webhooks. */
const WEBHOOKS = 'webhooks'

/** `x-permission` names a module: one of `x-modules`, or any if the contract has no `x-modules`. Or
 *  it is `webhooks`. */
function findUnknownPermission(
  { modules }: Contract,
  { id, permission, place }: Operation,
): Finding[] {
  if (permission === null || modules.length === 0) return []
  const known = [...modules, WEBHOOKS]
  if (known.includes(permission)) return []
  const problem = `x-permission of ${id} must be one of ${known.join(', ')}`
  return [{ ...place, path: [...place.path, 'x-permission'], problem }]
}

function findParameterProblems({ id, path, place, parameters }: Operation): Finding[] {
  const names = parameterNames(path)
  const declared = parameters.filter((parameter) => parameter.in === 'path')
  const found = parameters.flatMap((parameter): Finding[] => {
    const { name, in: where, required } = parameter
    const refuse = (problem: string) => [{ ...parameter.place, problem }]
    if (where === 'cookie')
      return refuse(`parameter ${name} of ${id} is a cookie: use a header or the query`)
    if (where !== 'path') return []
    if (!names.includes(name))
      return refuse(
        `${path} has no parameter ${name}: add {${name}} to the path, or remove it here`,
      )
    return required ? [] : refuse(`parameter ${name} of ${id} is in the path: add required: true`)
  })
  const missing = names
    .filter((name) => !declared.some((parameter) => parameter.name === name))
    .map((name) => ({
      ...place,
      problem: `${id} does not declare {${name}}: add it to parameters`,
    }))
  return [...found, ...missing]
}

/** Keywords that OpenAPI 3.0 lacks, or defines differently than JSON Schema. */
function findSchemaProblems(source: Source): Finding[] {
  return listNodes(source.root).flatMap(({ path, value }) => {
    if (hasNamesAsKeys(path)) return []
    const refuse = (key: string, problem: string) => [{ source, path: [...path, key], problem }]
    if (Array.isArray(value.type))
      return refuse('type', 'type is a list: write one type, and nullable: true for null')
    const hasItems = isObject(value.items) && !Array.isArray(value.items)
    if (value.type === 'array' && !hasItems)
      return refuse('items', 'an array must have items with one schema: add it')
    const exclusive = ['exclusiveMinimum', 'exclusiveMaximum'].find((key) => key in value)
    if (exclusive !== undefined)
      return refuse(
        exclusive,
        `${exclusive} is not supported: write ${exclusive === 'exclusiveMinimum' ? 'minimum' : 'maximum'}`,
      )
    if ('const' in value)
      return refuse('const', 'const is not in OpenAPI 3.0: write enum with one value')
    return []
  })
}

function findAccessKeywords(source: Source): Finding[] {
  return listNodes(source.root).flatMap(({ path, value }) =>
    ['readOnly', 'writeOnly']
      .filter((keyword) => value[keyword] === true)
      .map((keyword) => ({
        source,
        path: [...path, keyword],
        problem: `${keyword} is not supported: give requests and responses a schema each`,
      })),
  )
}
