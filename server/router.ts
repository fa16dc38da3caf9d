/** Finds the operation of a request: a map of fixed paths and one precompiled pattern per template.
 *  openapi-backend's own router rebuilds all of this for every request. */
import type { Operation, OperationId } from '../generated/operations.ts'

export interface Route {
  path: string
  pattern: RegExp
  names: string[]
  /** By upper-case method. */
  operations: Map<string, OperationId>
  /** The documented methods, with HEAD for GET, and OPTIONS. */
  allow: string
}

export interface Match {
  route: Route
  params: Record<string, string>
}

export function compileRoutes(operations: Record<string, Operation>): (path: string) => Match | undefined {
  const routes = new Map<string, Route>()
  for (const [id, { path, method }] of Object.entries(operations)) {
    const route = routes.get(path) ?? newRoute(path)
    route.operations.set(method.toUpperCase(), id as OperationId)
    routes.set(path, route)
  }
  for (const route of routes.values()) route.allow = allowOf(route)
  // A fixed path wins over a template, and the template with more fixed text over one with less.
  const templates = [...routes.values()]
    .filter((route) => route.names.length > 0)
    .sort((a, b) => b.path.replace(/\{.*?\}/g, '').length - a.path.replace(/\{.*?\}/g, '').length)

  return (path) => {
    const fixed = routes.get(path)
    if (fixed && fixed.names.length === 0) return { route: fixed, params: {} }
    for (const route of templates) {
      const found = route.pattern.exec(path)
      if (found)
        return { route, params: Object.fromEntries(route.names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')])) }
    }
    return undefined
  }
}

function newRoute(path: string): Route {
  const names = [...path.matchAll(/\{(.*?)\}/g)].map(([, name]) => name ?? '')
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{.*?\}/g, '([^/]+)')
  return { path, names, pattern: new RegExp(`^${source}$`), operations: new Map(), allow: '' }
}

function allowOf({ operations }: Route): string {
  const methods = [...operations.keys()]
  if (operations.has('GET')) methods.push('HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
