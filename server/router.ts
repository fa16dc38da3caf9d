/** Finds the operation of a request by a map of fixed paths and one compiled pattern per path
 *  template. */
import { type OperationId, operations } from '../generated/operations.ts'
import type { Context } from './context.ts'
import { deprecationHeaders } from './deprecation.ts'

interface Route {
  path: string
  pattern: RegExp
  parameters: string[]
  /** By method, in upper case. */
  operations: Map<string, OperationId>
  /** The documented methods, HEAD if GET is documented, and OPTIONS. */
  allow: string
}

interface Match {
  route: Route
  pathParameters: Record<string, string>
}

const MAX_URL_BYTES = 8 * 1024
const TEMPLATE_PARAMETER = /\{(.*?)\}/g

const operationIds = Object.keys(operations) as OperationId[]
const routes = [...Map.groupBy(operationIds, (id) => operations[id].path)].map(newRoute)
const fixedRoutes = new Map(
  routes.filter(({ parameters }) => parameters.length === 0).map((route) => [route.path, route]),
)
/** The template with more fixed text takes precedence. */
const templateRoutes = routes
  .filter(({ parameters }) => parameters.length > 0)
  .sort((a, b) => fixedLength(b) - fixedLength(a))

/** Throws 401 unless the request has a valid API key. */
type AssertAuthenticated = (ctx: Context, id: OperationId | undefined) => void

/** Stores the operation and its path parameters in the request's state. Sets the headers of a
 *  deprecated operation here, so that error responses have them, too. Responds to OPTIONS itself
 *  and then returns undefined. Throws 400, 404, 405 and 414. `assertAuthenticated` runs for known
 *  paths, and gets no ID when the method is unknown. */
export function findOperation(
  ctx: Context,
  assertAuthenticated: AssertAuthenticated,
): OperationId | undefined {
  const { route, pathParameters } = findRoute(ctx)
  if (ctx.method === 'OPTIONS') {
    ctx.set('Allow', route.allow)
    ctx.status = 204
    return undefined
  }
  const operationId = route.operations.get(ctx.method === 'HEAD' ? 'GET' : ctx.method)
  ctx.state.operationId = operationId
  ctx.state.pathParameters = pathParameters
  if (operationId !== undefined) ctx.set(deprecationHeaders(operations[operationId]))
  assertAuthenticated(ctx, operationId)
  if (operationId === undefined)
    return ctx.throw(405, `${ctx.method} is not possible here. Use ${route.allow}.`, {
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
  const fixed = fixedRoutes.get(ctx.path)
  if (fixed) return { route: fixed, pathParameters: {} }
  for (const route of templateRoutes) {
    const values = route.pattern.exec(ctx.path)?.slice(1).map(decodeURIComponent)
    if (values === undefined) continue
    const pairs = route.parameters.map((name, index): [string, string] => [
      name,
      values[index] ?? '',
    ])
    return { route, pathParameters: Object.fromEntries(pairs) }
  }
  return ctx.throw(404, 'There is nothing at this URL.')
}

function newRoute([path, ids]: [string, OperationId[]]): Route {
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(TEMPLATE_PARAMETER, '([^/]+)')
  const byMethod = new Map(ids.map((id) => [operations[id].method.toUpperCase(), id]))
  const methods = [...byMethod.keys()]
  if (byMethod.has('GET')) methods.push('HEAD')
  return {
    path,
    pattern: new RegExp(`^${source}$`),
    parameters: [...path.matchAll(TEMPLATE_PARAMETER)].map(([, name = '']) => name),
    operations: byMethod,
    allow: [...methods, 'OPTIONS'].join(', '),
  }
}

function fixedLength({ path }: Route): number {
  return path.replace(TEMPLATE_PARAMETER, '').length
}
