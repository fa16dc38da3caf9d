/** The web console at /console, as one middleware. Its pages are listed in routes.ts. */
import { METHODS } from 'node:http'
import Router, { type RouterContext } from '@koa/router'
import type { Context, Middleware } from 'koa'
import { oneEachTurn } from '../../runtime/turns.ts'
import { inZone } from '../shared/zone.ts'
import { readConsoleAssets, sendConsoleAsset } from './assets.ts'
import { assertSameOrigin } from './csrf.ts'
import { toErrorResult } from './errors.ts'
import { MAX_FORM_BYTES, MAX_GUEST_FORM_BYTES, readForm } from './form.ts'
import { CONTENT_SECURITY_POLICY } from './layout.ts'
import type { Route } from './page.ts'
import { storePosition } from './position.ts'
import { parseId } from './query.ts'
import { redirectToSignIn, respond } from './respond.ts'
import { routes } from './routes.ts'
import type { ConsoleServices } from './services.ts'
import { hasTls, newSessions } from './session.ts'
import { forgetSharedReads } from './shared-reads.ts'
import { newThrottles } from './throttles.ts'
import { zoneOf, zoneOfForm } from './time-zone.ts'
import { newGuestVisit, newVisit } from './visit.ts'

export function consoleRoutes(services: ConsoleServices): Middleware {
  const { config, db, log } = services
  const sessions = newSessions(services)
  const throttles = newThrottles(db)
  const assets = readConsoleAssets()
  const responseServices = { db, assets }

  async function serve(ctx: Context, route: Route): Promise<void> {
    const visitor = await sessions.find(ctx)
    ctx.state.visitor = visitor
    ctx.params = parseParams(ctx.params) ?? ctx.throw(404)
    const readGuestVisit = async (maxFormBytes?: number) => {
      const form =
        maxFormBytes === undefined ? new URLSearchParams() : await readForm(ctx, maxFormBytes)
      return newGuestVisit(services, { ctx, form, sessions, throttles })
    }
    if (!route.access) {
      const guestVisit = await readGuestVisit(MAX_GUEST_FORM_BYTES)
      return respond(ctx, responseServices, await route.handle(guestVisit))
    }
    if (!visitor) return redirectToSignIn(ctx)
    if (!route.access(visitor.user, ctx.params)) ctx.throw(404)
    if (route.method === 'POST') await limitForms(ctx, visitor.user.id)
    const guestVisit = await readGuestVisit(route.takesFile ? undefined : MAX_FORM_BYTES)
    return inZone(zoneOfForm(guestVisit), async () => {
      const handle = async (mayLag?: true) =>
        route.handle(newVisit(services, guestVisit, visitor, { ...route, mayLag }))
      const result = handle(route.mayLag).catch((error) => {
        // A standby may lack the record of the page.
        if (route.mayLag && db.standby && error.status === 404) return handle()
        throw error
      })
      if (route.method === 'POST') await result.finally(() => forgetSharedReads(visitor.account.id))
      return respond(ctx, responseServices, await result)
    })
  }

  async function limitForms(ctx: Context, userId: string): Promise<void> {
    const tooOften = await throttles.consume('form', userId)
    if (tooOften) ctx.throw(429, { headers: { 'Retry-After': String(tooOften.retryAfterSeconds) } })
  }

  async function serveInZone(ctx: Context): Promise<void> {
    try {
      if (ctx.path.startsWith('/console/assets/')) return await sendConsoleAsset(ctx, assets)
      assertSameOrigin(ctx, config.baseUrl)
      await refuseMethods(ctx as RouterContext, () =>
        serveRoute(ctx as RouterContext, async () => {}),
      )
      if (ctx.status >= 400 && ctx.body == null) {
        // No page has this path and method. The error page shows the visitor's navigation.
        ctx.state.visitor ??= await sessions.find(ctx)
        ctx.throw(ctx.status)
      }
    } catch (error) {
      await respond(ctx, responseServices, toErrorResult(log, ctx, error))
    }
  }

  const router = newRouter(serve)
  const [serveRoute, refuseMethods] = [router.routes(), router.allowedMethods()]
  const nextTurn = oneEachTurn()
  return async (ctx, next) => {
    if (ctx.path !== '/console' && !ctx.path.startsWith('/console/')) return next()
    // Each request to the console begins in its own turn of the event loop, so that hundreds of
    // sign-ins at once do not delay requests to the API.
    await nextTurn()
    ctx.set(HEADERS)
    ctx.cookies.secure = hasTls(config)
    await inZone(zoneOf(ctx), () => serveInZone(ctx))
    if (ctx.method === 'POST' && db.standby) await storePosition(ctx, db.standby)
  }
}

const HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

function newRouter(serve: (ctx: Context, route: Route) => Promise<void>): Router {
  const router = new Router({ prefix: '/console', methods: METHODS })
  for (const route of routes)
    router[route.method === 'GET' ? 'get' : 'post'](route.path || '/', (ctx) =>
      serve(ctx as Context, route),
    )
  return router
}

/** Path parameters that are no IDs: the token of a one-time link, and the slug of a resource. */
const NAME_PARAMS = new Set(['token', 'resource'])
const NAME = /^[A-Za-z0-9_-]{1,100}$/

/** Turns IDs to lower case. Undefined if the text of a parameter is not a name or an ID. */
function parseParams(params: Record<string, string>): Record<string, string> | undefined {
  const parsed: Record<string, string> = {}
  for (const [name, text] of Object.entries(params)) {
    const value = NAME_PARAMS.has(name) ? NAME.exec(text)?.[0] : parseId(text)
    if (value === undefined) return undefined
    parsed[name] = value
  }
  return parsed
}
