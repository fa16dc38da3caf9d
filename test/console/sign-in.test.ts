/** Signing in to the console. */
import { beforeAll, describe, expect, it } from 'vitest'
import { listAuditEntries } from '../../records/audit-log.ts'
import { accountScope } from '../../records/database/scope.ts'
import { sharedApp, startApp, type TestAccount, until } from '../helpers.ts'
import { newConsoleUser, PASSWORD, postFrom, type Visitor, visitor } from './visitors.ts'

const WRONG = 'The email or the password is wrong.'

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

describe('sign-in', () => {
  let account: TestAccount
  let guest: Visitor
  const app = sharedApp()
  beforeAll(async () => {
    account = await app.newAccount()
    guest = await visitor(app)
  })

  const signIn = (email: string, password: string) => guest.post('/sign-in', { email, password })

  it('a wrong password, an unknown email, a deactivated and an invited user: the same 401', async () => {
    const known = await newConsoleUser(app, account.accountId)
    const gone = await newConsoleUser(app, account.accountId)
    const invited = await newConsoleUser(app, account.accountId)
    await app.db.write('users').where({ id: gone.userId }).update({ status: 'deactivated' })
    await app.db.write('users').where({ id: invited.userId }).update({ password_hash: null })
    const answers = []
    for (const [email, password] of [
      [known.email, 'wrong'],
      ['nobody@example.com', PASSWORD],
      [gone.email, PASSWORD],
      [invited.email, ' '.repeat(8)],
    ] as const) {
      const { status, text, headers } = await signIn(email, password)
      expect(headers.has('set-cookie')).toBe(false)
      answers.push({ status, text: text.replaceAll(email, '') })
    }
    expect(answers[0]?.status).toBe(401)
    expect(answers[0]?.text).toContain(WRONG)
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  it('an unknown email: takes as long as a wrong password', async () => {
    const measure = async (email: string): Promise<number> => {
      const start = performance.now()
      expect((await signIn(email, 'wrong')).status).toBe(401)
      return performance.now() - start
    }
    const knownMs: number[] = []
    const unknownMs: number[] = []
    for (let n = 0; n < 7; n++) {
      knownMs.push(await measure((await newConsoleUser(app, account.accountId)).email))
      unknownMs.push(await measure(`nobody-${n}@example.com`))
    }
    expect(median(unknownMs)).toBeGreaterThan(median(knownMs) / 2)
    expect(median(unknownMs)).toBeLessThan(median(knownMs) * 2)
  })

  it('empty fields: 422, and the limit of attempts does not count them', async () => {
    for (let n = 0; n < 6; n++) {
      const { status, text } = await signIn(' ', '')
      expect(status).toBe(422)
      expect(text).toContain('Enter your email.')
      expect(text).toContain('Enter your password.')
    }
  })

  it('after five wrong passwords: 429 even for the right one, but not for another user or IP address', async () => {
    // With counts of its own, because the other tests sign in from the same IP address.
    await using isolated = await startApp()
    const { accountId } = await isolated.newAccount()
    const person = await newConsoleUser(isolated, accountId)
    const other = await newConsoleUser(isolated, accountId)
    const isolatedGuest = await visitor(isolated)
    const attempt = (email: string, password: string) =>
      isolatedGuest.post('/sign-in', { email, password })
    for (let n = 0; n < 5; n++) expect((await attempt(person.email, 'wrong')).status).toBe(401)
    const refused = await attempt(person.email.toUpperCase(), PASSWORD)
    expect(refused.status).toBe(429)
    expect(refused.text).toMatch(/Too many attempts\. Try again in 1[45] minutes\./)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(14 * 60)
    expect((await attempt(other.email, PASSWORD)).status).toBe(303)
    expect(
      await postFrom('127.0.0.9', isolated, '/sign-in', {
        email: person.email,
        password: PASSWORD,
      }),
    ).toBe(303)
    expect((await attempt(person.email, PASSWORD)).status).toBe(429)
    const scope = accountScope({ dialect: isolated.db.dialect, sql: isolated.db.read }, accountId)
    const refusals = await until('two entries about refusals', async () => {
      const entries = await listAuditEntries(scope, { kind: 'session', limit: 10 })
      const refused = entries.filter(({ action }) => action === 'session.refused')
      return refused.length >= 2 && refused
    })
    expect(refusals).toEqual(
      [true, false].map((is_blocked) =>
        expect.objectContaining({ userId: person.userId, details: { is_blocked } }),
      ),
    )
  })

  it('the right password: resets the count', async () => {
    const { email } = await newConsoleUser(app, account.accountId)
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 4; n++) expect((await signIn(email, 'wrong')).status).toBe(401)
      expect((await signIn(email, PASSWORD)).status).toBe(303)
    }
  })

  it('an email of 16,000 characters: 401', async () => {
    expect((await signIn(`${'x'.repeat(16_000)}@example.com`, 'wrong')).status).toBe(401)
  })

  it('a user who is signed in: redirects to `next`', async () => {
    const owner = await visitor(app, account)
    expect(await owner.get('/sign-in?next=%2Fconsole%2Fme')).toMatchObject({
      status: 303,
      to: '/me',
    })
    expect(await owner.get('/sign-up')).toMatchObject({ status: 303, to: '' })
  })

  it('a second user in the same browser: ends the session of the first', async () => {
    const browser = await visitor(app, account)
    const { email } = await newConsoleUser(app, account.accountId)
    const oldSession = { Cookie: browser.cookie }
    expect((await browser.post('/sign-in', { email, password: PASSWORD })).status).toBe(303)
    expect((await browser.get('/me', oldSession)).status).toBe(303)
  })
})
