/** People who use the console: signed in, by HTTP or in a browser. */
import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { hashPassword } from '../../auth/password.ts'
import { startSession } from '../../auth/session.ts'
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Grant, insertUser, type Permissions, type Role } from '../../records/users.ts'
import type { TestApp } from '../helpers.ts'

export const PASSWORD = 'correct horse battery staple'
let passwordHash: Promise<string> | undefined

export interface Person {
  accountId: string
  userId: string
}

export interface NewPerson {
  role?: Role
  grants?: Grant[]
  permissions?: Partial<Permissions>
  fullName?: string
  email?: string
}

/** Another user of an account, who signs in with `PASSWORD`. */
export async function newPerson(
  app: TestApp,
  accountId: string,
  options: NewPerson = {},
): Promise<Person & { email: string }> {
  passwordHash ??= hashPassword(PASSWORD)
  const {
    role = 'admin',
    fullName = 'Test Person',
    email = `${randomUUID()}@example.com`,
    ...rest
  } = options
  const user = { email, fullName, passwordHash: await passwordHash, role, ...rest }
  return {
    accountId,
    email,
    userId: await transaction(app.db, (trx) =>
      insertUser(accountScope(trx, accountId), user, new Date()),
    ),
  }
}

export interface ConsoleAnswer {
  status: number
  headers: Headers
  text: string
  /** Of a redirection, below /console. */
  to: string | undefined
}

export interface Visitor {
  /** `path` is below /console. Follows nothing. */
  get(path: string, headers?: Record<string, string>): Promise<ConsoleAnswer>
  /** A list is a field given several times. */
  post(
    path: string,
    fields?: Record<string, string | string[]>,
    headers?: Record<string, string>,
  ): Promise<ConsoleAnswer>
  /** As `post`, and then the page that it leads to, which says what was done. */
  submit(path: string, fields?: Record<string, string | string[]>): Promise<ConsoleAnswer>
  cookie: string
}

/** Somebody who is signed in: a session as signing in makes it, without its throttle. Undefined: nobody is. */
export async function visitor(app: TestApp, person?: Person): Promise<Visitor> {
  const cookie = person ? `muster-session=${await sessionToken(app, person)}` : ''
  async function request(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<ConsoleAnswer> {
    const response = await fetch(`${app.url}/console${path}`, {
      method,
      redirect: 'manual',
      headers: { Cookie: cookie, ...headers },
      body,
    })
    const to = response.headers.get('location')?.replace(/^\/console/, '')
    return { status: response.status, headers: response.headers, text: await response.text(), to }
  }
  const post: Visitor['post'] = (path, fields = {}, headers = {}) => {
    const form = new URLSearchParams(
      Object.entries(fields).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    )
    return request(
      'POST',
      path,
      { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      form.toString(),
    )
  }
  return {
    cookie,
    get: (path, headers = {}) => request('GET', path, headers),
    post,
    async submit(path, fields) {
      const answer = await post(path, fields)
      return answer.to === undefined ? answer : request('GET', answer.to, {})
    },
  }
}

async function sessionToken(app: TestApp, { accountId, userId }: Person): Promise<string> {
  const scope = accountScope({ dialect: app.db.dialect, sql: app.db.write }, accountId)
  return (await startSession(scope, { userId, ip: '127.0.0.1', userAgent: 'test' }, new Date()))
    .token
}

export interface BrowserVisit extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** What the browser complained about, breaches of the content security policy among it, and requests to elsewhere. */
  troubles: string[]
}

/** Somebody in a browser, signed in unless `person` is left out, at a path below /console. */
export async function visit(
  app: TestApp,
  browser: Browser,
  path: string,
  { person, ...options }: BrowserContextOptions & { person?: Person } = {},
): Promise<BrowserVisit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(20_000)
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
