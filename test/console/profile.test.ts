/** The profile of the signed-in user: name, password, email, sessions, theme. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { listActions, newConsoleUser, PASSWORD, visitor } from './visitors.ts'

const NEW_PASSWORD = 'a different horse entirely'

describe('profile', () => {
  let account: TestAccount
  const app = sharedApp()
  beforeAll(async () => {
    account = await app.newAccount()
  })

  const signInStatus = async (email: string, password: string) =>
    (await (await visitor(app)).post('/sign-in', { email, password })).status

  it('change the name: an empty one is refused, a new one is shown without its outer spaces', async () => {
    const person = await newConsoleUser(app, account.accountId, { role: 'member' })
    const user = await visitor(app, person)
    const refused = await user.post('/me', { full_name: ' ' })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('Your name must not be empty.')
    expect((await user.submit('/me', { full_name: ' Ada Lovelace ' })).text).toContain(
      '<strong>Ada Lovelace</strong>',
    )
  })

  it('change the password: needs the current one, and signs out other devices', async () => {
    const person = await newConsoleUser(app, account.accountId)
    const [here, there] = [await visitor(app, person), await visitor(app, person)]
    const change = (current_password: string, new_password: string) =>
      here.submit('/me/password', { current_password, new_password })
    expect((await change('wrong', NEW_PASSWORD)).text).toContain(
      'This is not your current password.',
    )
    expect((await change(PASSWORD, 'short')).text).toContain('must be at least 8 characters long.')
    for (const common of ['Password123', 'aaaaaaaaa', person.email])
      expect((await change(PASSWORD, common)).text).toContain('choose another one.')
    expect((await there.get('/me')).status).toBe(200)
    const oldSession = { Cookie: here.cookie }
    expect((await change(PASSWORD, NEW_PASSWORD)).text).toContain(
      'Password updated. 1 other session was signed out.',
    )
    expect((await there.get('/me')).status).toBe(303)
    expect((await here.get('/me')).status).toBe(200)
    expect((await here.get('/me', oldSession)).status).toBe(303)
    expect(await signInStatus(person.email, PASSWORD)).toBe(401)
    expect(await signInStatus(person.email, NEW_PASSWORD)).toBe(303)
  })

  it('five wrong current passwords: refused even with the right one, but not for another user', async () => {
    const person = await newConsoleUser(app, account.accountId)
    const user = await visitor(app, person)
    const guess = (current_password: string) =>
      user.post('/me/password', { current_password, new_password: NEW_PASSWORD })
    for (let n = 0; n < 5; n++)
      expect((await guess(`wrong ${n}`)).text).toContain('This is not your current password.')
    expect((await guess(PASSWORD)).text).toContain('Too many attempts.')
    const other = await newConsoleUser(app, account.accountId)
    const otherVisitor = await visitor(app, other)
    const fields = { current_password: PASSWORD, new_password: NEW_PASSWORD }
    expect((await otherVisitor.post('/me/password', fields)).status).toBe(303)
  })

  it('change the email: needs the password and an email that no account uses', async () => {
    const person = await newConsoleUser(app, account.accountId)
    const taken = await newConsoleUser(app, (await app.newAccount()).accountId)
    const user = await visitor(app, person)
    const change = (email: string, current_password = PASSWORD) =>
      user.submit('/me/email', { email, current_password })
    const email = `new-${person.email}`
    expect((await change(email, 'wrong')).text).toContain('This is not your current password.')
    const refused = await change(taken.email.toUpperCase())
    expect(refused).toMatchObject({
      status: 422,
      text: expect.stringContaining('This email cannot be used. Enter another one.'),
    })
    expect(refused.text).toContain(`value="${taken.email.toUpperCase()}"`)
    expect((await change('nobody')).text).toContain(
      'is not an email. Use the form name@example.com.',
    )
    expect((await change(email)).text).toContain(`From now on, sign in as ${email}.`)
    expect(await signInStatus(person.email, PASSWORD)).toBe(401)
    expect(await signInStatus(email, PASSWORD)).toBe(303)
  })

  it('sessions: shows the device and the IP address of each, marks this one, and ends one or all others', async () => {
    const person = await newConsoleUser(app, account.accountId)
    const user = await visitor(app, person)
    const [first, second, third] = [
      await visitor(app, person),
      await visitor(app, person),
      await visitor(app, person),
    ]
    const ids = async (): Promise<string[]> =>
      [...(await user.get('/me')).text.matchAll(/\/me\/sessions\/([0-9a-f-]{36})\/end/g)].map(
        ([, id]) => id ?? '',
      )
    await app.db.write('sessions').where({ user_id: person.userId }).update({
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0',
      ip: '203.0.113.9',
    })
    const { text } = await user.get('/me')
    expect(text.match(/Firefox on Linux/g)).toHaveLength(4)
    expect(text.match(/This device/g)).toHaveLength(1)
    expect(text).toContain('203.0.113.9')
    expect(await ids()).toHaveLength(3)

    expect((await user.submit(`/me/sessions/${(await ids())[0]}/end`)).text).toContain(
      'Firefox on Linux is signed out.',
    )
    const statuses = async () =>
      (await Promise.all([first, second, third].map((device) => device.get('/me'))))
        .map(({ status }) => status)
        .sort()
    expect(await statuses()).toEqual([200, 200, 303])
    expect((await user.submit('/me/sessions/end-others')).text).toContain(
      '2 other sessions were signed out.',
    )
    expect(await statuses()).toEqual([303, 303, 303])
    expect((await user.get('/me')).status).toBe(200)
    expect(await listActions(app, account.accountId)).toEqual(
      expect.arrayContaining(['session.ended', 'session.others_ended']),
    )
  })

  it('end a session of another user: 404', async () => {
    const [person, other] = [
      await newConsoleUser(app, account.accountId),
      await newConsoleUser(app, account.accountId),
    ]
    const otherVisitor = await visitor(app, other)
    const [id] = await app.db.read('sessions').where({ user_id: other.userId }).pluck('id')
    expect((await (await visitor(app, person)).post(`/me/sessions/${id}/end`)).status).toBe(404)
    expect((await otherVisitor.get('/me')).status).toBe(200)
  })

  it('choose a theme and a time zone: the browser keeps them', async () => {
    const user = await visitor(app, await newConsoleUser(app, account.accountId))
    const chosen = { theme: 'dark', zone: 'Asia/Tokyo' }
    const { to, headers } = await user.post('/me/browser', chosen)
    expect(to).toBe('/me')
    const cookies = headers.getSetCookie().map((cookie) => cookie.split(';')[0])
    const { text } = await user.get('/me', { Cookie: [user.cookie, ...cookies].join('; ') })
    expect(text).toContain('Theme and time zone saved for this browser.')
    expect(text).toContain('<html lang="en" data-theme="dark">')
    expect(text).toContain('<option value="dark" selected>')
    expect(text).toContain('<option value="Asia/Tokyo" selected>')
  })
})
