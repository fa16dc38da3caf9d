/** The web console at /console: headers, sessions, forms and errors of its pages, which are in web/console. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Router from '@koa/router'
import { HttpError } from 'http-errors'
import type { Context, Middleware, Next } from 'koa'
import type { Logger } from 'pino'
import getRawBody from 'raw-body'
import { validate as isUuid } from 'uuid'
import { networkOf, newRateLimiter, type RateLimiter, TooOften } from '../../auth/rate-limit.ts'
import { hashOfToken, startSession } from '../../auth/session.ts'
import { InvalidInput, Refused, StatusError } from '../../errors.ts'
import { execute, validate } from '../../operations/execute.ts'
import type { ResponseChecker } from '../../operations/response-check.ts'
import { assertStorable, isStorable } from '../../operations/storable.ts'
import { insertAuditEntry } from '../../records/audit-log.ts'
import { isUnavailable } from '../../records/database/errors.ts'
import type { Db } from '../../records/database/open.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import {
  deleteSession,
  findSignedIn,
  type Notice,
  type SignedIn,
  storeNotice,
  touchSession,
} from '../../records/sessions.ts'
import { findUser } from '../../records/users.ts'
import type { Config } from '../../server/config.ts'
import { errorPage, type Frame, layout, POLICY, type Theme, themes } from './layout.ts'
import type { Access, Answer, GuestVisit, Page, Route, ThrottleName, Visit } from './page.ts'
import { routes } from './routes.ts'
import { stylesheets } from './stylesheets.ts'

export interface ConsoleServices {
  db: Db
  config: Config
  log: Logger
  now: () => Date
  checkResponse: ResponseChecker
}

const MINUTE_S = 60
/** How often, in how many seconds. */
const THROTTLES: Record<ThrottleName, readonly [number, number]> = {
  /** Of one address for one account: five wrong passwords. */
  sign_in: [5, 15 * MINUTE_S],
  sign_in_ip: [50, 15 * MINUTE_S],
  /** From everywhere: who guesses from many addresses must not have a chance, and whose account it is should seldom notice. */
  sign_in_account: [50, 60 * MINUTE_S],
  sign_up: [10, 60 * MINUTE_S],
  /** Of somebody who is signed in and must say their password again: who has found a device unlocked must not guess it. */
  password: [5, 15 * MINUTE_S],
  /** Each says whether an address is in use somewhere. */
  invite: [60, 24 * 60 * MINUTE_S],
  change_email: [10, 24 * 60 * MINUTE_S],
  webhook_url: [60, MINUTE_S],
}
const MAX_FORM_BYTES = 1024 * 1024
const MAX_GUEST_FORM_BYTES = 16 * 1024
const MAX_FIELDS = 5_000
/** All other parameters of addresses are ids. */
const NAMES = new Set(['token', 'resource'])
const NAME = /^[A-Za-z0-9_-]{1,100}$/

export function consoleRoutes(services: ConsoleServices): Middleware {
  const { config, db, log } = services
  const isSecure = config.baseUrl.startsWith('https:')
  const throttles = new Map(
    Object.entries(THROTTLES).map(([name, [points, seconds]]) => [
      name as ThrottleName,
      newRateLimiter(db, name, points, seconds),
    ]),
  )
  const assets = readAssets()
  const router = new Router({ prefix: '/console' })

  for (const route of routes)
    router[route.method === 'GET' ? 'get' : 'post'](route.path === '' ? '/' : route.path, (ctx) =>
      serve(ctx as unknown as Context, route),
    )

  /** Secure cookies also where TLS ends before us. The name keeps other hosts of the domain from setting it. */
  const cookie = isSecure ? '__Host-muster-session' : 'muster-session'
  const setCookie = (ctx: Context, token: string | null): void => {
    ctx.cookies.secure = isSecure
    ctx.cookies.set(cookie, token, {
      httpOnly: true,
      sameSite: 'lax',
      secure: isSecure,
      path: '/',
      maxAge: 30 * 24 * 60 * MINUTE_S * 1000,
    })
  }

  async function signedIn(ctx: Context): Promise<SignedIn | undefined> {
    const tokenHash = hashOfToken(ctx.cookies.get(cookie) ?? '')
    const found = tokenHash && (await findSignedIn(db.read, tokenHash, services.now()))
    if (found) await touchSession(db, found.session, services.now())
    return found || undefined
  }

  async function serve(ctx: Context, route: Route): Promise<void> {
    const visitor = await signedIn(ctx)
    ctx.state.visitor = visitor
    if (
      Object.entries<string>(ctx.params).some(
        ([name, value]) => !(NAMES.has(name) ? NAME.test(value) : isUuid(value)),
      )
    )
      ctx.throw(404)
    if (route.guest)
      return send(ctx, await route.handle(await guestVisit(ctx, MAX_GUEST_FORM_BYTES)))
    if (!visitor) return askToSignIn(ctx)
    if (!route.access(visitor.user, ctx.params)) ctx.throw(404)
    await send(
      ctx,
      await route.handle(fullVisit(await guestVisit(ctx, MAX_FORM_BYTES), visitor, route.access)),
    )
  }

  /** `limit` is of a form, in bytes: who is not known is listened to only so far. */
  async function guestVisit(ctx: Context, limit: number): Promise<GuestVisit> {
    const now = services.now()
    const leave = async (): Promise<void> => {
      const { account, user, session } = ctx.state.visitor ?? {}
      if (session)
        await deleteSession(
          accountScope({ dialect: db.dialect, sql: db.write }, account.id),
          user.id,
          session.id,
        )
      ctx.state.visitor = undefined
    }
    return {
      params: ctx.params,
      query: new URLSearchParams(ctx.querystring),
      form: ctx.method === 'POST' ? await readForm(ctx, limit) : new URLSearchParams(),
      now,
      ip: ctx.ip,
      network: networkOf(ctx.ip),
      db,
      config,
      ctx,
      async signIn({ id, accountId }, prove) {
        const started = await transaction(db, async (trx) => {
          const scope = writeScope(trx, accountId)
          await prove(scope)
          return startSession(
            scope,
            { userId: id, ip: ctx.ip, userAgent: ctx.get('User-Agent') },
            now,
          )
        })
        await leave()
        ctx.state.signedInAs = started.id
        setCookie(ctx, started.token)
      },
      async signOut() {
        await leave()
        setCookie(ctx, null)
      },
      throttle: (name, key) => throttle(throttles.get(name), key),
      resetThrottle: async (name, key) => throttles.get(name)?.reset(keyOf(key)),
    }
  }

  function fullVisit(
    visit: GuestVisit,
    { user, account, session }: SignedIn,
    access: Access,
  ): Visit {
    const { ctx, now, ip } = visit
    const caller = { accountId: account.id, userId: user.id, finance: user.permissions.finance }
    return {
      ...visit,
      user,
      account,
      session,
      scope: accountScope({ dialect: db.dialect, sql: db.read }, account.id),
      change: (work) =>
        transaction(db, async (trx) => {
          const scope = writeScope(trx, account.id)
          // Until the end of it nobody takes away what this user may do.
          const present = await findUser(scope, user.id, { forUpdate: true })
          if (present?.status !== 'active' || !access(present, ctx.params)) ctx.throw(404)
          return work(scope)
        }),
      audit: (scope, entry) => insertAuditEntry(scope, { ...entry, user, ip }, now),
      async call(id, { updatedAt, around, ...raw }) {
        assertStorable(raw.query)
        assertStorable(raw.body)
        return execute({ db, now: () => now, checkResponse: services.checkResponse }, id, {
          input: validate(id, raw),
          caller,
          isMatch: (current) =>
            updatedAt === undefined ||
            (current as { updated_at?: string }).updated_at === updatedAt,
          around,
        })
      },
    }
  }

  async function send(ctx: Context, answer: Answer): Promise<void> {
    if ('to' in answer) {
      const sessionId = ctx.state.signedInAs ?? ctx.state.visitor?.session.id
      if (answer.notice && sessionId) await storeNotice(db, sessionId, answer.notice)
      ctx.status = 303
      ctx.redirect(`/console${answer.to}`)
      ctx.body = ''
    } else if ('fileName' in answer) {
      ctx.status = 200
      ctx.attachment(answer.fileName)
      ctx.set({ ...answer.headers, 'Content-Type': answer.contentType })
      ctx.body = answer.content
    } else await sendPage(ctx, answer)
  }

  async function sendPage(ctx: Context, page: Page): Promise<void> {
    const visitor: SignedIn | undefined = ctx.state.visitor
    // What brings itself up to date is not what its reader waits for.
    const notice: Notice | null = ctx.get('Muster-Poll') === '' ? (visitor?.notice ?? null) : null
    if (visitor && notice) await storeNotice(db, visitor.session.id, null)
    const frame: Frame = {
      path: ctx.path.replace(/\/$/, ''),
      folder: assets.folder,
      theme: themeOf(ctx),
      notice,
      visitor,
    }
    ctx.status = page.status ?? 200
    ctx.type = 'html'
    ctx.body = layout(page, frame)
  }

  function askToSignIn(ctx: Context): void {
    const next = ctx.method === 'GET' ? `?next=${encodeURIComponent(ctx.url)}` : ''
    const to = `/console/sign-in${ctx.path.replace(/\/$/, '') === '/console' ? '' : next}`
    // A redirection would be followed, and its page put into a piece of this one.
    if (ctx.get('HX-Request') !== '') {
      ctx.status = 204
      ctx.set('HX-Redirect', '/console/sign-in')
      return
    }
    ctx.status = 303
    ctx.redirect(to)
    ctx.body = ''
  }

  /** The only place here that answers an error. */
  async function answerError(ctx: Context, error: unknown): Promise<void> {
    const { requestId } = ctx.state
    if (error instanceof Refused || error instanceof InvalidInput) {
      // A form shows what is wrong with it by itself. This is for buttons.
      const text =
        error instanceof InvalidInput
          ? Object.entries(error.errors)
              .map(([name, texts]) => `${name} ${texts.join(' ')}`)
              .join(' ')
          : error.message
      return send(
        ctx,
        ctx.method === 'POST' && ctx.state.visitor
          ? { to: backTo(ctx), notice: { kind: 'bad', text } }
          : errorPage(422, 'This cannot be done', text),
      )
    }
    const isExposed = error instanceof StatusError || (error instanceof HttpError && error.expose)
    const status = isExposed ? error.status : isUnavailable(error) ? 503 : 500
    if (status >= 500)
      log.error(
        { err: error, requestId, method: ctx.method, path: withoutToken(ctx.path) },
        'A page of the console failed',
      )
    if (isExposed) ctx.set(error.headers ?? {})
    const [title, text] = ERRORS[status] ?? ['This cannot be done', (error as Error).message]
    await sendPage(
      ctx,
      errorPage(
        status,
        title,
        `${text}${status >= 500 ? ` When you report it, name request ${requestId}.` : ''}`,
      ),
    )
  }

  const serveRoutes = router.routes() as unknown as Middleware
  return async (ctx, next: Next) => {
    if (ctx.path !== '/console' && !ctx.path.startsWith('/console/')) return next()
    ctx.set({
      'Content-Security-Policy': POLICY,
      'Referrer-Policy': 'same-origin',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    })
    try {
      if (ctx.path.startsWith('/console/assets/')) return await sendAsset(ctx, assets)
      assertSameOrigin(ctx, config)
      await serveRoutes(ctx as never, async () => {})
      if (ctx.status === 404 && ctx.body == null) {
        ctx.state.visitor ??= await signedIn(ctx)
        ctx.throw(404)
      }
    } catch (error) {
      await answerError(ctx, error)
    }
  }
}

const ERRORS: Record<number, [string, string]> = {
  403: [
    'Not from here',
    'This was sent from another site, so nothing was done. Open the console and try again.',
  ],
  404: ['Not found', 'There is nothing at this address, or not for you.'],
  413: ['Too large', 'What was sent is too large, or has too many fields.'],
  500: ['Something went wrong', 'The mistake is on our side, and nothing was changed.'],
  503: [
    'Not available just now',
    'The service is not available just now. Try again in a few seconds.',
  ],
}

/** The link of an invitation is a secret. */
function withoutToken(path: string): string {
  return path.replace(/^(\/console\/invitation\/).*/i, '$1[secret]')
}

/** Cross-site request forgery: SameSite keeps the cookie from other sites, but not from other ports and hosts of this one. What a browser says
 *  of where a request comes from does. Who sends neither header is no browser, and holds no cookie but on purpose. */
function assertSameOrigin(ctx: Context, { baseUrl }: Pick<Config, 'baseUrl'>): void {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return
  const site = ctx.get('Sec-Fetch-Site')
  if (site !== '') {
    if (site !== 'same-origin' && site !== 'none') ctx.throw(403)
    return
  }
  const origin = ctx.get('Origin')
  if (
    origin !== '' &&
    !(
      URL.canParse(origin) &&
      [ctx.get('Host'), new URL(baseUrl).host].includes(new URL(origin).host)
    )
  )
    ctx.throw(403)
}

async function readForm(ctx: Context, limit: number): Promise<URLSearchParams> {
  if (ctx.is('urlencoded') === false)
    ctx.throw(415, 'A form must be application/x-www-form-urlencoded.')
  try {
    const text = await getRawBody(ctx.req, {
      limit,
      length: ctx.get('Content-Length') || undefined,
      encoding: 'utf8',
    })
    // Reading takes longer with the square of their number.
    if (countOf(text, '&') >= MAX_FIELDS) ctx.throw(413)
    const form = new URLSearchParams(text)
    // PostgreSQL takes no NUL.
    if (![...form].flat().every(isStorable))
      ctx.throw(400, 'A field holds the NUL character, which cannot be kept.')
    return form
  } catch (error) {
    if ((error as { type?: string }).type === 'entity.too.large') {
      ctx.set('Connection', 'close')
      ctx.throw(413)
    }
    throw error
  }
}

function countOf(text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count++
  return count
}

async function throttle(limiter: RateLimiter | undefined, key: string): Promise<void> {
  const state = await limiter?.consume(keyOf(key))
  if (!state?.allowed) throw new TooOften(state?.msBeforeNext ?? 0)
}

/** A hash: of one length, whatever was typed, and the table holds no address of anybody. */
function keyOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url')
}

/** The page that the button was on. */
function backTo(ctx: Context): string {
  const referer = ctx.get('Referer')
  if (!URL.canParse(referer)) return ''
  const { host, pathname, search } = new URL(referer)
  return host === ctx.get('Host') && pathname.startsWith('/console')
    ? `${pathname.slice('/console'.length)}${search}`
    : ''
}

function themeOf(ctx: Context): Theme {
  const kept = ctx.cookies.get('muster-theme')
  return themes.find((theme) => theme === kept) ?? 'system'
}

interface Assets {
  /** Changes with anything in it, so that it may be kept for ever. */
  folder: string
  files: Map<string, { type: string; bytes: Buffer; gzipped?: Promise<Buffer> }>
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLIENT = 'web/console/client'
const YEAR_S = 365 * 24 * 60 * MINUTE_S

function readAssets(): Assets {
  const read = (file: string): Buffer => readFileSync(join(ROOT, file))
  const css = Buffer.concat(stylesheets.map(read))
  const font = (name: string): { type: string; bytes: Buffer } => ({
    type: 'font/woff2',
    bytes: read(`node_modules/@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`),
  })
  const script = (file: string): { type: string; bytes: Buffer } => ({
    type: 'text/javascript; charset=utf-8',
    bytes: read(file),
  })
  const files: Assets['files'] = new Map(
    Object.entries({
      'console.css': { type: 'text/css; charset=utf-8', bytes: css },
      'console.js': script(`${CLIENT}/console.js`),
      'htmx.js': script('node_modules/htmx.org/dist/htmx.min.js'),
      'icon.svg': { type: 'image/svg+xml', bytes: read('web/shared/icon.svg') },
      'geist.woff2': font('geist'),
      'geist-mono.woff2': font('geist-mono'),
    }),
  )
  const hash = createHash('sha256')
  for (const [name, { bytes }] of files) hash.update(name).update(bytes)
  return { folder: `/console/assets/${hash.digest('hex').slice(0, 12)}`, files }
}

async function sendAsset(ctx: Context, { folder, files }: Assets): Promise<void> {
  const file = ctx.path.startsWith(`${folder}/`)
    ? files.get(ctx.path.slice(folder.length + 1))
    : undefined
  if (!file) return ctx.throw(404)
  ctx.set('Cache-Control', `public, max-age=${YEAR_S}, immutable`)
  ctx.set('Content-Type', file.type)
  ctx.vary('Accept-Encoding')
  if (file.type === 'font/woff2' || ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
    ctx.body = file.bytes
    return
  }
  file.gzipped ??= promisify(gzip)(file.bytes, { level: 9 })
  ctx.set('Content-Encoding', 'gzip')
  ctx.body = await file.gzipped
}
