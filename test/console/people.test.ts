/** The users of an account: their access, and their deactivation. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { mainText } from './forms.ts'
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

  /** A user with a Full Access key and a webhook. */
  async function newIntegrator(fullName: string) {
    const person = await newConsoleUser(app, account.accountId, {
      fullName,
      role: 'admin',
      grants: ['webhooks'],
      permissions: { finance: 'write' },
    })
    const key = await app.newKey(person)
    const body = { url: 'https://example.com/hook', event_types: ['*'] }
    const { id: webhookId } = (await app.as({ key }).post('/webhooks', body)).body
    const [{ id: keyId }] = await app.db.read('api_keys').where({ user_id: person.userId })
    return { ...person, key, keyId, webhookId, client: app.as({ key }) }
  }

  const actionsOn = async (targetId: string): Promise<unknown[]> =>
    (await app.db.read('audit_log').where({ target_id: targetId }).orderBy('id')).map(
      ({ action, details }) => [action, JSON.parse(details).changes],
    )

  it('demote: the form lists the keys and webhooks; those kept go on working', async () => {
    const person = await newIntegrator('Ines Duarte')
    const page = mainText((await owner.get(`/people/${person.userId}`)).text)
    expect(page).toMatch(/API keys and webhooks .*Full Access, (?:last|never) used.*example\.com/)
    await changeAccess(person.userId, { role: 'member' })
    expect((await person.client.post('/tasks', { title: 'Still here' })).status).toBe(201)
    expect((await person.client.get('/payments')).status).toBe(403)
    expect(await actionsOn(person.keyId)).toEqual([])
  })

  it('demote, lower the key and disable the webhook: in one form, each with its entry', async () => {
    const person = await newIntegrator('Ines Duarte')
    const { text } = await changeAccess(person.userId, {
      role: 'member',
      [`key-${person.keyId}`]: 'read_only',
      [`webhook-${person.webhookId}`]: 'disable',
    })
    expect(text).toContain('Access of Ines Duarte updated. 2 keys and webhooks changed.')
    expect((await person.client.post('/tasks', { title: 'No more' })).status).toBe(403)
    expect((await person.client.get('/tasks')).status).toBe(200)
    expect(await actionsOn(person.keyId)).toEqual([
      ['api_key.changed', { access_level: { from: 'full_access', to: 'read_only' } }],
    ])
    expect(await actionsOn(person.webhookId)).toEqual([
      ['webhook.created', undefined],
      ['webhook.disabled', undefined],
    ])
  })

  it('deactivate: a key that is handed over works on with the permissions of its new owner', async () => {
    const person = await newIntegrator('Ines Duarte')
    const successor = await newConsoleUser(app, account.accountId, { fullName: 'Omar Haddad' })
    const { id: before } = (await person.client.post('/tasks', { title: 'Before' })).body
    const path = `/people/${person.userId}/deactivate`
    expect(mainText((await owner.get(path)).text)).toMatch(/API keys and webhooks .*Hand over to/)
    const other = await app.newKey(person)
    const fields = { [`key-${person.keyId}`]: 'hand_over', new_owner: successor.userId }
    expect((await owner.submit(path, fields)).text).toContain(
      'Ines Duarte is deactivated and signed out. 1 key or webhook changed.',
    )
    expect((await app.as({ key: other }).get('/tasks')).status).toBe(401)
    expect((await person.client.get('/me')).body.user.id).toBe(successor.userId)
    expect((await person.client.get('/payments')).status).toBe(403)
    expect(await actionsOn(person.keyId)).toEqual([
      ['api_key.handed_over', { owner: { from: 'Ines Duarte', to: 'Omar Haddad' } }],
    ])
    // What the key did before stays with its former owner.
    const { id: after } = (await person.client.post('/tasks', { title: 'After' })).body
    for (const { userId, taskId } of [
      { userId: person.userId, taskId: before },
      { userId: successor.userId, taskId: after },
    ]) {
      const { text } = await owner.get(`/audit-log.ndjson?kind=task&user=${userId}`)
      expect(text.trim().split('\n')).toEqual([expect.stringContaining(taskId)])
    }
  })

  it('a key revoked in the form stays revoked after a reactivation', async () => {
    const person = await newIntegrator('Ines Duarte')
    const path = `/people/${person.userId}`
    await owner.post(`${path}/deactivate`, { [`key-${person.keyId}`]: 'revoke' })
    await owner.post(`${path}/reactivate`)
    expect((await person.client.get('/tasks')).status).toBe(401)
  })

  it('no new owner, a new owner of another account, or keys of others: nothing changes', async () => {
    const person = await newIntegrator('Ines Duarte')
    const other = await newIntegrator('Omar Haddad')
    const stranger = await app.newAccount()
    const handOver = { [`key-${person.keyId}`]: 'hand_over' }
    for (const fields of [
      handOver,
      { ...handOver, new_owner: 'x' },
      { ...handOver, new_owner: stranger.userId },
      { [`key-${person.keyId}`]: 'sell' },
    ])
      expect((await changeAccess(person.userId, fields)).text, JSON.stringify(fields)).toMatch(
        /Choose who the keys|must belong to an active user|Choose what happens/,
      )
    await changeAccess(person.userId, {
      ...{ grants: 'webhooks', finance: 'write' },
      [`key-${other.keyId}`]: 'revoke',
      [`webhook-${other.webhookId}`]: 'disable',
    })
    for (const { client, keyId, userId } of [person, other]) {
      expect((await client.get('/me')).body.user.id).toBe(userId)
      expect(await actionsOn(keyId)).toEqual([])
    }
    expect((await other.client.get(`/webhooks/${other.webhookId}`)).body.enabled).toBe(true)
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
