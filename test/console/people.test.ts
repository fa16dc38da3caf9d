/** The users of an account: their access, and their deactivation. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import {
  inEveryModule,
  NO_ACCESS,
  newAccountOwner,
  newConsoleUser,
  PASSWORD,
  type Visitor,
  visitor,
} from './visitors.ts'

describe('people', () => {
  let account: TestAccount
  let owner: Visitor
  const app = sharedApp()
  beforeAll(async () => {
    ;({ account, owner } = await newAccountOwner(app))
  })

  /** Submits the form of access for an Admin without grants and permissions, except for
   *  `fields`. */
  const changeAccess = (userId: string, fields: Record<string, string | string[]>) =>
    owner.submit(`/people/${userId}`, { role: 'admin', ...NO_ACCESS, ...fields })

  it('change access: the next page and the next API request follow it', async () => {
    const person = await newConsoleUser(app, account.accountId, {
      role: 'admin',
      grants: ['api_keys'],
      permissions: { finance: 'read' },
    })
    const personVisitor = await visitor(app, person)
    const key = await app.newKey(person)
    expect((await personVisitor.get('/api-keys/new')).status).toBe(200)
    expect((await app.as({ key }).get('/payments')).status).toBe(200)

    const changed = await changeAccess(person.userId, { grants: ['webhooks'], finance: 'none' })
    expect(changed.text).toContain('Access of Test Person updated.')
    expect((await personVisitor.get('/api-keys/new')).status).toBe(404)
    expect((await personVisitor.get('/api-keys')).status).toBe(200)
    expect((await app.as({ key }).get('/payments')).status).toBe(403)

    await changeAccess(person.userId, { role: 'member', grants: ['api_keys', 'webhooks'] })
    expect((await personVisitor.get('/api-keys')).status).toBe(404)
    const [row] = await app.db.read('users').where({ id: person.userId })
    expect([row.role, Boolean(row.can_manage_api_keys), Boolean(row.can_manage_webhooks)]).toEqual([
      'member',
      false,
      false,
    ])
  })

  it('change access: the audit log has the old and the new values', async () => {
    const person = await newConsoleUser(app, account.accountId, {
      fullName: 'Tom Okafor',
      role: 'member',
    })
    await changeAccess(person.userId, {
      grants: ['webhooks'],
      ...inEveryModule('read'),
      finance: 'write',
    })
    const [entry] = await app.db.read('audit_log').where({ target_id: person.userId })
    expect(JSON.parse(entry.details)).toEqual({
      changes: {
        role: { from: 'member', to: 'admin' },
        manages_webhooks: { from: false, to: true },
        finance: { from: 'none', to: 'write' },
      },
    })
    const { text } = await owner.get(`/audit-log?target=${person.userId}`)
    expect(text).toMatch(/Changed the access of .*Tom Okafor/)
    expect(text).toMatch(/Finance: None.*<strong>Edit<\/strong>/s)
  })

  it('save without a change: no audit entry', async () => {
    const person = await newConsoleUser(app, account.accountId, { role: 'member' })
    const same = {
      role: 'member',
      ...inEveryModule('read'),
      finance: 'none',
    }
    expect((await owner.submit(`/people/${person.userId}`, same)).text).toContain(
      'No changes to save.',
    )
    expect(await app.db.read('audit_log').where({ target_id: person.userId })).toEqual([])
  })

  it('an invalid role or permission: 422, and nothing changes', async () => {
    const person = await newConsoleUser(app, account.accountId, { role: 'member' })
    const before = await app.db.read('users').where({ id: person.userId })
    const invalid: Record<string, string | string[]>[] = [
      { role: 'owner' },
      { role: '' },
      { finance: 'admin' },
      // The first value of a repeated field counts.
      { tasks: ['', 'write'] },
    ]
    for (const fields of invalid)
      expect((await changeAccess(person.userId, fields)).status, JSON.stringify(fields)).toBe(422)
    expect(await app.db.read('users').where({ id: person.userId })).toEqual(before)
  })

  it('deactivate: ends sessions and keys at once; reactivate: the keys and the sign-in work again', async () => {
    const person = await newConsoleUser(app, account.accountId, { fullName: 'Lena Fischer' })
    const personVisitor = await visitor(app, person)
    const key = await app.newKey(person)
    expect((await app.as({ key }).get('/tasks')).status).toBe(200)
    expect((await owner.submit(`/people/${person.userId}/deactivate`)).text).toContain(
      'Lena Fischer is deactivated and signed out.',
    )
    expect((await personVisitor.get('/me')).status).toBe(303)
    expect((await app.as({ key }).get('/tasks')).status).toBe(401)
    const guest = await visitor(app)
    expect((await guest.post('/sign-in', { email: person.email, password: PASSWORD })).status).toBe(
      401,
    )

    await owner.post(`/people/${person.userId}/reactivate`)
    expect((await app.as({ key }).get('/tasks')).status).toBe(200)
    expect((await personVisitor.get('/me')).status).toBe(303)
    expect((await guest.post('/sign-in', { email: person.email, password: PASSWORD })).status).toBe(
      303,
    )
  })

  it('an action that is sent twice: is logged once', async () => {
    const person = await newConsoleUser(app, account.accountId)
    const path = `/people/${person.userId}`
    const postTwice = (action: string) =>
      Promise.all([owner.post(`${path}${action}`), owner.post(`${path}${action}`)])
    await postTwice('/deactivate')
    await postTwice('/reactivate')
    await owner.post(`${path}/link`)
    await postTwice('/link/withdraw')
    const logged = await app.db.read('audit_log').where({ target_id: person.userId }).orderBy('id')
    expect(logged.map(({ action }) => action)).toEqual([
      'user.deactivated',
      'user.reactivated',
      'user.password_link_made',
      'user.password_link_withdrawn',
    ])
  })

  it('every action on the owner: a redirect, and nothing changes', async () => {
    const before = await app.db.read('users').where({ id: account.userId })
    for (const [path, fields] of [
      ['/deactivate', {}],
      ['/reactivate', {}],
      ['', { role: 'member', ...NO_ACCESS }],
      ['', { role: 'nobody' }],
      ['/link', {}],
      ['/link/withdraw', {}],
      ['/withdraw', {}],
    ] as const) {
      const { status } = await owner.post(`/people/${account.userId}${path}`, fields)
      expect(status, path).toBe(303)
    }
    expect(await app.db.read('users').where({ id: account.userId })).toEqual(before)
    expect(await app.db.read('invitations').where({ user_id: account.userId })).toEqual([])
    expect((await owner.submit(`/people/${account.userId}/deactivate`)).text).toContain(
      'The Account Owner cannot be deactivated',
    )
  })

  it('a user of another account: 404, and nothing changes', async () => {
    const stranger = await newConsoleUser(app, (await app.newAccount()).accountId)
    const strangerVisitor = await visitor(app, stranger)
    const { userId } = stranger
    const before = await app.db.read('users').where({ id: userId })
    expect((await owner.get(`/people/${userId}`)).status).toBe(404)
    for (const path of ['', '/link', '/link/withdraw', '/withdraw', '/deactivate', '/reactivate']) {
      const fields = { role: 'member', ...NO_ACCESS }
      expect((await owner.post(`/people/${userId}${path}`, fields)).status, path).toBe(404)
    }
    expect(await app.db.read('users').where({ id: userId })).toEqual(before)
    expect(await app.db.read('invitations').where({ user_id: userId })).toEqual([])
    expect((await strangerVisitor.get('/me')).status).toBe(200)
    expect((await owner.get('/people')).text).not.toContain(stranger.email)
  })
})
