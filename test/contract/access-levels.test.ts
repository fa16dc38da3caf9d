/** What a key may do by its access level, and by the permissions of its owner: service-spec §5. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { OperationId } from '../../generated/operations.ts'
import { resources } from '../../generated/resources.ts'
import { modules } from '../../records/users.ts'
import { newConsoleUser, visitor } from '../console/visitors.ts'
import { expectSuccess, operationExample } from '../handlers/new-records.ts'
import {
  type Answer,
  type Client,
  operationIds,
  operationOf,
  sharedApp,
  type TestAccount,
} from '../helpers.ts'
import { createOneOfEach, fillPath, fixtureFor, sendCreate } from '../resources.ts'

let account: TestAccount
let client: Client
/** The ID of a record of each resource of the account, by type. */
let ids: Record<string, string>
const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
  client = app.as(account)
  ids = await createOneOfEach(client)
})

const operationsWith = (access: 'read' | 'write'): OperationId[] =>
  operationIds.filter((id) => operationOf(id).access === access)

/** Sends a valid request of the operation to the record of its resource. */
function request(key: string, id: OperationId): Promise<Answer> {
  const { method, path } = operationOf(id)
  const body = operationExample(operationOf(id))
  return app.call(method.toUpperCase(), fillPath(path, ids), { key, body })
}

describe('Full Access', () => {
  test.each(resources)('$slug: creates, reads, updates and deletes', async (resource) => {
    const path = `/${resource.slug}`
    const created = await sendCreate(client, resource, await fixtureFor(resource).newBody(client))
    expect(created.status).toBe(201)
    const recordPath = `${path}/${created.body.id}`
    expect((await client.get(path)).status).toBe(200)
    expect((await client.get(recordPath)).status).toBe(200)
    if (resource.operations.update) expect((await client.patch(recordPath, {})).status).toBe(200)
    expect((await client.delete(recordPath)).status).toBe(204)
  })
})

describe('Read Only', () => {
  test.each(operationsWith('read'))('%s: permitted', async (id) => {
    const { status } = await request(await app.newKey(account, 'read_only'), id)
    // The files of a queued export and a queued import do not exist yet.
    expect(status).toBe(['getExportFile', 'getImportErrors'].includes(id) ? 409 : 200)
  })

  test.each(operationsWith('write'))('%s: 403, and nothing changes', async (id) => {
    const countEvents = async (): Promise<number> =>
      (await expectSuccess(client.get('/events'))).meta.total
    const before = await countEvents()
    expect((await request(await app.newKey(account, 'read_only'), id)).status).toBe(403)
    expect(await countEvents()).toBe(before)
  })
})

describe('the permissions of the key’s owner', () => {
  const isFinance = (id: OperationId): boolean => operationOf(id).permission === 'finance'

  test('no permission in the web interface: all data by API, except Finance', async () => {
    const permissions = Object.fromEntries(modules.map((module) => [module, 'none'] as const))
    const person = await newConsoleUser(app, account.accountId, { role: 'member', permissions })
    const key = await app.newKey(person)
    const personVisitor = await visitor(app, person)
    for (const { slug, type, operations } of resources) {
      expect([slug, (await personVisitor.get(`/records/${slug}/${ids[type]}`)).status]).toEqual([
        slug,
        404,
      ])
      const statuses = [await request(key, operations.list), await request(key, operations.get)]
      const want = isFinance(operations.list) ? 403 : 200
      expect([slug, ...statuses.map(({ status }) => status)]).toEqual([slug, want, want])
    }
    expect((await app.as({ key }).post('/tasks', { title: 'Call' })).status).toBe(201)
  })

  const finance = operationIds.filter(isFinance)
  test.each(['none', 'read', 'write'] as const)('Finance: %s', async (permission) => {
    const user = await app.newUser(account.accountId, { finance: permission })
    const key = await app.newKey({ ...account, ...user })
    expect(finance.length).toBeGreaterThan(0)
    for (const id of finance) {
      const permitted = { none: [], read: ['read'], write: ['read', 'write'] }[permission]
      const { status } = await request(key, id)
      const isRefused = !(permitted as string[]).includes(operationOf(id).access)
      expect([id, status === 403]).toEqual([id, isRefused])
    }
  })
})
