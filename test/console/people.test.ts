/** The people of an account: how they join, what they may do, how they leave, and what the audit log says of it. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { insertAuditEntry } from '../../records/audit-log.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { assertReadable, openBrowser } from '../browser.ts'
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'
import {
  type ConsoleAnswer,
  newPerson,
  PASSWORD,
  type Visitor,
  visit,
  visitor,
} from './visitors.ts'

const DAY_MS = 86_400_000
const NOTHING = {
  participants: 'none',
  tasks: 'none',
  jobs: 'none',
  exports: 'none',
  finance: 'none',
}
const GONE = 'This link cannot be used'

/** The path of the one-time link in a page, below /console. */
function linkIn({ text, status }: ConsoleAnswer): string {
  const [, token] = text.match(/\/console\/invitation\/([\w-]{43})/) ?? []
  if (status !== 200 || token === undefined) throw new Error(`There is no link in ${text}`)
  return `/invitation/${token}`
}

const sessionOf = ({ headers }: ConsoleAnswer): Record<string, string> => ({
  Cookie: headers.get('set-cookie')?.split(';')[0] ?? '',
})

async function actionsOf(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('audit_log').where({ account_id: accountId }).orderBy('id').pluck('action')
}

describe('invitations', () => {
  let app: TestApp
  let account: TestAccount
  let owner: Visitor
  let nobody: Visitor
  let now = Date.now()
  let count = 0
  beforeAll(async () => {
    app = await startApp({ now: () => new Date(now) })
    account = await app.newAccount()
    owner = await visitor(app, account)
    nobody = await visitor(app)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  async function invite(fields: Record<string, string | string[]> = {}) {
    const email = `invited-${count++}@example.com`
    const answer = await owner.post('/people/invite', {
      full_name: 'Jonas Weber',
      email,
      role: 'member',
      ...NOTHING,
      ...fields,
    })
    const [user] = await app.db.read('users').where({ email })
    return { email, answer, link: linkIn(answer), userId: user?.id as string, user }
  }

  it('by address, name, role, grants and permissions: whoever follows the link chooses a password and is signed in', async () => {
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

    const page = await nobody.get(link)
    expect(page.text).toContain('Join Test account')
    expect(page.text).toContain(email)
    expect((await nobody.post(link, { password: 'short' })).text).toContain(
      'must be at least 8 characters long.',
    )
    const joined = await nobody.post(link, { password: PASSWORD })
    expect(joined).toMatchObject({ status: 303, to: '' })
    const { text } = await nobody.get('', sessionOf(joined))
    expect(text).toContain('Welcome to Test account.')
    expect(text).toContain('<small>Admin</small>')
    expect((await nobody.post('/sign-in', { email, password: PASSWORD })).status).toBe(303)
  })

  it('the link works once, also for two at once', async () => {
    const { link } = await invite()
    const answers = await Promise.all([
      nobody.post(link, { password: PASSWORD }),
      nobody.post(link, { password: `${PASSWORD}!` }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 404])
    for (const answer of [await nobody.get(link), await nobody.post(link, { password: PASSWORD })])
      expect(answer).toMatchObject({ status: 404, text: expect.stringContaining(GONE) })
  })

  it('looking at the page uses nothing up', async () => {
    const { link } = await invite()
    for (let n = 0; n < 3; n++) expect((await nobody.get(link)).status).toBe(200)
    expect((await nobody.post(link, { password: PASSWORD })).status).toBe(303)
  })

  it('the link ends after seven days, and can be made anew', async () => {
    const { link, userId } = await invite()
    const before = now
    try {
      now += 7 * DAY_MS - 60_000
      expect((await nobody.get(link)).status).toBe(200)
      now += 60_000
      expect((await nobody.get(link)).status).toBe(404)
      expect((await nobody.post(link, { password: PASSWORD })).status).toBe(404)
      expect((await owner.get(`/people/${userId}`)).text).toContain('Invitation expired')
      const renewed = linkIn(await owner.post(`/people/${userId}/link`))
      expect(renewed).not.toBe(link)
      expect((await nobody.post(renewed, { password: PASSWORD })).status).toBe(303)
    } finally {
      now = before
    }
  })

  it('a new link ends the one before', async () => {
    const { link, userId } = await invite()
    const renewed = linkIn(await owner.post(`/people/${userId}/link`))
    expect((await nobody.get(link)).status).toBe(404)
    expect((await nobody.get(renewed)).status).toBe(200)
  })

  it('of somebody who is deactivated: the link is of no use, then or later', async () => {
    const { link, userId } = await invite()
    await owner.post(`/people/${userId}/deactivate`)
    expect((await nobody.post(link, { password: PASSWORD })).status).toBe(404)
    expect((await owner.submit(`/people/${userId}/link`)).text).not.toContain('/invitation/')
    await owner.post(`/people/${userId}/reactivate`)
    expect((await nobody.post(link, { password: PASSWORD })).status).toBe(404)
    expect(linkIn(await owner.post(`/people/${userId}/link`))).not.toBe(link)
  })

  it('the link is stored as a hash, shown once, and in no audit entry', async () => {
    const { link, userId } = await invite()
    const token = link.split('/').at(-1) ?? ''
    for (const table of ['invitations', 'audit_log', 'users', 'sessions'])
      expect(JSON.stringify(await app.db.read(table).select('*'))).not.toContain(token)
    expect((await owner.get(`/people/${userId}`)).text).not.toContain(token)
  })

  it.each(['x', '', 'x'.repeat(43), '%00'])('no link: %s', async (token) => {
    expect([400, 404]).toContain((await nobody.get(`/invitation/${token}`)).status)
    expect([400, 404, 405]).toContain(
      (await nobody.post(`/invitation/${token}`, { password: PASSWORD })).status,
    )
  })

  it('followed by somebody who is signed in: says so, and signs them out', async () => {
    const { link } = await invite()
    const other = await visitor(
      app,
      await newPerson(app, account.accountId, { fullName: 'Priya Raman' }),
    )
    expect((await other.get(link)).text).toContain(
      'You are signed in as Priya Raman. This switches to Jonas Weber.',
    )
    expect((await other.post(link, { password: PASSWORD })).status).toBe(303)
    expect((await other.get('/me')).status).toBe(303)
  })

  it('with an address that is in use: told of one’s own people, and of nobody else', async () => {
    const foreign = await newPerson(app, (await app.newAccount()).accountId)
    const own = await newPerson(app, account.accountId)
    const given = {
      full_name: 'Jonas <Weber>',
      role: 'admin',
      grants: ['api_keys'],
      ...NOTHING,
      tasks: 'write',
    }
    const refused = await owner.post('/people/invite', {
      ...given,
      email: foreign.email.toUpperCase(),
    })
    expect(refused).toMatchObject({
      status: 422,
      text: expect.stringContaining('This email cannot be used. Enter another one.'),
    })
    expect((await owner.post('/people/invite', { ...given, email: own.email })).text).toContain(
      'A user of your account already has this email.',
    )
    // What was typed and chosen is there again.
    expect(refused.text).toContain('value="Jonas &#60;Weber&#62;"')
    expect(refused.text).toContain('value="admin" checked')
    expect(refused.text).toContain('value="api_keys" checked')
    expect(refused.text).toMatch(/name="tasks" value="write" checked/)
  })

  it('with what cannot be: says what is wrong with each field, and invites nobody', async () => {
    const before = await app.db.read('users').count({ total: '*' })
    const { status, text } = await owner.post('/people/invite', {
      full_name: ' ',
      email: 'x',
      role: 'owner',
      ...NOTHING,
      finance: 'all',
    })
    expect(status).toBe(422)
    for (const wrong of [
      'The name must not be empty.',
      'is not an email: use the form name@example.com.',
      'Choose a role.',
      'Choose a permission.',
    ])
      expect(text).toContain(wrong)
    expect(await app.db.read('users').count({ total: '*' })).toEqual(before)
  })

  it('a Member never has grants, whatever is sent', async () => {
    const { user } = await invite({ role: 'member', grants: ['api_keys', 'webhooks'] })
    expect([user.can_manage_api_keys, user.can_manage_webhooks].map(Boolean)).toEqual([
      false,
      false,
    ])
  })

  it('is withdrawn: the link ends and the address is free; not of somebody who has joined', async () => {
    const { link, userId, email } = await invite()
    expect((await owner.submit(`/people/${userId}/withdraw`)).text).toContain(
      'The invitation of Jonas Weber is withdrawn.',
    )
    expect((await nobody.get(link)).status).toBe(404)
    const again = await owner.post('/people/invite', {
      full_name: 'Jonas Weber',
      email,
      role: 'member',
      ...NOTHING,
    })
    await nobody.post(linkIn(again), { password: PASSWORD })
    const [joined] = await app.db.read('users').where({ email })
    await owner.post(`/people/${joined.id}/withdraw`)
    expect(await app.db.read('users').where({ email }).pluck('id')).toEqual([joined.id])
  })

  it('a link for who has joined: a new password, and signed out everywhere', async () => {
    const person = await newPerson(app, account.accountId)
    const session = await visitor(app, person)
    const link = linkIn(await owner.post(`/people/${person.userId}/link`))
    expect((await session.get('/me')).status).toBe(200)
    expect((await nobody.get(link)).text).toContain('Choose a new password')
    expect((await nobody.post(link, { password: 'a different horse' })).status).toBe(303)
    expect((await session.get('/me')).status).toBe(303)
    expect(
      (await nobody.post('/sign-in', { email: person.email, password: PASSWORD })).status,
    ).toBe(401)
    expect(
      (await nobody.post('/sign-in', { email: person.email, password: 'a different horse' }))
        .status,
    ).toBe(303)
  })
})

describe('people', () => {
  let app: TestApp
  let account: TestAccount
  let owner: Visitor
  beforeAll(async () => {
    app = await startApp()
    account = await app.newAccount()
    owner = await visitor(app, account)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const change = (userId: string, fields: Record<string, string | string[]>) =>
    owner.submit(`/people/${userId}`, { role: 'admin', ...NOTHING, ...fields })

  it('what somebody may do changes with their next page and their next request', async () => {
    const person = await newPerson(app, account.accountId, {
      role: 'admin',
      grants: ['api_keys'],
      permissions: { finance: 'read' },
    })
    const theirs = await visitor(app, person)
    const key = await app.newKey(person)
    expect((await theirs.get('/api-keys/new')).status).toBe(200)
    expect((await app.as({ key }).get('/payments')).status).toBe(200)

    expect((await change(person.userId, { grants: ['webhooks'], finance: 'none' })).text).toContain(
      'Access of',
    )
    expect((await theirs.get('/api-keys/new')).status).toBe(404)
    expect((await theirs.get('/api-keys')).status).toBe(200)
    expect((await app.as({ key }).get('/payments')).status).toBe(403)

    await change(person.userId, { role: 'member', grants: ['api_keys', 'webhooks'] })
    expect((await theirs.get('/api-keys')).status).toBe(404)
    const [row] = await app.db.read('users').where({ id: person.userId })
    expect([row.role, Boolean(row.can_manage_api_keys), Boolean(row.can_manage_webhooks)]).toEqual([
      'member',
      false,
      false,
    ])
  })

  it('the audit log says what it was before and what it is', async () => {
    const person = await newPerson(app, account.accountId, {
      fullName: 'Tom Okafor',
      role: 'member',
    })
    await change(person.userId, {
      grants: ['webhooks'],
      participants: 'read',
      tasks: 'read',
      jobs: 'read',
      exports: 'read',
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

  it('saving what is there already changes and notes nothing', async () => {
    const person = await newPerson(app, account.accountId, { role: 'member' })
    const same = {
      role: 'member',
      participants: 'read',
      tasks: 'read',
      jobs: 'read',
      exports: 'read',
      finance: 'none',
    }
    expect((await owner.submit(`/people/${person.userId}`, same)).text).toContain(
      'Nothing was changed.',
    )
    expect(await app.db.read('audit_log').where({ target_id: person.userId })).toEqual([])
  })

  it('a role or permission that there is not: 422, and nothing changes', async () => {
    const person = await newPerson(app, account.accountId, { role: 'member' })
    const all: Record<string, string | string[]>[] = [
      { role: 'owner' },
      { role: '' },
      { finance: 'admin' },
      { tasks: ['', 'write'] },
    ]
    for (const wrong of all)
      expect((await change(person.userId, wrong)).status, JSON.stringify(wrong)).toBe(422)
    expect(await app.db.read('users').where({ id: person.userId }).pluck('role')).toEqual([
      'member',
    ])
  })

  it('deactivating ends sessions and keys at once; reactivating brings the keys back, and no session', async () => {
    const person = await newPerson(app, account.accountId, { fullName: 'Lena Fischer' })
    const theirs = await visitor(app, person)
    const key = await app.newKey(person)
    expect((await app.as({ key }).get('/tasks')).status).toBe(200)
    expect((await owner.submit(`/people/${person.userId}/deactivate`)).text).toContain(
      'Lena Fischer is deactivated and signed out.',
    )
    expect((await theirs.get('/me')).status).toBe(303)
    expect((await app.as({ key }).get('/tasks')).status).toBe(401)
    const nobody = await visitor(app)
    expect(
      (await nobody.post('/sign-in', { email: person.email, password: PASSWORD })).status,
    ).toBe(401)

    await owner.post(`/people/${person.userId}/reactivate`)
    expect((await app.as({ key }).get('/tasks')).status).toBe(200)
    expect((await theirs.get('/me')).status).toBe(303)
    expect(
      (await nobody.post('/sign-in', { email: person.email, password: PASSWORD })).status,
    ).toBe(303)
  })

  it('the Owner cannot be deactivated, changed, invited anew or withdrawn', async () => {
    const before = await app.db.read('users').where({ id: account.userId })
    for (const [path, fields] of [
      ['/deactivate', {}],
      ['', { role: 'member', ...NOTHING }],
      ['', { role: 'nobody' }],
      ['/link', {}],
      ['/withdraw', {}],
    ] as const) {
      const { status } = await owner.post(`/people/${account.userId}${path}`, fields)
      expect(status, path).toBe(303)
    }
    expect(await app.db.read('users').where({ id: account.userId })).toEqual(before)
    expect((await owner.submit(`/people/${account.userId}/deactivate`)).text).toContain(
      'The Account Owner cannot be deactivated',
    )
  })

  it('of another account are not there: 404, and nothing changes', async () => {
    const foreign = await newPerson(app, (await app.newAccount()).accountId)
    const session = await visitor(app, foreign)
    const before = await app.db.read('users').where({ id: foreign.userId })
    expect((await owner.get(`/people/${foreign.userId}`)).status).toBe(404)
    for (const path of ['', '/link', '/withdraw', '/deactivate', '/reactivate'])
      expect(
        (await owner.post(`/people/${foreign.userId}${path}`, { role: 'member', ...NOTHING }))
          .status,
        path,
      ).toBe(404)
    expect(await app.db.read('users').where({ id: foreign.userId })).toEqual(before)
    expect(await app.db.read('invitations').where({ user_id: foreign.userId })).toEqual([])
    expect((await session.get('/me')).status).toBe(200)
    expect((await owner.get('/people')).text).not.toContain(foreign.email)
  })
})

describe('the audit log', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  async function write(
    accountId: string,
    count: number,
    name = (n: number) => `Key ${n}`,
    userId: string | null = null,
  ): Promise<void> {
    await transaction(app.db, async (trx) => {
      for (let n = 0; n < count; n++) {
        const target = {
          type: 'api_key',
          id: '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11',
          name: name(n),
        } as const
        const user = userId === null ? null : { id: userId, fullName: 'Mara Keller' }
        await insertAuditEntry(
          writeScope(trx, accountId),
          { user, action: 'api_key.revoked', target, ip: '203.0.113.9' },
          new Date(),
        )
      }
    })
  }

  it('teaches who has done nothing yet', async () => {
    const owner = await visitor(app, await app.newAccount())
    expect((await owner.get('/audit-log')).text).toContain('No entries yet')
  })

  it('says who did what, from where, in words', async () => {
    const account = await app.newAccount()
    await write(account.accountId, 1, () => 'CI & <b>', account.userId)
    const { text } = await (await visitor(app, account)).get('/audit-log')
    expect(text).toMatch(/Revoked the API key “<a [^>]*>CI &#38; &#60;b&#62;<\/a>”/)
    expect(text).toContain('Mara Keller')
    expect(text).toContain('203.0.113.9')
  })

  it('goes through pages of 50, there and back, without losing or repeating an entry', async () => {
    const account = await app.newAccount()
    await write(account.accountId, 120)
    const owner = await visitor(app, account)
    const read = async (address: string) => {
      const { text } = await owner.get(address)
      const link = (label: string) =>
        text.match(new RegExp(`href="/console([^"]*)">${label}`))?.[1]?.replaceAll('&#38;', '&')
      return {
        names: [...text.matchAll(/>(Key \d+)</g)].map(([, name]) => name),
        previous: link('Previous'),
        next: link('Next'),
      }
    }
    const all = Array.from({ length: 120 }, (_, n) => `Key ${119 - n}`)
    const first = await read('/audit-log?kind=api_key')
    const second = await read(first.next ?? '')
    const third = await read(second.next ?? '')
    expect([...first.names, ...second.names, ...third.names]).toEqual(all)
    expect(first.previous).toBeUndefined()
    expect(third.next).toBeUndefined()
    expect(third.previous).toContain('kind=api_key')
    const back = await read(third.previous ?? '')
    expect(back.names).toEqual(second.names)
    const start = await read(back.previous ?? '')
    expect(start).toMatchObject({ names: first.names, previous: undefined })
  })

  it('is filtered by person, by kind and by what it is about; what is no filter is none', async () => {
    const account = await app.newAccount()
    const owner = await visitor(app, account)
    await write(account.accountId, 1, () => 'By the operator')
    await write(account.accountId, 1, () => 'By the Owner', account.userId)
    await owner.post('/settings', { name: 'Northwind' })
    const names = async (query: string) => {
      const { text, status } = await owner.get(`/audit-log?${query}`)
      expect(status, query).toBe(200)
      return ['By the operator', 'By the Owner', '<strong>Northwind</strong>'].map((name) =>
        text.includes(name),
      )
    }
    expect(await names('')).toEqual([true, true, true])
    expect(await names(`user=${account.userId}`)).toEqual([false, true, true])
    expect(await names('user=command-line')).toEqual([true, false, false])
    expect(await names('kind=api_key')).toEqual([true, true, false])
    expect(await names('kind=account')).toEqual([false, false, true])
    expect(await names('kind=webhook')).toEqual([false, false, false])
    expect(await names(`kind=account&user=command-line`)).toEqual([false, false, false])
    expect(await names(`target=${account.accountId}`)).toEqual([false, false, true])
    for (const query of [
      'user=x',
      'kind=constructor',
      "target='",
      'before=%00',
      'after=x&before=y',
      'kind=api_key%25',
    ])
      expect(await names(query), query).toEqual([true, true, true])
    expect((await owner.get('/audit-log?kind=webhook')).text).toContain('No matching entries')
  })

  it('shows nothing of another account', async () => {
    const [account, other] = [await app.newAccount(), await app.newAccount()]
    await write(account.accountId, 1, () => 'Secret name', account.userId)
    const stranger = await visitor(app, other)
    for (const query of [
      '',
      `?user=${account.userId}`,
      '?target=0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11',
    ])
      expect((await stranger.get(`/audit-log${query}`)).text).not.toContain('Secret name')
  })
})

describe('people in a browser', () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    app = await startApp()
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.[Symbol.asyncDispose]()
  })

  it('invites somebody, who joins in another browser and sees at once what they may do', async () => {
    const account = await app.newAccount()
    await using own = await visit(app, browser, '/people', { person: account })
    const { page } = own
    await page.getByRole('link', { name: 'Invite a teammate' }).first().click()
    await page.getByLabel('Name').fill('Jonas Weber')
    await page.getByLabel('Email').fill('jonas@northwind.example')
    expect(await page.getByRole('group', { name: 'May manage' }).isVisible()).toBe(false)
    await page.getByLabel('Admin').check()
    await page.getByRole('group', { name: 'May manage' }).getByLabel('Webhooks').check()
    await page.getByRole('radiogroup', { name: 'Tasks' }).getByLabel('Edit').check()
    await page.getByRole('button', { name: 'Create invite link' }).click()
    const shown = await page.getByRole('group', { name: 'link' }).innerText()
    const path = new URL(shown).pathname.replace('/console', '')
    await assertReadable(page, 'the link')

    await using theirs = await visit(app, browser, path)
    await theirs.page.getByLabel('Choose a password').fill(PASSWORD)
    await theirs.page.getByRole('button', { name: 'Join' }).click()
    await theirs.page.getByText('Welcome to Test account.').waitFor()
    await theirs.page.getByRole('link', { name: 'API keys' }).click()
    await theirs.page
      .getByText('You can view API keys but not change them. To get access, ask Test Owner')
      .waitFor()
    expect(await theirs.page.getByRole('link', { name: 'Create a key' }).count()).toBe(0)

    await page.goto(`${app.url}/console/people`)
    await page.getByRole('link', { name: 'Jonas Weber' }).click()
    await page.getByRole('group', { name: 'May manage' }).getByLabel('API keys').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated.').waitFor()
    await theirs.page.reload()
    await theirs.page.getByRole('link', { name: 'Create a key' }).waitFor()

    await page.getByLabel('Member').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated').waitFor()
    await theirs.page.goto(`${app.url}/console/me`)
    expect(await theirs.page.getByRole('link', { name: 'API keys' }).count()).toBe(0)

    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('Jonas Weber is deactivated and signed out.').waitFor()
    await theirs.page.reload()
    await theirs.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect([...own.troubles, ...theirs.troubles]).toEqual([])
    expect(await actionsOf(app, account.accountId)).toEqual([
      'user.invited',
      'user.joined',
      'session.started',
      'user.access_changed',
      'user.access_changed',
      'user.deactivated',
    ])
  })

  it('the filters of the audit log work in place, and stay in the address', async () => {
    const account = await app.newAccount()
    const owner = await visitor(app, account)
    await owner.post('/settings', { name: 'Northwind' })
    await owner.post('/api-keys', { name: 'CI', access_level: 'read_only' })
    await using own = await visit(app, browser, '/audit-log', { person: account })
    const { page } = own
    await page.getByLabel('About').selectOption('API keys')
    await page.getByText('<strong>Northwind</strong>').waitFor({ state: 'detached' })
    await page.waitForURL(/kind=api_key/)
    await page.getByRole('link', { name: 'Clear filters' }).waitFor()
    expect(await page.locator('tbody tr').count()).toBe(1)
    await page.reload()
    expect(await page.getByLabel('About').inputValue()).toBe('api_key')
    expect(await page.locator('tbody tr').count()).toBe(1)
    expect(own.troubles).toEqual([])
  })

  it.runIf(inject('database') === 'sqlite')(
    'every page is readable, wide and light or narrow and dark',
    async () => {
      const account = await app.newAccount()
      const person = await newPerson(app, account.accountId, { fullName: 'Jonas Weber' })
      const owner = await visitor(app, account)
      const invited = await owner.post('/people/invite', {
        full_name: 'Aiko',
        email: 'aiko@northwind.example',
        role: 'member',
        ...NOTHING,
      })
      await owner.post(`/people/${person.userId}`, { role: 'member', ...NOTHING })
      for (const options of [
        { viewport: { width: 1280, height: 860 }, colorScheme: 'light' },
        { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
      ] as const) {
        await using own = await visit(app, browser, '/people', { ...options, person: account })
        for (const path of [
          '/people',
          '/people/invite',
          `/people/${person.userId}`,
          `/people/${account.userId}`,
          '/audit-log',
        ]) {
          await own.page.goto(`${app.url}/console${path}`)
          await assertReadable(own.page, path)
        }
        expect(own.troubles).toEqual([])
        await using theirs = await visit(app, browser, linkIn(invited), options)
        await assertReadable(theirs.page, 'the page of an invitation')
        await theirs.page.goto(`${app.url}/console/invitation/x`)
        await assertReadable(theirs.page, 'the page of a link that is gone')
      }
    },
  )
})
