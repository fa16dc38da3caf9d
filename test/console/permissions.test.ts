/** The permissions of each kind of user on each route of the console. The rules come from the
 *  specification, not from the routes. */
import { beforeAll, describe, expect, it } from 'vitest'
import { readSchema } from '../../records/database/schema.ts'
import { accountScope } from '../../records/database/scope.ts'
import {
  findUser,
  type Grant,
  modules,
  type Permissions,
  type Role,
  type User,
} from '../../records/users.ts'
import { routes } from '../../web/console/routes.ts'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { type ConsoleRequest, MODULES, requestsOf } from './every-route.ts'
import { inEveryModule, newConsoleUser, type Visitor, visitor } from './visitors.ts'

interface Actor {
  role: Role
  grants: Grant[]
  permissions: Permissions
}

const ACTORS: Actor[] = [
  { role: 'owner', grants: [], permissions: inEveryModule('write') },
  ...([[], ['api_keys'], ['webhooks'], ['api_keys', 'webhooks']] satisfies Grant[][]).map(
    (grants): Actor => ({ role: 'admin', grants, permissions: inEveryModule('none') }),
  ),
  { role: 'admin', grants: [], permissions: inEveryModule('write') },
  { role: 'member', grants: [], permissions: inEveryModule('none') },
  { role: 'member', grants: [], permissions: inEveryModule('read') },
  { role: 'member', grants: [], permissions: inEveryModule('write') },
  ...modules.flatMap((module) =>
    (['read', 'write'] as const).map(
      (level): Actor => ({
        role: 'member',
        grants: [],
        permissions: { ...inEveryModule('none'), [module]: level },
      }),
    ),
  ),
]

/** Of every record of the account. */
const NAME = 'Secret Name'

const nameOf = ({ role, grants, permissions }: Actor): string =>
  `${role} [${grants}] ${modules.map((module) => `${module}:${permissions[module]}`).join(' ')}`

/** Whether the specification permits the request. `path` is the template of the route. */
function isPermittedBySpecification(
  { role, grants, permissions }: Actor,
  method: string,
  path: string,
  params: Record<string, string>,
): boolean {
  const [area = '', ...segments] = path.split('/').slice(1)
  const isGet = method === 'GET'
  const isAdmin = role !== 'member'
  const manages = (grant: Grant): boolean => role === 'owner' || grants.includes(grant)
  switch (area) {
    case '':
    case 'me':
    case 'search':
      return true
    case 'requests':
    case 'requests.csv':
    case 'deliveries':
      return isAdmin
    case 'events':
      return isGet ? isAdmin : manages('webhooks')
    case 'api-keys':
      return isGet && segments.length === 0 ? isAdmin : manages('api_keys')
    case 'webhooks': {
      const isForm = /^(new|edit|secret|send-missed|retry-failed|retry-waiting)$/.test(
        segments.at(-1) ?? '',
      )
      return isGet && !isForm ? isAdmin : manages('webhooks')
    }
    case 'notifications':
      return manages('webhooks')
    case 'people':
    case 'settings':
    case 'audit-log':
    case 'audit-log.csv':
    case 'audit-log.ndjson':
      return role === 'owner'
    case 'records': {
      // Without a resource in the path, it is a page of imports.
      const { resource = 'imports' } = params as { resource?: keyof typeof MODULES }
      const level = permissions[MODULES[resource]]
      if (segments.at(-1) === 'export') return permissions.exports === 'write' && level !== 'none'
      const isForm = /^(new|edit|delete|set-status|:upload)$/.test(segments.at(-1) ?? '')
      return isGet && !isForm ? level !== 'none' : level === 'write'
    }
    default:
      throw new Error(`There is no rule for ${path}`)
  }
}

describe('permissions on each route', () => {
  let account: TestAccount
  let requests: ConsoleRequest[]

  const app = sharedApp()
  beforeAll(async () => {
    account = await app.newAccount()
    requests = await requestsOf(app, account, NAME)
  })

  const send = (user: Visitor, { method, path }: ConsoleRequest) =>
    method === 'GET' ? user.get(path) : user.post(path)

  /** Expects that the page opens. The file of the export or import does not open: it needs the
   *  permission for participants, and the job is still in progress. The columns of an upload need
   *  records that the user may change. */
  function expectOpen(
    { path, template }: ConsoleRequest,
    status: number,
    permissions: Permissions,
  ): void {
    const fileStatus = permissions.participants === 'none' ? 403 : 409
    const { exports, ...others } = permissions
    const uploadStatus = Object.values(others).includes('write') ? 200 : 403
    const expected = template.endsWith(':upload') ? uploadStatus : 200
    expect(status, `GET ${path}`).toBe(path.endsWith('/file') ? fileStatus : expected)
  }

  /** All rows of the tables that change only by requests, as JSON. */
  async function readTables(): Promise<Record<string, string[]>> {
    // Each form changes `rate_limits` on PostgreSQL, and the service `clock_spans` every minute.
    const tables = Object.keys(await readSchema(app.db)).filter(
      (name) => name !== 'rate_limits' && name !== 'clock_spans',
    )
    const rows = await Promise.all(tables.map((table) => app.db.read(table).select()))
    return Object.fromEntries(
      tables.map((table, index) => [
        table,
        (rows[index] ?? []).map((row) => JSON.stringify(row)).toSorted(),
      ]),
    )
  }

  it('the test covers every route', () => {
    expect(new Set(requests.map(({ method, template }) => `${method} ${template}`))).toEqual(
      new Set(routes.filter(({ access }) => access).map(({ method, path }) => `${method} ${path}`)),
    )
  })

  it.each(ACTORS.map((actor) => ({ name: nameOf(actor), actor })))(
    '$name: opens what the specification permits, and gets 404 without effect for the rest',
    async ({ actor }) => {
      const person =
        actor.role === 'owner' ? account : await newConsoleUser(app, account.accountId, actor)
      const actorVisitor = await visitor(app, person)
      const user = (await findUser(
        accountScope({ dialect: app.db.dialect, sql: app.db.read }, account.accountId),
        person.userId,
      )) as User
      const isPermitted = ({ method, template, params }: ConsoleRequest): boolean =>
        isPermittedBySpecification(actor, method, template, params)

      const before = await readTables()
      for (const request of requests.filter((request) => !isPermitted(request))) {
        const { status, text } = await send(actorVisitor, request)
        expect(status, `${request.method} ${request.path}`).toBe(404)
        expect(text).toContain('This page does not exist, or you don’t have access.')
      }
      expect(await readTables()).toEqual(before)

      for (const request of requests.filter(isPermitted)) {
        if (request.method === 'GET')
          expectOpen(request, (await actorVisitor.get(request.path)).status, actor.permissions)
        else expect(routePermits(user, request), `POST ${request.path}`).toBe(true)
      }
    },
  )

  const hasId = ({ template }: ConsoleRequest): boolean =>
    /:(request|event|key|webhook|job|delivery|user|record|session|upload)\b/.test(template)

  it('the owner of another account: 404 without effect for every path with an ID', async () => {
    const stranger = await visitor(app, await app.newAccount())
    const before = await readTables()
    for (const request of requests.filter(hasId)) {
      const { status, text } = await send(stranger, request)
      expect(status, `${request.method} ${request.path}`).toBe(404)
      expect(text).not.toContain(NAME)
    }
    expect(await readTables()).toEqual(before)
  })

  it('the owner of another account: no name of this account on any page', async () => {
    const owner = await visitor(app, account)
    const stranger = await visitor(app, await app.newAccount())
    const withName: string[] = []
    for (const request of requests.filter(
      (request) => request.method === 'GET' && !hasId(request),
    )) {
      const { path } = request
      if ((await owner.get(path)).text.includes(NAME)) withName.push(path)
      const { status, text } = await stranger.get(path)
      expectOpen(request, status, inEveryModule('write'))
      expect(text, path).not.toContain(NAME)
    }
    expect(withName).toEqual(
      expect.arrayContaining(['/webhooks', '/people', '/records/participants', '/requests.csv']),
    )
  })

  it('a guest: redirected to the sign-in page for every route', async () => {
    const guest = await visitor(app)
    for (const request of requests) {
      const { status, to } = await send(guest, request)
      expect(status, `${request.method} ${request.path}`).toBe(303)
      expect(to).toMatch(/^\/sign-in/)
    }
  })
})

/** Whether the route permits the POST request. Does not send the request, which would change the
 *  records of other tests. */
function routePermits(user: User, { template, params }: ConsoleRequest): boolean {
  const route = routes.find(({ method, path }) => method === 'POST' && path === template)
  return route !== undefined && route.access?.(user, params) === true
}
