/** Inviting users, and the one-time links that set a password. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import {
  linkIn,
  NO_ACCESS,
  newAccountOwner,
  newAccountWithPassword,
  newConsoleUser,
  PASSWORD,
  sessionOf,
  type Visitor,
  visitor,
} from './visitors.ts'

const DAY_MS = 86_400_000
const UNUSABLE = 'This link cannot be used'
const NEW_PASSWORD = 'a different horse entirely'

describe('invitations', () => {
  let account: TestAccount
  let owner: Visitor
  let guest: Visitor
  let now = Date.now()
  const app = sharedApp({ now: () => new Date(now) })
  beforeAll(async () => {
    ;({ account, owner } = await newAccountOwner(app))
    guest = await visitor(app)
  })

  /** Invites Jonas Weber, by default as a Member, without permissions and with a random email. */
  async function invite(fields: Record<string, string | string[]> = {}) {
    const input = {
      full_name: 'Jonas Weber',
      email: `${randomUUID()}@example.com`,
      role: 'member',
      ...NO_ACCESS,
      ...fields,
    }
    const { email } = input
    const answer = await owner.post('/people/invite', input)
    const [user] = await app.db.read('users').where({ email })
    return { email, link: linkIn(answer), userId: user?.id as string, user }
  }

  it('invite with a role, grants and permissions: the link sets a password and signs in with them', async () => {
    const { email, link, user } = await invite({
      role: 'admin',
      grants: ['webhooks'],
      participants: 'write',
      finance: 'read',
    })
    expect(user).toMatchObject({
      role: 'admin',
      participants_permission: 'write',
      tasks_permission: 'none',
      finance_permission: 'read',
      password_hash: null,
    })
    expect([user.can_manage_api_keys, user.can_manage_webhooks].map(Boolean)).toEqual([false, true])
    expect((await owner.get('/people')).text).toContain('Invited')

    const page = await guest.get(link)
    expect(page.text).toContain('Join Test account')
    expect(page.text).toContain(email)
    expect((await guest.post(link, { password: 'short' })).text).toContain(
      'must be at least 8 characters long.',
    )
    const joined = await guest.post(link, { password: PASSWORD })
    expect(joined).toMatchObject({ status: 303, to: '' })
    const { text } = await guest.get('', sessionOf(joined))
    expect(text).toContain('Welcome to Test account.')
    expect(text).toContain('<small>Admin</small>')
    expect((await guest.post('/sign-in', { email, password: PASSWORD })).status).toBe(303)
  })

  it('two requests with one link at the same time: one signs in, the other gets 404', async () => {
    const { link } = await invite()
    const answers = await Promise.all([
      guest.post(link, { password: PASSWORD }),
      guest.post(link, { password: `${PASSWORD}!` }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 404])
    for (const answer of [await guest.get(link), await guest.post(link, { password: PASSWORD })])
      expect(answer).toMatchObject({ status: 404, text: expect.stringContaining(UNUSABLE) })
  })

  it('GET of the link: does not use it up', async () => {
    const { link } = await invite()
    for (let n = 0; n < 3; n++) expect((await guest.get(link)).status).toBe(200)
    expect((await guest.post(link, { password: PASSWORD })).status).toBe(303)
  })

  it('a link after seven days: 404; another link works', async () => {
    const { link, userId } = await invite()
    const before = now
    try {
      now += 7 * DAY_MS - 60_000
      expect((await guest.get(link)).status).toBe(200)
      now += 60_000
      expect((await guest.get(link)).status).toBe(404)
      expect((await guest.post(link, { password: PASSWORD })).status).toBe(404)
      expect((await owner.get(`/people/${userId}`)).text).toContain('Invitation expired')
      const renewed = linkIn(await owner.post(`/people/${userId}/link`))
      expect(renewed).not.toBe(link)
      expect((await guest.post(renewed, { password: PASSWORD })).status).toBe(303)
    } finally {
      now = before
    }
  })

  it('a new link: the previous one gets 404', async () => {
    const { link, userId } = await invite()
    const renewed = linkIn(await owner.post(`/people/${userId}/link`))
    expect((await guest.get(link)).status).toBe(404)
    expect((await guest.get(renewed)).status).toBe(200)
  })

  it('deactivate an invited user: the link gets 404, even after a reactivation', async () => {
    const { link, userId } = await invite()
    await owner.post(`/people/${userId}/deactivate`)
    expect((await guest.post(link, { password: PASSWORD })).status).toBe(404)
    expect((await owner.submit(`/people/${userId}/link`)).text).not.toContain('/invitation/')
    await owner.post(`/people/${userId}/reactivate`)
    expect((await guest.post(link, { password: PASSWORD })).status).toBe(404)
    expect(linkIn(await owner.post(`/people/${userId}/link`))).not.toBe(link)
  })

  it('the token of a link: shown once, and in no table', async () => {
    const { link, userId } = await invite()
    const token = link.split('/').at(-1) ?? ''
    for (const table of ['invitations', 'audit_log', 'users', 'sessions'])
      expect(JSON.stringify(await app.db.read(table).select('*'))).not.toContain(token)
    expect((await owner.get(`/people/${userId}`)).text).not.toContain(token)
  })

  it.each(['x', '', 'x'.repeat(43), '%00'])('an invalid token (%s): 404', async (token) => {
    const path = `/invitation/${token}`
    expect((await guest.get(path)).status).toBe(404)
    expect((await guest.post(path, { password: PASSWORD })).status).toBe(404)
  })

  it('a link opened by a signed-in user: warns, then switches the user', async () => {
    const { link } = await invite()
    const other = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { fullName: 'Priya Raman' }),
    )
    expect((await other.get(link)).text).toContain(
      'You are signed in as Priya Raman. This switches to Jonas Weber.',
    )
    const oldSession = { Cookie: other.cookie }
    expect((await other.post(link, { password: PASSWORD })).status).toBe(303)
    expect((await other.get('/me', oldSession)).status).toBe(303)
  })

  it('invite an email in use: tells only whether this account uses it, and keeps the input', async () => {
    const stranger = await newConsoleUser(app, (await app.newAccount()).accountId)
    const teammate = await newConsoleUser(app, account.accountId)
    const input = {
      full_name: 'Jonas <Weber>',
      role: 'admin',
      grants: ['api_keys'],
      ...NO_ACCESS,
      tasks: 'write',
    }
    const refused = await owner.post('/people/invite', {
      ...input,
      email: stranger.email.toUpperCase(),
    })
    expect(refused).toMatchObject({
      status: 422,
      text: expect.stringContaining('This email cannot be used. Enter another one.'),
    })
    expect(
      (await owner.post('/people/invite', { ...input, email: teammate.email })).text,
    ).toContain('A user of your account already has this email.')
    expect(refused.text).toContain('value="Jonas &#60;Weber&#62;"')
    expect(refused.text).toContain('value="admin" checked')
    expect(refused.text).toContain('value="api_keys" checked')
    expect(refused.text).toMatch(/name="tasks" value="write" checked/)
  })

  it('invite with invalid fields: 422 with the problem of each field, and no new user', async () => {
    const before = await app.db.read('users').count({ total: '*' })
    const { status, text } = await owner.post('/people/invite', {
      full_name: ' ',
      email: 'x',
      role: 'owner',
      ...NO_ACCESS,
      finance: 'all',
    })
    expect(status).toBe(422)
    for (const wrong of [
      'The name must not be empty.',
      'is not an email. Use the form name@example.com.',
      'Choose a role.',
      'Choose a permission.',
    ])
      expect(text).toContain(wrong)
    expect(await app.db.read('users').count({ total: '*' })).toEqual(before)
  })

  it('invite a Member with grants: the grants are ignored', async () => {
    const { user } = await invite({ role: 'member', grants: ['api_keys', 'webhooks'] })
    expect([user.can_manage_api_keys, user.can_manage_webhooks].map(Boolean)).toEqual([
      false,
      false,
    ])
  })

  it('withdraw an invitation: the link gets 404, and the email can be invited again', async () => {
    const { link, userId, email } = await invite()
    expect((await owner.submit(`/people/${userId}/withdraw`)).text).toContain(
      'The invitation of Jonas Weber is withdrawn.',
    )
    expect((await guest.get(link)).status).toBe(404)
    const second = await invite({ email })
    expect((await guest.post(second.link, { password: PASSWORD })).status).toBe(303)
  })

  it('withdraw the invitation of a user who has joined: refused', async () => {
    const { link, userId, email } = await invite()
    await guest.post(link, { password: PASSWORD })
    expect((await owner.submit(`/people/${userId}/withdraw`)).text).toContain(
      'Jonas Weber has joined or has API keys. Deactivate them instead.',
    )
    expect(await app.db.read('users').where({ email }).pluck('id')).toEqual([userId])
  })

  describe('a link for a user who has joined', () => {
    it('sets a new password and ends all sessions', async () => {
      const person = await newConsoleUser(app, account.accountId)
      const session = await visitor(app, person)
      const link = linkIn(await owner.post(`/people/${person.userId}/link`))
      expect((await session.get('/me')).status).toBe(200)
      expect((await guest.get(link)).text).toContain('Choose a new password')
      expect((await guest.post(link, { password: NEW_PASSWORD })).status).toBe(303)
      expect((await session.get('/me')).status).toBe(303)
      const signIn = async (password: string): Promise<number> =>
        (await guest.post('/sign-in', { email: person.email, password })).status
      expect(await signIn(PASSWORD)).toBe(401)
      expect(await signIn(NEW_PASSWORD)).toBe(303)
    })

    it('gets 404 after the user has changed the password', async () => {
      const person = await newConsoleUser(app, account.accountId)
      const link = linkIn(await owner.post(`/people/${person.userId}/link`))
      expect((await guest.get(link)).status).toBe(200)
      const fields = { current_password: PASSWORD, new_password: NEW_PASSWORD }
      expect((await (await visitor(app, person)).post('/me/password', fields)).status).toBe(303)
      expect((await guest.get(link)).status).toBe(404)
    })

    it('gets 404 after the owner has withdrawn it', async () => {
      const person = await newConsoleUser(app, account.accountId)
      const link = linkIn(await owner.post(`/people/${person.userId}/link`))
      expect((await guest.get(link)).status).toBe(200)
      expect((await owner.get(`/people/${person.userId}`)).text).toContain('Withdraw the link')
      await owner.post(`/people/${person.userId}/link/withdraw`)
      expect((await guest.get(link)).status).toBe(404)
    })

    it('gets 404 after a transfer of ownership, for the new owner and for others', async () => {
      const team = await newAccountWithPassword(app)
      const oldOwner = await visitor(app, team)
      const newOwner = await newConsoleUser(app, team.accountId)
      const teammate = await newConsoleUser(app, team.accountId)
      const links = [
        linkIn(await oldOwner.post(`/people/${newOwner.userId}/link`)),
        linkIn(await oldOwner.post(`/people/${teammate.userId}/link`)),
      ]
      for (const link of links) expect((await guest.get(link)).status).toBe(200)
      const fields = { user: newOwner.userId, current_password: PASSWORD }
      expect((await oldOwner.post('/settings/transfer', fields)).status).toBe(303)
      for (const link of links) expect((await guest.get(link)).status).toBe(404)
    })
  })
})
