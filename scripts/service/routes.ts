/** Finds the operation of a request. */
import type { Operation } from '../model/operations.ts'
import { parameterNames, shapeOf } from '../model/paths.ts'

interface Route {
  /** By method, in lower case. */
  operations: Map<string, Operation>
  /** Methods for the header `Allow`. */
  allow: string
}

interface Match {
  route: Route
  /** The values of the path parameters, in the order of the path. */
  values: string[]
}

interface Template extends Route {
  /** The path with `{}` in place of each parameter. */
  shape: string
  pattern: RegExp
}

/** Returns a function from a path to its match. The function returns undefined for a path that is
 *  not below `basePath` or has no operation, and throws URIError for a broken percent-encoding. */
export function newRouter(
  operations: readonly Operation[],
  basePath: string,
): (path: string) => Match | undefined {
  const byShape = new Map<string, Template>()
  for (const operation of operations) {
    const shape = shapeOf(operation.path)
    const template = byShape.get(shape) ?? newTemplate(shape)
    template.operations.set(operation.method, operation)
    byShape.set(shape, template)
  }
  for (const template of byShape.values()) template.allow = listMethods(template)
  // The template with more fixed text takes precedence.
  const templates = [...byShape.values()]
    .filter(({ shape }) => shape.includes('{}'))
    .sort((a, b) => fixedLength(b) - fixedLength(a))
  return (requested) => {
    if (!requested.startsWith(basePath)) return undefined
    const path = requested.slice(basePath.length)
    // The shape of a path without parameters is the path itself. A request for the literal
    // `/pets/{}` must not find the shape of `/pets/{id}`.
    const fixed = byShape.get(path)
    if (fixed && !path.includes('{}')) return { route: fixed, values: [] }
    for (const route of templates) {
      const found = route.pattern.exec(path)
      if (found) return { route, values: found.slice(1).map(decodeURIComponent) }
    }
    return undefined
  }
}

/** The values by the names of the parameters in the path of this operation. Other operations of the
 *  route can name the parameters differently. */
export function nameParameters({ path }: Operation, { values }: Match): Record<string, string> {
  return Object.fromEntries(parameterNames(path).map((name, index) => [name, values[index] ?? '']))
}

function fixedLength({ shape }: Template): number {
  return shape.replaceAll('{}', '').length
}

function newTemplate(shape: string): Template {
  const source = shape.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll('{}', '([^/]+?)')
  return { shape, pattern: new RegExp(`^${source}$`), operations: new Map(), allow: '' }
}

function listMethods({ operations }: Route): string {
  const methods = [...operations.keys()].map((method) => method.toUpperCase())
  if (operations.has('get') && !operations.has('head')) methods.push('HEAD')
  if (!operations.has('options')) methods.push('OPTIONS')
  return methods.join(', ')
}
