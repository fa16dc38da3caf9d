/** Who may open what: every address of the console for every kind of user, by what the specification grants and not by what the pages say. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startSession } from '../../auth/session.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { listDeliveries } from '../../records/deliveries.ts'
import { insertRequests } from '../../records/request-log.ts'
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
import { failedIn, startBulkJob } from '../../webhooks/bulk.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'
import { newPerson, type Person, type Visitor, visitor } from './visitors.ts'

/** By the segment of its address. decisions.md: job applications belong to jobs, payments are Finance. */
const MODULES = {
  participants: 'participants',
  tasks: 'tasks',
  jobs: 'jobs',
  'job-applications': 'jobs',
  exports: 'exports',
  payments: 'finance',
} as const

const all = (permission: 'none' | 'read' | 'write'): Permissions =>
  Object.fromEntries(modules.map((module) => [module, permission])) as Permissions

interface Actor {
  role: Role
  grants: Grant[]
  permissions: Permissions
}

const ACTORS: Actor[] = [
  ...([[], ['api_keys'], ['webhooks'], ['api_keys', 'webhooks']] satisfies Grant[][]).map(
    (grants): Actor => ({ role: 'admin', grants, permissions: all('none') }),
  ),
  { role: 'admin', grants: [], permissions: all('write') },
  { role: 'member', grants: [], permissions: all('none') },
  { role: 'member', grants: [], permissions: all('read') },
  { role: 'member', grants: [], permissions: all('write') },
  ...modules.flatMap((module) =>
    (['read', 'write'] as const).map(
      (level): Actor => ({
        role: 'member',
        grants: [],
        permissions: { ...all('none'), [module]: level },
      }),
    ),
  ),
]

const nameOf = ({ role, grants, permissions }: Actor): string =>
  `${role} [${grants}] ${modules.map((module) => `${module}:${permissions[module]}`).join(' ')}`

/** What the specification lets each of them do. */
function mayOpen(
  { role, grants, permissions }: Actor,
  method: string,
  path: string,
  params: Record<string, string>,
): boolean {
  const [area = '', ...rest] = path.split('/').slice(1)
  const isLook = method === 'GET'
  const isAdmin = role !== 'member'
  const manages = (grant: Grant): boolean => role === 'owner' || grants.includes(grant)
  switch (area) {
    case '':
    case 'me':
      return true
    case 'requests':
    case 'requests.csv':
      return isAdmin
    case 'api-keys':
      return isLook && rest.length === 0 ? isAdmin : manages('api_keys')
    case 'webhooks': {
      const isForm = /^(new|edit|secret|send-missed|retry-failed)$/.test(rest.at(-1) ?? '')
      return isLook && !isForm ? isAdmin : manages('webhooks')
    }
    case 'people':
    case 'settings':
    case 'audit-log':
      return role === 'owner'
    case 'records': {
      const resource = params.resource as keyof typeof MODULES
      const level = permissions[MODULES[resource]]
      const isForm = /^(new|edit|delete)$/.test(rest.at(-1) ?? '')
      return isLook && !isForm ? level !== 'none' : level === 'write'
    }
    default:
      throw new Error(`There is no rule for ${path}`)
  }
}

interface Address {
  method: 'GET' | 'POST'
  template: string
  path: string
  params: Record<string, string>
}

/** What the contract has no operation for is nowhere, whoever asks. */
const isPossible = ({ template, params: { resource } }: Address): boolean =>
  !(resource === 'exports' && template.endsWith('/edit')) &&
  !(template.endsWith('/file') && resource !== 'exports')

describe('permissions on each route', () => {
  let app: TestApp
  let account: TestAccount
  let addresses: Address[]

  beforeAll(async () => {
    app = await startApp()
    account = await app.newAccount()
    addresses = (await addressesOf(app, account)).filter(isPossible)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const send = (who: Visitor, { method, path }: Address) =>
    method === 'GET' ? who.get(path) : who.post(path)

  it('the test covers every route', () => {
    expect(new Set(addresses.map(({ method, template }) => `${method} ${template}`))).toEqual(
      new Set(routes.filter(({ access }) => access).map(({ method, path }) => `${method} ${path}`)),
    )
  })

  it('the owner may open every page', async () => {
    const owner = await visitor(app, account)
    for (const address of addresses) {
      if (address.method === 'POST') continue
      const { status } = await owner.get(address.path)
      // The file of an export that is still being made.
      expect(
        [200, ...(address.path.endsWith('/file') ? [303, 409] : [])],
        `GET ${address.path}`,
      ).toContain(status)
    }
  })

  it.each(ACTORS.map((actor) => ({ name: nameOf(actor), actor })))('$name', async ({ actor }) => {
    const person = await newPerson(app, account.accountId, actor)
    const who = await visitor(app, person)
    const user = (await findUser(
      accountScope({ dialect: app.db.dialect, sql: app.db.read }, account.accountId),
      person.userId,
    )) as User
    for (const address of addresses) {
      const { method, template, path, params } = address
      const isAllowed = mayOpen(actor, method, template, params)
      const what = `${method} ${path}`
      if (!isAllowed) {
        const { status, text } = await send(who, address)
        expect(status, what).toBe(404)
        expect(text, what).toContain('This page does not exist, or you don’t have access.')
      } else if (method === 'GET') expect((await who.get(path)).status, what).not.toBe(404)
      else expect(mayPost(user, template, params), what).toBe(true)
    }
  })

  it('refused requests changed nothing', async () => {
    const scope = accountScope({ dialect: app.db.dialect, sql: app.db.read }, account.accountId)
    const [webhook] = await scope
      .rows('webhooks')
      .select('enabled', 'deleted_at', 'next_secret_encrypted')
    expect(Boolean(webhook.enabled)).toBe(true)
    expect(webhook).toMatchObject({ deleted_at: null, next_secret_encrypted: null })
    expect(await scope.rows('api_keys').whereNotNull('revoked_at')).toEqual([])
    expect(await scope.rows('users').where({ status: 'deactivated' })).toEqual([])
    for (const table of [
      'participants',
      'tasks',
      'jobs',
      'job_applications',
      'exports',
      'payments',
    ])
      expect(await scope.rows(table).pluck('id'), table).toHaveLength(1)
  })

  it('the owner of another account: 404 for every URL with an ID', async () => {
    const stranger = await visitor(app, await app.newAccount())
    for (const address of addresses) {
      if (!/:(request|key|webhook|job|delivery|user|record|session)\b/.test(address.template))
        continue
      const { status, text } = await send(stranger, address)
      expect(status, `${address.method} ${address.path}`).toBe(404)
      expect(text).not.toContain('Secret Name')
    }
  })

  it('a guest: redirected to the sign-in page for every route', async () => {
    const nobody = await visitor(app)
    for (const address of addresses) {
      const { status, to } = await send(nobody, address)
      expect(status, `${address.method} ${address.path}`).toBe(303)
      expect(to).toMatch(/^\/sign-in/)
    }
  })
})

function mayPost(user: User, template: string, params: Record<string, string>): boolean {
  const route = routes.find(({ method, path }) => method === 'POST' && path === template)
  return route !== undefined && route.access?.(user, params) === true
}

/** Every address of somebody who is signed in, with ids that there are. */
async function addressesOf(app: TestApp, account: TestAccount): Promise<Address[]> {
  const { key, ...ids } = await makeOneOfEach(app, account)
  const records: Record<string, string> = ids.records
  return routes
    .filter(({ access }) => access)
    .flatMap(({ method, path: template }) => {
      const resources = template.includes(':resource') ? Object.keys(MODULES) : [undefined]
      return resources.map((resource): Address => {
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

async function makeOneOfEach(app: TestApp, account: Person & { key: string }) {
  const { accountId, userId } = account
  const api = app.as(account)
  const now = new Date()
  const { db } = app
  const webhook = await transaction(db, (trx) => {
    const given = {
      url: 'http://127.0.0.1:9/',
      description: 'Secret Name',
      eventTypes: ['*'],
      createdBy: userId,
    }
    return insertWebhook(
      writeScope(trx, accountId),
      given,
      (id) => sealSecret(app.config.secretKeys.newest(), id, newSecret()),
      now,
    )
  })
  const made = async (path: string, body: object): Promise<string> =>
    (await api.post(path, body)).body.id
  const participants = await made('/participants', { full_name: 'Secret Name' })
  const tasks = await made('/tasks', { title: 'Secret Name' })
  const jobs = await made('/jobs', { title: 'Secret Name', status: 'open' })
  const applications = await made('/job-applications', {
    job_id: jobs,
    participant_id: participants,
  })
  const payments = await made('/payments', {
    participant_id: participants,
    amount_minor: 1,
    currency: 'EUR',
  })
  const exports = await made('/exports', { resource: 'participants', format: 'csv' })
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, accountId)
  const [delivery] = await listDeliveries(scope, { webhookId: webhook.id, limit: 1 })
  const apiKeyId = (await scope.rows('api_keys').first('id')).id
  await insertRequests(db.write, [
    {
      accountId,
      userId,
      apiKeyId,
      requestId: randomUUID(),
      operationId: 'listParticipants',
      method: 'GET',
      path: '/public/v1/participants?filter[search]=Secret Name',
      status: 200,
      durationMs: 1,
      ip: '127.0.0.1',
      requestBody: null,
      responseBody: '{}',
      at: now.getTime(),
    },
  ])
  const selection = failedIn(webhook.id, null, { since: new Date(now.getTime() - 1_000) }, now)
  const job = await startBulkJob(db, accountId, selection, { rate: 1, createdBy: userId }, now)
  const { id: session } = await startSession(
    scope,
    { userId, ip: '127.0.0.1', userAgent: 'Secret Name' },
    now,
  )
  return {
    key: apiKeyId as string,
    params: {
      webhook: webhook.id,
      delivery: delivery?.id ?? '',
      job: job.id,
      request: (await scope.rows('request_log').first('id')).id as string,
      user: (await newPerson(app, accountId, { fullName: 'Secret Name' })).userId,
      session,
    },
    records: { participants, tasks, jobs, 'job-applications': applications, payments, exports },
  }
}
