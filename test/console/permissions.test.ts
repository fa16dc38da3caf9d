/** The permissions of each kind of user on each route of the console. The rules come from the
 *  specification, not from the routes. */
import { beforeAll, describe, expect, it } from 'vitest'
import { startSession } from '../../auth/session.ts'
import { readSchema } from '../../records/database/schema.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { listDeliveries } from '../../records/deliveries.ts'
import {
  findUser,
  type Grant,
  modules,
  type Permissions,
  type Role,
  type User,
} from '../../records/users.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { routes } from '../../web/console/routes.ts'
import { selectFailedDeliveries, startBulkJob } from '../../webhooks/bulk.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { sharedApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import { logRequests } from './logged-requests.ts'
import { inEveryModule, newConsoleUser, type Visitor, visitor } from './visitors.ts'

/** By the path segment of the resource: job applications belong to jobs, payments to Finance. */
const MODULES = {
  participants: 'participants',
  tasks: 'tasks',
  jobs: 'jobs',
  'job-applications': 'jobs',
  exports: 'exports',
  imports: 'exports',
  payments: 'finance',
} as const

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

interface ConsoleRequest {
  method: 'GET' | 'POST'
  /** The path of the route. `path` has the values of `params` in place of its parameters. */
  template: string
  path: string
  params: Record<string, string>
}

/** The contract has no operation that updates or exports an export or import, and only these have a
 *  file. The form of a new import has its own route, and its list has no filter for selected rows. */
const isPossible = ({ template, params: { resource } }: ConsoleRequest): boolean => {
  const hasFile = resource === 'exports' || resource === 'imports'
  if (resource === 'imports' && /:resource\/(new|delete)$/.test(template)) return false
  return (
    !(hasFile && /(edit|set-status|export)$/.test(template)) &&
    !(template.endsWith('/file') && !hasFile)
  )
}

describe('permissions on each route', () => {
  let account: TestAccount
  let requests: ConsoleRequest[]

  const app = sharedApp()
  beforeAll(async () => {
    account = await app.newAccount()
    requests = (await requestsOf(app, account)).filter(isPossible)
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
      expect(text).not.toContain('Secret Name')
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
      if ((await owner.get(path)).text.includes('Secret Name')) withName.push(path)
      const { status, text } = await stranger.get(path)
      expectOpen(request, status, inEveryModule('write'))
      expect(text, path).not.toContain('Secret Name')
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

/** A request for every route of signed-in users, with the IDs of existing records. */
async function requestsOf(app: TestApp, account: TestAccount): Promise<ConsoleRequest[]> {
  const { key, ...ids } = await createTargets(app, account)
  const records: Record<string, string> = ids.records
  return routes
    .filter(({ access }) => access)
    .flatMap(({ method, path: template }) => {
      const resources = template.includes(':resource') ? Object.keys(MODULES) : [undefined]
      return resources.map((resource): ConsoleRequest => {
        const params: Record<string, string> = {
          ...ids.params,
          key,
          ...(resource !== undefined && { resource, record: records[resource] ?? '' }),
        }
        const path = template.replace(
          /:([a-z]+)/g,
          (_, name: string) => params[name] ?? `no-${name}`,
        )
        return { method, template, path, params }
      })
    })
}

/** Creates what the parameters of routes name. Returns the IDs: of an API key, of records by
 *  resource, and of the rest by parameter. */
async function createTargets(app: TestApp, account: TestAccount) {
  const { accountId, userId } = account
  const api = app.as(account)
  const now = new Date()
  const { db } = app
  const seal = (id: string): string => sealSecret(app.config.secretKeys.newest(), id, newSecret())
  const webhook = await transaction(db, (trx) => {
    const input = {
      url: 'http://127.0.0.1:9/',
      description: 'Secret Name',
      eventTypes: ['*'],
      createdBy: userId,
    }
    return insertWebhook(writeScope(trx, accountId), input, seal, now)
  })
  const create = async (path: string, body: object | string, headers = {}): Promise<string> =>
    (await api.post(path, body, headers)).body.id
  const participants = await create('/participants', { full_name: 'Secret Name' })
  const tasks = await create('/tasks', { title: 'Secret Name' })
  const jobs = await create('/jobs', { title: 'Secret Name', status: 'open' })
  const applications = await create('/job-applications', {
    job_id: jobs,
    participant_id: participants,
  })
  const payments = await create('/payments', {
    participant_id: participants,
    amount_minor: 1,
    currency: 'EUR',
  })
  const exports = await create('/exports', { resource: 'participants', format: 'csv' })
  const query = 'resource=participants&mode=create'
  const imports = await create(`/imports?${query}`, 'full_name\nSecret Name', {
    'Content-Type': 'text/csv',
  })
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, accountId)
  const [delivery] = await listDeliveries(scope, { webhookId: webhook.id, limit: 1 })
  // Requests that are logged later would make two readings of the tables differ.
  await until('the seven API requests are in the log', async () => {
    const logged = await scope.rows('request_log').pluck('id')
    return logged.length === 7
  })
  const [request = ''] = await logRequests(app, account, [
    {
      operationId: 'listParticipants',
      path: '/public/v1/participants?filter[search]=Secret Name',
      at: now.getTime(),
    },
  ])
  const selection = selectFailedDeliveries(
    webhook.id,
    null,
    { since: new Date(now.getTime() - 1_000) },
    now,
  )
  const job = await startBulkJob(db, accountId, { selection, rate: 1, createdBy: userId }, now)
  const device = { userId, ip: '127.0.0.1', userAgent: 'Secret Name' }
  const { id: session } = await transaction(db, (trx) =>
    startSession(writeScope(trx, accountId), device, now),
  )
  return {
    key: (await scope.rows('api_keys').first('id')).id as string,
    params: {
      webhook: webhook.id,
      delivery: delivery?.id ?? '',
      event: delivery?.eventId ?? '',
      job: job.id,
      request,
      user: (await newConsoleUser(app, accountId, { fullName: 'Secret Name' })).userId,
      session,
      upload: imports,
    },
    records: {
      participants,
      tasks,
      jobs,
      'job-applications': applications,
      payments,
      exports,
      imports,
    },
  }
}
