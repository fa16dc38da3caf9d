/** Finds absent parts that OpenAPI requires and the generated code does not need. */
import { listOperationPaths } from '../model/paths.ts'
import { type Finding, isObject, type Path, type Source, valueAt } from '../model/source.ts'

export function findMissingParts(openapi: Source): Finding[] {
  return [
    ...findMissing(openapi, ['info'], 'info', ['title', 'version']),
    ...listResponses(openapi).flatMap((path) =>
      findMissing(openapi, path, `response ${path.at(-1)}`, ['description']),
    ),
  ]
}

/** The paths of all responses except references, whose description is at the target. */
function listResponses(openapi: Source): Path[] {
  const owners: Path[] = [
    ...listOperationPaths(openapi).map((path) => [...path, 'responses']),
    ['components', 'responses'],
  ]
  return owners.flatMap((owner) =>
    Object.entries((valueAt(openapi.root, owner) ?? {}) as object)
      .filter(([name, value]) => !name.startsWith('x-') && isObject(value) && !('$ref' in value))
      .map(([name]) => [...owner, name]),
  )
}

function findMissing(source: Source, path: Path, name: string, fields: string[]): Finding[] {
  return fields
    .filter((field) => valueAt(source.root, [...path, field]) === undefined)
    .map((field) => ({
      source,
      path,
      problem: `${name} has no ${field}, which OpenAPI requires: add it`,
    }))
}
