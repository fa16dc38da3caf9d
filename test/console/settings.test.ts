/** The settings of the account, and the transfer of its ownership. */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { transferOwnership, updateUserStatus } from '../../records/users.ts'
import { routes } from '../../web/console/routes.ts'
import { sharedApp, type TestApp } from '../helpers.ts'
import {
  listActions,
  newAccountOwner,
  newAccountWithPassword,
  newConsoleUser,
  PASSWORD,
  type Visitor,
  visitor,
} from './visitors.ts'

/** Within this time, a request that needs a locked row has begun to wait for the lock. */
const REACHES_LOCK_WITHIN_MS = 500

async function listOwnerIds(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('users').where({ account_id: accountId, role: 'owner' }).pluck('id')
}

describe('settings', () => {
  let owner: Visitor
  const app = sharedApp({ environment: { EVENT_RETENTION_DAYS: '45' } })
  beforeAll(async () => {
    ;({ owner } = await newAccountOwner(app))
  })

  it('an account name that is too long: 422, and the input stays', async () => {
    const { status, text } = await owner.post('/settings', { name: 'x'.repeat(201) })
    expect(status).toBe(422)
    expect(text).toContain(`value="${'x'.repeat(201)}"`)
  })

  it('a new account name: stored, and in the audit log', async () => {
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
    expect(text).toContain('Kept for 400 days; entries about records for 45 days')
    expect(text).toContain(`${app.config.baseUrl}/public/v1`)
  })
})

describe('transfer of ownership', () => {
  const app = sharedApp()

  /** An account whose Account Owner has a password, with two Admins. */
  async function newTeam() {
    const owner = await newAccountWithPassword(app)
    const { accountId } = owner
    const jonas = await newConsoleUser(app, accountId, { fullName: 'Jonas Weber' })
    const priya = await newConsoleUser(app, accountId, { fullName: 'Priya Raman' })
    return { accountId, owner, jonas, priya }
  }

  it('gives the new owner every permission, and makes the old one an Admin with both grants', async () => {
    const { accountId, owner, jonas } = await newTeam()
    const [oldOwner, newOwner] = [await visitor(app, owner), await visitor(app, jonas)]
    expect((await newOwner.get('/people')).status).toBe(404)
    const answer = await oldOwner.submit('/settings/transfer', {
      user: jonas.userId,
      current_password: PASSWORD,
    })
    expect(answer.text).toContain('Jonas Weber is now the Account Owner. You are an Admin.')
    expect(await listOwnerIds(app, accountId)).toEqual([jonas.userId])
    const [admin] = await app.db.read('users').where({ id: owner.userId })
    expect(admin.role).toBe('admin')
    expect([admin.can_manage_api_keys, admin.can_manage_webhooks].map(Boolean)).toEqual([
      true,
      true,
    ])
    expect((await oldOwner.get('/people')).status).toBe(404)
    expect((await oldOwner.get('/api-keys/new')).status).toBe(200)
    expect((await newOwner.get('/people')).status).toBe(200)
    const [promoted] = await app.db.read('users').where({ id: jonas.userId })
    expect(promoted.finance_permission).toBe('write')
    expect((await newOwner.get('/audit-log')).text).toContain('Transferred the ownership')
  })

  it('422 with a wrong password, or for a user who is deactivated, has not joined or is of another account', async () => {
    const { accountId, owner, jonas, priya } = await newTeam()
    await app.db.write('users').where({ id: jonas.userId }).update({ status: 'deactivated' })
    await app.db.write('users').where({ id: priya.userId }).update({ password_hash: null })
    // Without an active user who has joined, the page has no form.
    await newConsoleUser(app, accountId)
    const stranger = await newConsoleUser(app, (await app.newAccount()).accountId)
    const oldOwner = await visitor(app, owner)
    for (const user of [jonas.userId, priya.userId, stranger.userId, owner.userId, 'x', '']) {
      const { status, text } = await oldOwner.post('/settings/transfer', {
        user,
        current_password: PASSWORD,
      })
      expect(status).toBe(422)
      expect(text).toContain('Choose the new owner.')
    }
    await app.db.write('users').where({ id: jonas.userId }).update({ status: 'active' })
    const { text } = await oldOwner.post('/settings/transfer', {
      user: jonas.userId,
      current_password: 'wrong',
    })
    expect(text).toContain('This is not your current password.')
    expect(text).toContain(`value="${jonas.userId}" selected`)
    expect(await listOwnerIds(app, accountId)).toEqual([owner.userId])
  })

  it('twice at the same time: one succeeds, and there is one owner', async () => {
    for (let round = 0; round < 5; round++) {
      const { accountId, owner, jonas, priya } = await newTeam()
      const [here, there] = [await visitor(app, owner), await visitor(app, owner)]
      const transfer = (from: Visitor, user: string) =>
        from.post('/settings/transfer', { user, current_password: PASSWORD })
      for (const { status } of await Promise.all([
        transfer(here, jonas.userId),
        transfer(there, priya.userId),
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
    const { accountId, owner, jonas } = await newTeam()
    const ownerVisitor = await visitor(app, owner)
    const { deactivation } = await transaction(app.db, async (trx) => {
      await transferOwnership(accountScope(trx, accountId), owner.userId, jonas.userId, new Date())
      const deactivation = ownerVisitor.post(`/people/${jonas.userId}/deactivate`)
      await delay(REACHES_LOCK_WITHIN_MS)
      return { deactivation }
    })
    expect((await deactivation).status).toBeLessThan(500)
    const owners = await app.db
      .read('users')
      .where({ account_id: accountId, role: 'owner' })
      .select('id', 'status')
    expect(owners).toEqual([{ id: jonas.userId, status: 'active' }])
    expect(await listActions(app, accountId)).toEqual([])
  })

  it('to a user whose deactivation has not ended: refused', async () => {
    const { accountId, owner, jonas } = await newTeam()
    const ownerVisitor = await visitor(app, owner)
    const { transfer } = await transaction(app.db, async (trx) => {
      await updateUserStatus(accountScope(trx, accountId), jonas.userId, 'deactivated', new Date())
      const transfer = ownerVisitor.submit('/settings/transfer', {
        user: jonas.userId,
        current_password: PASSWORD,
      })
      await delay(REACHES_LOCK_WITHIN_MS)
      return { transfer }
    })
    expect((await transfer).text).toContain(
      'Choose an active user of the account who has set a password.',
    )
    expect(await listOwnerIds(app, accountId)).toEqual([owner.userId])
  })
})

describe('pages of the owner', () => {
  const app = sharedApp()

  it('Admins and Members: 404 for every page and action, and nothing changes', async () => {
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
      for (const user of [admin, member]) {
        const userPath = path.replace(':user', someone.userId)
        const { status } =
          method === 'GET'
            ? await user.get(userPath)
            : await user.post(userPath, { full_name: 'x', name: 'x' })
        expect(status, `${method} ${path}`).toBe(404)
      }
    expect(
      await app.db.read('users').where({ id: someone.userId }).select('status', 'role'),
    ).toEqual([{ status: 'active', role: 'admin' }])
    expect(await listActions(app, account.accountId)).toEqual([])
  })
})
