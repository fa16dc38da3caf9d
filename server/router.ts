/** Finds the operation of a request by a map of fixed paths and one compiled pattern per path
 *  template. */

import { type OperationId, operations } from '../generated/operations.ts'
import type { Context } from './context.ts'
import { deprecationHeaders } from './deprecation.ts'

interface PathRoute {
  path: string
  pattern: RegExp
  names: string[]
  /** By method, in upper case. */
  operations: Map<string, OperationId>
  /** The documented methods, with HEAD for GET, and OPTIONS. */
  allow: string
}

interface Match {
  route: PathRoute
  params: Record<string, string>
}

const matchPath = compileRoutes()

function compileRoutes(): (path: string) => Match | undefined {
  const routes = new Map<string, PathRoute>()
  for (const [id, { path, method }] of Object.entries(operations)) {
    const route = routes.get(path) ?? newRoute(path)
    route.operations.set(method.toUpperCase(), id as OperationId)
    routes.set(path, route)
  }
  for (const route of routes.values()) route.allow = allowOf(route)
  // A fixed path takes precedence over a template, and a longer template over a shorter one.
  const templates = [...routes.values()]
    .filter((route) => route.names.length > 0)
    .sort((a, b) => b.path.replace(/\{.*?\}/g, '').length - a.path.replace(/\{.*?\}/g, '').length)

  return (path) => {
    const fixed = routes.get(path)
    if (fixed && fixed.names.length === 0) return { route: fixed, params: {} }
    for (const route of templates) {
      const found = route.pattern.exec(path)
      if (found)
        return {
          route,
          params: Object.fromEntries(
            route.names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')]),
          ),
        }
    }
    return undefined
  }
}

/** Throws 401. */
type AssertAuthenticated = (ctx: Context, id: OperationId | undefined) => void

const MAX_URL_BYTES = 8 * 1024

/** Stores the operation and its path parameters in the request's state. Sets the headers of a
 *  deprecated operation here, so that its errors have them, too. Responds to OPTIONS itself and
 *  then returns undefined. Throws 400, 404, 405 and 414. `assertAuthenticated` runs for known
 *  paths, and gets no ID when the method is unknown. */
export function findOperation(
  ctx: Context,
  assertAuthenticated: AssertAuthenticated,
): OperationId | undefined {
  const { route, params } = findRoute(ctx)
  if (ctx.method === 'OPTIONS') {
    ctx.set('Allow', route.allow)
    ctx.status = 204
    return undefined
  }
  const operationId = route.operations.get(ctx.method === 'HEAD' ? 'GET' : ctx.method)
  ctx.state.operationId = operationId
  ctx.state.pathParameters = params
  if (operationId !== undefined) ctx.set(deprecationHeaders(operations[operationId]))
  assertAuthenticated(ctx, operationId)
  if (operationId === undefined)
    return ctx.throw(405, `${ctx.method} is not possible here; ${route.allow} are.`, {
      headers: { Allow: route.allow },
    })
  return operationId
}

function findRoute(ctx: Context): Match {
  if (ctx.url.length > MAX_URL_BYTES) ctx.throw(414, 'The URL is longer than 8 KiB.')
  try {
    decodeURIComponent(ctx.path)
  } catch {
    ctx.throw(400, 'The URL has a broken percent-encoding.')
  }
  const found = matchPath(ctx.path)
  if (found === undefined) ctx.throw(404, 'There is nothing at this URL.')
  return found
}

function newRoute(path: string): PathRoute {
  const names = [...path.matchAll(/\{(.*?)\}/g)].map(([, name]) => name ?? '')
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{.*?\}/g, '([^/]+)')
  return { path, names, pattern: new RegExp(`^${source}$`), operations: new Map(), allow: '' }
}

function allowOf({ operations }: PathRoute): string {
  const methods = [...operations.keys()]
  if (operations.has('GET')) methods.push('HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
