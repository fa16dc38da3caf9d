/** Signing up and in, one's own page, and the account: what its Owner sets and who that is. */
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { transferOwnership, updateUserStatus } from '../../records/users.ts'
import { routes } from '../../web/console/routes.ts'
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

const WRONG = 'The email or the password is wrong.'
const NEW_PASSWORD = 'a different horse entirely'

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** As `post`, from another address of this machine. */
function postFrom(
  localAddress: string,
  app: TestApp,
  path: string,
  fields: Record<string, string>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${app.url}/console${path}`, {
      method: 'POST',
      localAddress,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    })
    sent.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(new URLSearchParams(fields).toString())
  })
}

/** Somebody's own cookie, of an answer that signs in. */
function signedInBy({ headers }: ConsoleAnswer): Record<string, string> {
  return { Cookie: headers.get('set-cookie')?.split(';')[0] ?? '' }
}

async function ownersOf(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('users').where({ account_id: accountId, role: 'owner' }).pluck('id')
}

async function actionsOf(app: TestApp, accountId: string): Promise<string[]> {
  return app.db.read('audit_log').where({ account_id: accountId }).orderBy('id').pluck('action')
}

describe('signing up', () => {
  let app: TestApp
  let nobody: Visitor
  beforeAll(async () => {
    app = await startApp()
    nobody = await visitor(app)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const given = {
    account_name: ' Northwind ',
    full_name: 'Mara Keller',
    email: 'mara@northwind.example',
    password: PASSWORD,
  }

  it('makes an account with its Owner, who is signed in', async () => {
    const answer = await nobody.post('/sign-up', given)
    expect(answer).toMatchObject({ status: 303, to: '' })
    const { text } = await nobody.get('', signedInBy(answer))
    expect(text).toContain('Welcome to Muster. You own the account Northwind.')
    expect(text).toContain('Account Owner')
    const { text: log } = await nobody.get('/audit-log', signedInBy(answer))
    expect(log).toMatch(/Created the account .*Northwind/)
    expect(log).toContain('Signed in')
  })

  it('with an address of another account: says no more than that it cannot be used', async () => {
    const accounts = await app.db.read('accounts').count({ total: '*' })
    const { status, text } = await nobody.post('/sign-up', {
      ...given,
      email: ' MARA@northwind.example',
      account_name: 'Other',
    })
    expect(status).toBe(422)
    expect(text).toContain('This email cannot be used. Enter another one.')
    expect(text).not.toContain('Northwind')
    expect(text).toContain('value="Other"')
    expect(await app.db.read('accounts').count({ total: '*' })).toEqual(accounts)
  })

  it('with nothing right: says what is wrong with each field, keeps what was typed but the password, and counts no attempt', async () => {
    for (let n = 0; n < 12; n++) {
      const { status, text } = await nobody.post('/sign-up', {
        account_name: ' ',
        full_name: '<b>',
        email: 'mara',
        password: 'shorter',
      })
      expect(status).toBe(422)
      expect(text).toContain('The account name must not be empty.')
      expect(text).toContain('is not an email: use the form name@example.com.')
      expect(text).toContain('The password must be at least 8 characters long.')
      expect(text).toContain('value="&#60;b&#62;"')
      expect(text).not.toContain('shorter')
    }
  })

  it('again and again from one address: 429', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 11; n++)
      statuses.push(
        await postFrom('127.0.0.9', app, '/sign-up', { ...given, email: `x${n}@example.com` }),
      )
    expect(statuses).toEqual([...Array(10).fill(303), 429])
  })

  it('where it is turned off: there is no such page, and none leads there', async () => {
    await using closed = await startApp({ environment: { SIGN_UP: 'off' } })
    const somebody = await visitor(closed)
    expect((await somebody.get('/sign-up')).status).toBe(404)
    expect((await somebody.post('/sign-up', given)).status).toBe(404)
    expect((await somebody.get('/sign-in')).text).not.toContain('sign-up')
    expect(await closed.db.read('accounts')).toEqual([])
  })
})

describe('signing in', () => {
  let app: TestApp
  let account: TestAccount
  let nobody: Visitor
  beforeAll(async () => {
    app = await startApp()
    account = await app.newAccount()
    nobody = await visitor(app)
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const signIn = (email: string, password: string) => nobody.post('/sign-in', { email, password })

  it('says the same of a wrong password, an unknown address, somebody deactivated and somebody who has not joined', async () => {
    const known = await newPerson(app, account.accountId)
    const gone = await newPerson(app, account.accountId)
    const invited = await newPerson(app, account.accountId)
    await app.db.write('users').where({ id: gone.userId }).update({ status: 'deactivated' })
    await app.db.write('users').where({ id: invited.userId }).update({ password_hash: null })
    const answers = []
    for (const [email, password] of [
      [known.email, 'wrong'],
      ['nobody@example.com', PASSWORD],
      [gone.email, PASSWORD],
      [invited.email, ''.padEnd(8)],
    ] as const) {
      const { status, text, headers } = await signIn(email, password)
      expect(headers.has('set-cookie')).toBe(false)
      answers.push({ status, text: text.replaceAll(email, '') })
    }
    expect(answers[0]?.status).toBe(401)
    expect(answers[0]?.text).toContain(WRONG)
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  it('takes as long for an address that nobody has', async () => {
    const took = async (email: string): Promise<number> => {
      const start = performance.now()
      expect((await signIn(email, 'wrong')).status).toBe(401)
      return performance.now() - start
    }
    const known: number[] = []
    const unknown: number[] = []
    for (let n = 0; n < 7; n++) {
      known.push(await took((await newPerson(app, account.accountId)).email))
      unknown.push(await took(`nobody-${n}@example.com`))
    }
    expect(median(unknown)).toBeGreaterThan(median(known) / 2)
    expect(median(unknown)).toBeLessThan(median(known) * 2)
  })

  it('with nothing typed: says so, and counts no attempt', async () => {
    for (let n = 0; n < 6; n++) {
      const { status, text } = await signIn(' ', '')
      expect(status).toBe(422)
      expect(text).toContain('Enter your email.')
      expect(text).toContain('Enter your password.')
    }
  })

  it('after five wrong passwords: 429 also for the right one, but not for another account, nor from another address', async () => {
    await using own = await startApp()
    const { accountId } = await own.newAccount()
    const [person, other] = [await newPerson(own, accountId), await newPerson(own, accountId)]
    const somebody = await visitor(own)
    const attempt = (email: string, password: string) =>
      somebody.post('/sign-in', { email, password })
    for (let n = 0; n < 5; n++) expect((await attempt(person.email, 'wrong')).status).toBe(401)
    const refused = await attempt(person.email.toUpperCase(), PASSWORD)
    expect(refused.status).toBe(429)
    expect(refused.text).toMatch(/Too many attempts\. Try again in 1[45] minutes\./)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(14 * 60)
    expect((await attempt(other.email, PASSWORD)).status).toBe(303)
    expect(
      await postFrom('127.0.0.9', own, '/sign-in', { email: person.email, password: PASSWORD }),
    ).toBe(303)
    expect((await attempt(person.email, PASSWORD)).status).toBe(429)
  })

  it('a right password begins the count again', async () => {
    const { email } = await newPerson(app, account.accountId)
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 4; n++) expect((await signIn(email, 'wrong')).status).toBe(401)
      expect((await signIn(email, PASSWORD)).status).toBe(303)
    }
  })

  it('with an address as long as may be sent: counted and refused like all others', async () => {
    expect((await signIn(`${'x'.repeat(16_000)}@example.com`, 'wrong')).status).toBe(401)
  })

  it('of somebody who is signed in already: leads on', async () => {
    const owner = await visitor(app, account)
    expect(await owner.get('/sign-in?next=%2Fconsole%2Fme')).toMatchObject({
      status: 303,
      to: '/me',
    })
    expect(await owner.get('/sign-up')).toMatchObject({ status: 303, to: '' })
  })

  it('as somebody else ends the session before', async () => {
    const before = await visitor(app, account)
    const { email } = await newPerson(app, account.accountId)
    expect((await before.post('/sign-in', { email, password: PASSWORD })).status).toBe(303)
    expect((await before.get('/me')).status).toBe(303)
  })
})

describe('one’s own page', () => {
  let app: TestApp
  let account: TestAccount
  beforeAll(async () => {
    app = await startApp()
    account = await app.newAccount()
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const signInStatus = async (email: string, password: string) =>
    (await (await visitor(app)).post('/sign-in', { email, password })).status

  it('changes the name', async () => {
    const person = await newPerson(app, account.accountId, { role: 'member' })
    const own = await visitor(app, person)
    expect((await own.post('/me', { full_name: ' ' })).text).toContain(
      'Your name must not be empty.',
    )
    expect((await own.submit('/me', { full_name: ' Ada Lovelace ' })).text).toContain(
      '<strong>Ada Lovelace</strong>',
    )
  })

  it('changes the password: wants the present one, and signs out everybody else', async () => {
    const person = await newPerson(app, account.accountId)
    const [here, there] = [await visitor(app, person), await visitor(app, person)]
    const change = (current_password: string, new_password: string) =>
      here.submit('/me/password', { current_password, new_password })
    expect((await change('wrong', NEW_PASSWORD)).text).toContain(
      'This is not your current password.',
    )
    expect((await change(PASSWORD, 'short')).text).toContain('must be at least 8 characters long.')
    expect((await there.get('/me')).status).toBe(200)
    expect((await change(PASSWORD, NEW_PASSWORD)).text).toContain(
      'Password updated. 1 other session was signed out.',
    )
    expect((await there.get('/me')).status).toBe(303)
    expect((await here.get('/me')).status).toBe(200)
    expect(await signInStatus(person.email, PASSWORD)).toBe(401)
    expect(await signInStatus(person.email, NEW_PASSWORD)).toBe(303)
  })

  it('ends a link to a new password, once the password is changed or the ownership transferred', async () => {
    const { accountId, userId } = await app.newAccount()
    const [owner, person] = [await newPerson(app, accountId), await newPerson(app, accountId)]
    await app.db.write('users').where({ id: userId }).update({ role: 'admin' })
    await app.db.write('users').where({ id: owner.userId }).update({ role: 'owner' })
    const [theirs, mine, nobody] = [
      await visitor(app, person),
      await visitor(app, owner),
      await visitor(app),
    ]
    const newLink = async () =>
      (await mine.post(`/people/${person.userId}/link`)).text.match(
        /\/invitation\/[\w-]{43}/,
      )?.[0] ?? ''
    const statusOf = async (link: string) => (await nobody.get(link)).status
    const first = await newLink()
    expect(await statusOf(first)).toBe(200)
    await theirs.post('/me/password', { current_password: PASSWORD, new_password: NEW_PASSWORD })
    expect(await statusOf(first)).toBe(404)
    const second = await newLink()
    expect(await statusOf(second)).toBe(200)
    expect(
      (await mine.post('/settings/transfer', { user: person.userId, current_password: PASSWORD }))
        .status,
    ).toBe(303)
    expect(await statusOf(second)).toBe(404)
  })

  it('lets nobody guess the present password, not even with the session', async () => {
    const person = await newPerson(app, account.accountId)
    const own = await visitor(app, person)
    const guess = (current_password: string) =>
      own.post('/me/password', { current_password, new_password: NEW_PASSWORD })
    for (let n = 0; n < 5; n++)
      expect((await guess(`wrong ${n}`)).text).toContain('This is not your current password.')
    expect((await guess(PASSWORD)).text).toContain('Too many attempts.')
    const other = await newPerson(app, account.accountId)
    expect(
      (
        await (
          await visitor(app, other)
        ).post('/me/password', { current_password: PASSWORD, new_password: NEW_PASSWORD })
      ).status,
    ).toBe(303)
  })

  it('changes the e-mail address: wants the password, and an address that nobody has in any account', async () => {
    const person = await newPerson(app, account.accountId)
    const taken = await newPerson(app, (await app.newAccount()).accountId)
    const own = await visitor(app, person)
    const change = (email: string, current_password = PASSWORD) =>
      own.submit('/me/email', { email, current_password })
    const email = `new-${person.email}`
    expect((await change(email, 'wrong')).text).toContain('This is not your current password.')
    const refused = await change(taken.email.toUpperCase())
    expect(refused).toMatchObject({
      status: 422,
      text: expect.stringContaining('This email cannot be used. Enter another one.'),
    })
    expect(refused.text).toContain(`value="${taken.email.toUpperCase()}"`)
    expect((await change('nobody')).text).toContain(
      'is not an email: use the form name@example.com.',
    )
    expect((await change(email)).text).toContain(`From now on, sign in as ${email}.`)
    expect(await signInStatus(person.email, PASSWORD)).toBe(401)
    expect(await signInStatus(email, PASSWORD)).toBe(303)
  })

  it('lists the sessions with device and address, marks this one, and ends another or all others', async () => {
    const person = await newPerson(app, account.accountId)
    const own = await visitor(app, person)
    const [first, second, third] = [
      await visitor(app, person),
      await visitor(app, person),
      await visitor(app, person),
    ]
    const ids = async (): Promise<string[]> =>
      [...(await own.get('/me')).text.matchAll(/\/me\/sessions\/([0-9a-f-]{36})\/end/g)].map(
        ([, id]) => id ?? '',
      )
    await app.db.write('sessions').where({ user_id: person.userId }).update({
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0',
      ip: '203.0.113.9',
    })
    const { text } = await own.get('/me')
    expect(text.match(/Firefox on Linux/g)).toHaveLength(4)
    expect(text.match(/This device/g)).toHaveLength(1)
    expect(text).toContain('203.0.113.9')
    expect(await ids()).toHaveLength(3)

    expect((await own.submit(`/me/sessions/${(await ids())[0]}/end`)).text).toContain(
      'Firefox on Linux is signed out.',
    )
    const statuses = async () =>
      (await Promise.all([first, second, third].map((one) => one.get('/me'))))
        .map(({ status }) => status)
        .sort()
    expect(await statuses()).toEqual([200, 200, 303])
    expect((await own.submit('/me/sessions/end-others')).text).toContain(
      '2 other sessions were signed out.',
    )
    expect(await statuses()).toEqual([303, 303, 303])
    expect((await own.get('/me')).status).toBe(200)
    expect(await actionsOf(app, account.accountId)).toEqual(
      expect.arrayContaining(['session.ended', 'session.others_ended']),
    )
  })

  it('ends no session of somebody else', async () => {
    const [person, other] = [
      await newPerson(app, account.accountId),
      await newPerson(app, account.accountId),
    ]
    const theirs = await visitor(app, other)
    const [id] = await app.db.read('sessions').where({ user_id: other.userId }).pluck('id')
    expect((await (await visitor(app, person)).post(`/me/sessions/${id}/end`)).status).toBe(404)
    expect((await theirs.get('/me')).status).toBe(200)
  })

  it('remembers the theme', async () => {
    const own = await visitor(app, await newPerson(app, account.accountId))
    const { headers } = await own.post('/theme', { theme: 'dark' })
    const cookie = `${own.cookie}; ${headers.get('set-cookie')?.split(';')[0]}`
    const { text } = await own.get('/me', { Cookie: cookie })
    expect(text).toContain('<html lang="en" data-theme="dark">')
    expect(text).toContain('<option value="dark" selected>')
  })
})

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

  it('renames the account, and nothing is lost of a name that cannot be', async () => {
    const { status, text } = await owner.post('/settings', { name: 'x'.repeat(201) })
    expect(status).toBe(422)
    expect(text).toContain(`value="${'x'.repeat(201)}"`)
    expect((await owner.submit('/settings', { name: 'Northwind' })).text).toContain(
      'Account renamed to Northwind.',
    )
    expect((await owner.get('/audit-log')).text).toMatch(/Name: Test account.*Northwind/s)
  })

  it('says how the service is set up', async () => {
    const { text } = await owner.get('/settings')
    expect(text).toContain('1,000,000 requests per minute')
    expect(text).toContain('per minute and user, over all their API keys')
    expect(text).toContain('Kept for 45 days, with their deliveries')
    expect(text).toContain('after their delivery ended')
    expect(text).toContain(`${app.config.baseUrl}/public/v1`)
  })
})

describe('transferring the ownership', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  /** An account whose Owner has a password, and two others. */
  async function newTeam() {
    const account = await app.newAccount()
    const [owner, first, second] = await Promise.all(
      ['Mara', 'Jonas', 'Priya'].map((fullName) => newPerson(app, account.accountId, { fullName })),
    )
    if (!owner || !first || !second) throw new Error('There are three')
    await app.db.write('users').where({ id: account.userId }).update({ role: 'admin' })
    await app.db.write('users').where({ id: owner.userId }).update({ role: 'owner' })
    return { ...account, owner, first, second }
  }

  it('makes the other one the Owner with every permission, and the Owner an Admin with both grants', async () => {
    const { accountId, owner, first } = await newTeam()
    const [old, heir] = [await visitor(app, owner), await visitor(app, first)]
    expect((await heir.get('/people')).status).toBe(404)
    const answer = await old.submit('/settings/transfer', {
      user: first.userId,
      current_password: PASSWORD,
    })
    expect(answer.text).toContain('Jonas is now the Account Owner. You are an Admin.')
    expect(await ownersOf(app, accountId)).toEqual([first.userId])
    const [before] = await app.db.read('users').where({ id: owner.userId })
    expect(before.role).toBe('admin')
    expect([before.can_manage_api_keys, before.can_manage_webhooks].map(Boolean)).toEqual([
      true,
      true,
    ])
    expect((await old.get('/people')).status).toBe(404)
    expect((await old.get('/api-keys/new')).status).toBe(200)
    expect((await heir.get('/people')).status).toBe(200)
    const [after] = await app.db.read('users').where({ id: first.userId })
    expect(after.finance_permission).toBe('write')
    expect((await heir.get('/audit-log')).text).toContain('Transferred the ownership')
  })

  it('wants the password, and an active person who has joined', async () => {
    const { accountId, owner, first, second } = await newTeam()
    await app.db.write('users').where({ id: first.userId }).update({ status: 'deactivated' })
    await app.db.write('users').where({ id: second.userId }).update({ password_hash: null })
    const other = await newPerson(app, (await app.newAccount()).accountId)
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
    expect(await ownersOf(app, accountId)).toEqual([owner.userId])
  })

  it('twice at once: one is done, the other refused, and there is one Owner', async () => {
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
      expect(await ownersOf(app, accountId)).toHaveLength(1)
      expect(
        (await actionsOf(app, accountId)).filter(
          (action) => action === 'account.ownership_transferred',
        ),
      ).toHaveLength(1)
    }
  })

  it('while the heir is being deactivated: the one who comes second is refused', async () => {
    const { accountId, owner, first } = await newTeam()
    const other = await visitor(app, owner)
    const { deactivation } = await transaction(app.db, async (trx) => {
      await transferOwnership(accountScope(trx, accountId), owner.userId, first.userId, new Date())
      const deactivation = other.post(`/people/${first.userId}/deactivate`)
      // Long enough for it to wait for this transaction.
      await delay(300)
      return { deactivation }
    })
    expect((await deactivation).status).toBeLessThan(500)
    const owners = await app.db
      .read('users')
      .where({ account_id: accountId, role: 'owner' })
      .select('id', 'status')
    expect(owners).toEqual([{ id: first.userId, status: 'active' }])
    expect(await actionsOf(app, accountId)).toEqual([])
  })

  it('while the heir is being deactivated, the other way round: the ownership stays', async () => {
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
      'Choose an active user of the account who has set a password',
    )
    expect(await ownersOf(app, accountId)).toEqual([owner.userId])
  })
})

describe('who is no Owner', () => {
  it('finds no page and no action of the Owner', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    const someone = await newPerson(app, account.accountId)
    const admin = await visitor(
      app,
      await newPerson(app, account.accountId, { grants: ['api_keys', 'webhooks'] }),
    )
    const member = await visitor(app, await newPerson(app, account.accountId, { role: 'member' }))
    const ofOwner = routes.filter(({ path }) => /^\/(people|settings|audit-log)\b/.test(path))
    expect(ofOwner.length).toBeGreaterThan(12)
    for (const { method, path } of ofOwner)
      for (const visitor of [admin, member]) {
        const address = path.replace(':user', someone.userId)
        const { status } =
          method === 'GET'
            ? await visitor.get(address)
            : await visitor.post(address, { full_name: 'x', name: 'x' })
        expect(status, `${method} ${path}`).toBe(404)
      }
    expect(
      await app.db.read('users').where({ id: someone.userId }).select('status', 'role'),
    ).toEqual([{ status: 'active', role: 'admin' }])
    expect(await actionsOf(app, account.accountId)).toEqual([])
  })
})

describe('the account in a browser', () => {
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

  it('changing the password signs out the other browser', async () => {
    const { accountId } = await app.newAccount()
    const person = await newPerson(app, accountId)
    await using here = await visit(app, browser, '/me', { person })
    await using there = await visit(app, browser, '/me', { person })
    await here.page.getByRole('link', { name: 'Change password' }).click()
    await here.page.getByLabel('Current password').fill(PASSWORD)
    const field = here.page.getByLabel('New password')
    await field.fill(NEW_PASSWORD)
    await here.page.getByRole('button', { name: 'Show the password' }).last().click()
    expect(await field.getAttribute('type')).toBe('text')
    await here.page.getByRole('button', { name: 'Change password' }).click()
    await here.page.getByText('Password updated. 1 other session was signed out.').waitFor()
    await there.page.reload()
    await there.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect([...here.troubles, ...there.troubles]).toEqual([])
  })

  it('the ownership goes to another person, who sees it on the next page', async () => {
    const { accountId, userId } = await app.newAccount()
    const owner = await newPerson(app, accountId, { fullName: 'Mara Keller' })
    await app.db.write('users').where({ id: userId }).update({ role: 'admin' })
    await app.db.write('users').where({ id: owner.userId }).update({ role: 'owner' })
    const heir = await newPerson(app, accountId, { fullName: 'Jonas Weber', role: 'member' })
    await using old = await visit(app, browser, '/settings', { person: owner })
    await using next = await visit(app, browser, '/me', { person: heir })
    expect(await next.page.getByRole('link', { name: 'People' }).count()).toBe(0)
    await old.page.getByRole('link', { name: 'Transfer ownership' }).click()
    await old.page.getByLabel('New Owner').selectOption(heir.userId)
    await old.page.getByLabel('Your password').fill(PASSWORD)
    await old.page.getByRole('button', { name: 'Transfer ownership' }).click()
    await old.page.getByText('Jonas Weber is now the Account Owner').waitFor()
    expect(await old.page.getByRole('link', { name: 'People' }).count()).toBe(0)
    await next.page.reload()
    await next.page.getByRole('link', { name: 'People' }).click()
    await next.page.getByRole('heading', { name: 'People' }).waitFor()
    expect([...old.troubles, ...next.troubles]).toEqual([])
  })

  // The pages are the same on both databases.
  it.runIf(inject('database') === 'sqlite')(
    'every page is readable, wide and light or narrow and dark',
    async () => {
      const account = await app.newAccount()
      await newPerson(app, account.accountId, { fullName: 'Jonas Weber' })
      for (const options of [
        { viewport: { width: 1280, height: 860 }, colorScheme: 'light' },
        { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
      ] as const) {
        for (const path of ['/sign-in', '/sign-up']) {
          await using visited = await visit(app, browser, path, options)
          await assertReadable(visited.page, path)
          await visited.page.getByRole('button').last().click()
          await visited.page.getByText('Please fix the fields marked below.').waitFor()
          await assertReadable(visited.page, `${path}, with errors`)
        }
        await using visited = await visit(app, browser, '/me', { ...options, person: account })
        for (const path of [
          '/me',
          '/me/email',
          '/me/password',
          '/settings',
          '/settings/transfer',
        ]) {
          await visited.page.goto(`${app.url}/console${path}`)
          await assertReadable(visited.page, path)
        }
        expect(visited.troubles).toEqual([])
      }
    },
  )
})
