/** Users of the console, by HTTP or in a browser. */
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { hashPassword } from '../../auth/password.ts'
import { startSession } from '../../auth/session.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import {
  type Grant,
  insertUser,
  modules,
  type Permission,
  type Permissions,
  type Role,
} from '../../records/users.ts'
import { loadAxe } from '../browser.ts'
import type { TestAccount, TestApp } from '../helpers.ts'

export const PASSWORD = 'correct horse battery staple'
let passwordHash: Promise<string> | undefined

function hashOfPassword(): Promise<string> {
  passwordHash ??= hashPassword(PASSWORD)
  return passwordHash
}

export interface ConsoleUser {
  accountId: string
  userId: string
}

export interface ConsoleUserOptions {
  role?: Role
  grants?: Grant[]
  permissions?: Partial<Permissions>
  fullName?: string
  email?: string
}

/** Another user of an account, who signs in with `PASSWORD`. */
export async function newConsoleUser(
  app: TestApp,
  accountId: string,
  options: ConsoleUserOptions = {},
): Promise<ConsoleUser & { email: string }> {
  const {
    role = 'admin',
    fullName = 'Test Person',
    email = `${randomUUID()}@example.com`,
    ...access
  } = options
  const user = { email, fullName, passwordHash: await hashOfPassword(), role, ...access }
  return {
    accountId,
    email,
    userId: await transaction(app.db, (trx) =>
      insertUser(writeScope(trx, accountId), user, new Date()),
    ),
  }
}

/** A new account whose Account Owner signs in with `PASSWORD`. */
export async function newAccountWithPassword(app: TestApp): Promise<TestAccount> {
  const account = await app.newAccount()
  await app.db
    .write('users')
    .where({ id: account.userId })
    .update({ password_hash: await hashOfPassword() })
  return account
}

/** The same permission in every module. */
export const inEveryModule = (permission: Permission): Permissions =>
  Object.fromEntries(modules.map((module) => [module, permission])) as Permissions

export const NO_ACCESS = inEveryModule('none')

export interface ConsoleAnswer {
  status: number
  headers: Headers
  text: string
  /** The target of a redirect, below /console. */
  to: string | undefined
}

export interface Visitor {
  /** `path` is below /console, as in all methods. Does not follow redirects. */
  get(path: string, headers?: Record<string, string>): Promise<ConsoleAnswer>
  /** An array sends its field once for each item. Does not follow redirects. */
  post(
    path: string,
    fields?: Record<string, string | string[]>,
    headers?: Record<string, string>,
  ): Promise<ConsoleAnswer>
  /** Posts, and follows the redirect if the response is one. */
  submit(path: string, fields?: Record<string, string | string[]>): Promise<ConsoleAnswer>
  /** The cookie of the session, which another sign-in replaces, and that of the last change's position. A
   *  guest stays one after a sign-in: the cookie stays empty. */
  readonly cookie: string
}

/** A signed-in user, whose session does not count against the limits of the sign-in page. Without
 *  `person`, a guest. */
export async function visitor(app: TestApp, person?: ConsoleUser): Promise<Visitor> {
  let cookie = person ? `muster-session=${await sessionToken(app, person)}` : ''
  let position = ''
  async function send(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<ConsoleAnswer> {
    const response = await fetch(`${app.url}/console${path}`, {
      method,
      redirect: 'manual',
      headers: { Cookie: cookie + position, ...headers },
      body,
    })
    const cookies = response.headers.getSetCookie().map((one) => one.split(';')[0] ?? '')
    const session = cookies.find((one) => one.startsWith('muster-session='))
    if (session && cookie) cookie = session
    const changedAt = cookies.find((one) => one.startsWith('muster-position='))
    if (changedAt) position = `; ${changedAt}`
    const to = response.headers.get('location')?.replace(/^\/console/, '')
    return { status: response.status, headers: response.headers, text: await response.text(), to }
  }
  const post: Visitor['post'] = (path, fields = {}, headers = {}) => {
    const form = new URLSearchParams(
      Object.entries(fields).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    )
    return send(
      'POST',
      path,
      { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      form.toString(),
    )
  }
  return {
    get cookie() {
      return cookie + position
    },
    get: (path, headers = {}) => send('GET', path, headers),
    post,
    async submit(path, fields) {
      const answer = await post(path, fields)
      return answer.to === undefined ? answer : send('GET', answer.to, {})
    },
  }
}

/** A new account, and its Account Owner in the console. */
export async function newAccountOwner(
  app: TestApp,
): Promise<{ account: TestAccount; owner: Visitor }> {
  const account = await app.newAccount()
  return { account, owner: await visitor(app, account) }
}

/** A Member of the account with only these permissions. */
export async function memberWith(
  app: TestApp,
  { accountId }: Pick<ConsoleUser, 'accountId'>,
  permissions: Partial<Permissions>,
): Promise<Visitor> {
  const access = { role: 'member', permissions: { ...NO_ACCESS, ...permissions } } as const
  return visitor(app, await newConsoleUser(app, accountId, access))
}

async function sessionToken(app: TestApp, { accountId, userId }: ConsoleUser): Promise<string> {
  const device = { userId, ip: '127.0.0.1', userAgent: 'test' }
  const { token } = await transaction(app.db, (trx) =>
    startSession(writeScope(trx, accountId), device, new Date()),
  )
  return token
}

export interface BrowserVisit extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** Errors in the browser's console, such as violations of the content security policy, and
   *  requests to other hosts. */
  troubles: string[]
}

export type VisitOptions = BrowserContextOptions & { person?: ConsoleUser }

/** Opens a path below /console in a browser. Without `person`, as a guest. */
export async function visit(
  app: TestApp,
  browser: Browser,
  path: string,
  { person, ...options }: VisitOptions = {},
): Promise<BrowserVisit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(20_000)
  await loadAxe(context)
  if (person)
    await context.addCookies([
      {
        name: 'muster-session',
        value: await sessionToken(app, person),
        url: app.url,
        httpOnly: true,
      },
    ])
  const page = await context.newPage()
  const troubles: string[] = []
  page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()))
  page.on('pageerror', (error) => troubles.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(app.url)) troubles.push(`a request to ${request.url()}`)
  })
  await page.goto(`${app.url}/console${path}`, { waitUntil: 'load' })
  return { page, context, troubles, [Symbol.asyncDispose]: () => context.close() }
}

/** The path of the one-time link on a page, below /console. Throws if there is none. */
export function linkIn({ text, status }: ConsoleAnswer): string {
  const [, token] = text.match(/\/console\/invitation\/([\w-]{43})/) ?? []
  if (status !== 200 || token === undefined) throw new Error(`No link on the page: ${text}`)
  return `/invitation/${token}`
}

/** The token of an API key. */
export const TOKEN_PATTERN = /mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}/

/** The header with the session cookie of a response that signed a user in. */
export function sessionOf({ headers }: ConsoleAnswer): Record<string, string> {
  return { Cookie: headers.get('set-cookie')?.split(';')[0] ?? '' }
}

/** The actions in the audit log, oldest first. */
export async function listActions(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('audit_log').where({ account_id: accountId }).orderBy('id').pluck('action')
}

/** Posts from another loopback IP address. Returns the status. */
export function postFrom(
  localAddress: string,
  app: TestApp,
  path: string,
  fields: Record<string, string>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const message = request(`${app.url}/console${path}`, {
      method: 'POST',
      localAddress,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    })
    message.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    message.on('error', reject)
    message.end(new URLSearchParams(fields).toString())
  })
}
