/** The settings of the account, and the transfer of its ownership. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { transferOwnership, updateUserStatus } from '../../records/users.ts'
import { routes } from '../../web/console/routes.ts'
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'
import { listActions, newConsoleUser, PASSWORD, type Visitor, visitor } from './visitors.ts'

async function listOwnerIds(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('users').where({ account_id: accountId, role: 'owner' }).pluck('id')
}

describe('settings', () => {
  let app: TestApp
  let account: TestAccount
  let owner: Visitor
  beforeAll(async () => {
    app = await startApp({ environment: { EVENT_RETENTION_DAYS: '45' } })
    account = await app.newAccount()
    owner = await visitor(app, account)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  it('rename the account: 422 keeps a name that is too long; a valid name is stored and audited', async () => {
    const { status, text } = await owner.post('/settings', { name: 'x'.repeat(201) })
    expect(status).toBe(422)
    expect(text).toContain(`value="${'x'.repeat(201)}"`)
    expect((await owner.submit('/settings', { name: 'Northwind' })).text).toContain(
      'Account renamed to Northwind.',
    )
    expect((await owner.get('/audit-log')).text).toMatch(/Name: Test account.*Northwind/s)
  })

  it('shows the limits and the retention of the service', async () => {
    const { text } = await owner.get('/settings')
    expect(text).toContain('1,000,000 requests per minute')
    expect(text).toMatch(/Records<\/dt>\s*<dd>0 <span class="muted">of 1,000,000</)
    expect(text).toContain('per minute and user, over all their API keys')
    expect(text).toContain('Kept for 45 days, with their deliveries')
    expect(text).toContain('after their delivery ended')
    expect(text).toContain(`${app.config.baseUrl}/public/v1`)
  })
})

describe('transfer of ownership', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  /** An account whose owner has a password, with two other users. */
  async function newTeam() {
    const account = await app.newAccount()
    const [owner, first, second] = await Promise.all(
      ['Mara', 'Jonas', 'Priya'].map((fullName) =>
        newConsoleUser(app, account.accountId, { fullName }),
      ),
    )
    if (!owner || !first || !second) throw new Error('Three users were created')
    await app.db.write('users').where({ id: account.userId }).update({ role: 'admin' })
    await app.db.write('users').where({ id: owner.userId }).update({ role: 'owner' })
    return { ...account, owner, first, second }
  }

  it('the new owner gets every permission, the old one becomes an Admin with both grants', async () => {
    const { accountId, owner, first } = await newTeam()
    const [old, newOwner] = [await visitor(app, owner), await visitor(app, first)]
    expect((await newOwner.get('/people')).status).toBe(404)
    const answer = await old.submit('/settings/transfer', {
      user: first.userId,
      current_password: PASSWORD,
    })
    expect(answer.text).toContain('Jonas is now the Account Owner. You are an Admin.')
    expect(await listOwnerIds(app, accountId)).toEqual([first.userId])
    const [before] = await app.db.read('users').where({ id: owner.userId })
    expect(before.role).toBe('admin')
    expect([before.can_manage_api_keys, before.can_manage_webhooks].map(Boolean)).toEqual([
      true,
      true,
    ])
    expect((await old.get('/people')).status).toBe(404)
    expect((await old.get('/api-keys/new')).status).toBe(200)
    expect((await newOwner.get('/people')).status).toBe(200)
    const [after] = await app.db.read('users').where({ id: first.userId })
    expect(after.finance_permission).toBe('write')
    expect((await newOwner.get('/audit-log')).text).toContain('Transferred the ownership')
  })

  it('422 without the password, or for a user who is not active or has not joined', async () => {
    const { accountId, owner, first, second } = await newTeam()
    await app.db.write('users').where({ id: first.userId }).update({ status: 'deactivated' })
    await app.db.write('users').where({ id: second.userId }).update({ password_hash: null })
    const other = await newConsoleUser(app, (await app.newAccount()).accountId)
    const old = await visitor(app, owner)
    for (const user of [first.userId, second.userId, other.userId, owner.userId, 'x', '']) {
      const { status, text } = await old.post('/settings/transfer', {
        user,
        current_password: PASSWORD,
      })
      expect(status).toBe(422)
      expect(text).toContain('Choose the new owner.')
    }
    await app.db.write('users').where({ id: first.userId }).update({ status: 'active' })
    const { text } = await old.post('/settings/transfer', {
      user: first.userId,
      current_password: 'wrong',
    })
    expect(text).toContain('This is not your current password.')
    expect(text).toContain(`value="${first.userId}" selected`)
    expect(await listOwnerIds(app, accountId)).toEqual([owner.userId])
  })

  it('two transfers at the same time: one succeeds, and there is one owner', async () => {
    for (let round = 0; round < 5; round++) {
      const { accountId, owner, first, second } = await newTeam()
      const [here, there] = [await visitor(app, owner), await visitor(app, owner)]
      const transfer = (from: Visitor, user: string) =>
        from.post('/settings/transfer', { user, current_password: PASSWORD })
      for (const { status } of await Promise.all([
        transfer(here, first.userId),
        transfer(there, second.userId),
      ]))
        expect(status).toBeLessThan(500)
      expect(await listOwnerIds(app, accountId)).toHaveLength(1)
      expect(
        (await listActions(app, accountId)).filter(
          (action) => action === 'account.ownership_transferred',
        ),
      ).toHaveLength(1)
    }
  })

  it('a deactivation of the new owner during the transfer: refused', async () => {
    const { accountId, owner, first } = await newTeam()
    const other = await visitor(app, owner)
    const { deactivation } = await transaction(app.db, async (trx) => {
      await transferOwnership(accountScope(trx, accountId), owner.userId, first.userId, new Date())
      const deactivation = other.post(`/people/${first.userId}/deactivate`)
      // Long enough for the deactivation to wait for this transaction.
      await delay(300)
      return { deactivation }
    })
    expect((await deactivation).status).toBeLessThan(500)
    const owners = await app.db
      .read('users')
      .where({ account_id: accountId, role: 'owner' })
      .select('id', 'status')
    expect(owners).toEqual([{ id: first.userId, status: 'active' }])
    expect(await listActions(app, accountId)).toEqual([])
  })

  it('a transfer to a user who is being deactivated: refused', async () => {
    const { accountId, owner, first } = await newTeam()
    const old = await visitor(app, owner)
    const { transfer } = await transaction(app.db, async (trx) => {
      await updateUserStatus(accountScope(trx, accountId), first.userId, 'deactivated', new Date())
      const transfer = old.submit('/settings/transfer', {
        user: first.userId,
        current_password: PASSWORD,
      })
      await delay(500)
      return { transfer }
    })
    expect((await transfer).text).toContain(
      'Choose an active user of the account who has set a password.',
    )
    expect(await listOwnerIds(app, accountId)).toEqual([owner.userId])
  })
})

describe('pages of the owner', () => {
  it('Admins and Members: 404 for every page and action, and nothing changes', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    const someone = await newConsoleUser(app, account.accountId)
    const admin = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { grants: ['api_keys', 'webhooks'] }),
    )
    const member = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { role: 'member' }),
    )
    const ownerRoutes = routes.filter(({ path }) => /^\/(people|settings|audit-log)\b/.test(path))
    expect(ownerRoutes.length).toBeGreaterThan(12)
    for (const { method, path } of ownerRoutes)
      for (const visitor of [admin, member]) {
        const own = path.replace(':user', someone.userId)
        const { status } =
          method === 'GET'
            ? await visitor.get(own)
            : await visitor.post(own, { full_name: 'x', name: 'x' })
        expect(status, `${method} ${path}`).toBe(404)
      }
    expect(
      await app.db.read('users').where({ id: someone.userId }).select('status', 'role'),
    ).toEqual([{ status: 'active', role: 'admin' }])
    expect(await listActions(app, account.accountId)).toEqual([])
  })
})
