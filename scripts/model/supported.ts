/** Parts of OpenAPI that the service does not have. Every command refuses them. */
import type { Contract } from './contract.ts'
import type { Operation } from './operations.ts'
import { locate } from './references.ts'
import { listSubschemas, type Schema } from './schema.ts'
import {
  type Finding,
  isObject,
  type Located,
  type Path,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

const METHODS = ['get', 'post', 'patch', 'delete']

export function findUnsupportedParts(contract: Contract): Finding[] {
  const { openapi, asyncapi, operations } = contract
  return [
    ...checkVersion(openapi, 'openapi', '3.0.'),
    ...checkVersion(asyncapi, 'asyncapi', '3.0.'),
    ...checkServers(openapi, []),
    ...operations.flatMap((operation) => checkOperation(contract, operation)),
    ...findAccessKeywords(openapi),
    ...findAccessKeywords(asyncapi),
    ...operations.flatMap((operation) => findRecursion(contract, operation)),
  ]
}

/** The contract tests and the mock would need values without an end. */
function findRecursion({ sources }: Contract, { body, responses }: Operation): Finding[] {
  const media = responses.flatMap(({ content }) => Object.values(content))
  return [...(body ? [body] : []), ...media].flatMap(({ schema }) => {
    const found = findCycle(sources, schema)
    if (!found) return []
    const problem = `${found.value.$ref} contains itself: write it without recursion`
    return [{ source: found.source, path: found.path, problem }]
  })
}

/** The first reference to a schema that contains it. */
function findCycle(
  sources: Sources,
  { source, path, value }: Located<Schema>,
  ancestors: readonly Schema[] = [],
): Located<Schema> | undefined {
  const here = { source, path, value }
  if (value.$ref) {
    const target = locate(sources, source, value.$ref) as Located<Schema>
    if (ancestors.includes(target.value)) return here
    return findCycle(sources, target, [...ancestors, target.value])
  }
  for (const { subschema, steps } of listSubschemas(value)) {
    const inner = { source, path: [...path, ...steps], value: subschema }
    const found = findCycle(sources, inner, ancestors)
    if (found) return found
  }
  return undefined
}

function checkVersion(source: Source, key: string, want: string): Finding[] {
  const version = String(valueAt(source.root, [key]))
  if (version.startsWith(want)) return []
  const remedy = `write ${want}x`
  return [{ source, path: [key], problem: `${key}: ${version} is not supported: ${remedy}` }]
}

function checkOperation(contract: Contract, operation: Operation): Finding[] {
  const { id, method, place } = operation
  const { source, path } = place
  const callbacks = [...path, 'callbacks']
  return [
    ...(METHODS.includes(method)
      ? []
      : [
          {
            ...place,
            problem: `${id} is ${method.toUpperCase()}: use one of ${METHODS.join(', ')}`,
          },
        ]),
    ...(valueAt(source.root, callbacks) === undefined
      ? []
      : [
          {
            source,
            path: callbacks,
            problem: `${id} has callbacks: describe the requests as events in asyncapi.yaml`,
          },
        ]),
    ...checkServers(source, path.slice(0, -1)),
    ...checkServers(source, path),
    ...checkSecurity(contract, operation),
  ]
}

/** The service serves the paths as they are. */
function checkServers(source: Source, owner: Path): Finding[] {
  const path = [...owner, 'servers']
  const servers = valueAt(source.root, path)
  return (Array.isArray(servers) ? servers : []).flatMap((server, index) => {
    const url = String(valueAt(server, ['url'])).replace(/[{}]/g, '')
    const prefix = URL.canParse(url, 'http://localhost')
      ? new URL(url, 'http://localhost').pathname
      : url
    if (prefix === '/') return []
    const problem = `the server ${url} has the path ${prefix}: write it at the beginning of each path`
    return [{ source, path: [...path, index, 'url'], problem }]
  })
}

/** The only security scheme of the service. */
const SCHEME = 'apiKey'

function checkSecurity({ openapi }: Contract, { id, place }: Operation): Finding[] {
  const own = [...place.path, 'security']
  const path = valueAt(openapi.root, own) === undefined ? ['security'] : own
  const requirements = (valueAt(openapi.root, path) ?? []) as Record<string, unknown>[]
  const isKeyOnly = requirements.every((names) => Object.keys(names).join() === SCHEME)
  if (requirements.length === 0 || !isKeyOnly) {
    const owner = path === own ? id : 'the contract'
    const problem = `${owner} must have security: [{ ${SCHEME}: [] }], the only authentication of the service`
    return [{ source: openapi, path, problem }]
  }
  const scheme = ['components', 'securitySchemes', SCHEME]
  const { type, scheme: name } = (valueAt(openapi.root, scheme) ?? {}) as Record<string, unknown>
  if (type === 'http' && String(name).toLowerCase() === 'bearer') return []
  const problem = `the security scheme ${SCHEME} must have type: http and scheme: bearer`
  return [{ source: openapi, path: scheme, problem }]
}

/** Keys with values that are no part of the contract's structure. */
const VALUES = ['example', 'examples', 'default', 'enum', 'const']

function findAccessKeywords(source: Source): Finding[] {
  const visit = (node: unknown, path: Path): Finding[] => {
    if (!isObject(node)) return []
    const own = ['readOnly', 'writeOnly']
      .filter((keyword) => node[keyword] === true)
      .map((keyword) => ({
        source,
        path: [...path, keyword],
        problem: `${keyword} is not supported: give requests and responses a schema each`,
      }))
    const inner = Object.entries(node)
      .filter(([key]) => !VALUES.includes(key) && !key.startsWith('x-'))
      .flatMap(([key, value]) => visit(value, [...path, key]))
    return [...own, ...inner]
  }
  return visit(source.root, [])
}
