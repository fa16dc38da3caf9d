/** Creating an account in the console. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, startApp } from '../helpers.ts'
import { PASSWORD, postFrom, sessionOf, type Visitor, visitor } from './visitors.ts'

describe('sign-up', () => {
  let guest: Visitor
  const app = sharedApp()
  beforeAll(async () => {
    guest = await visitor(app)
  })

  const input = {
    account_name: ' Northwind ',
    full_name: 'Mara Keller',
    email: 'mara@northwind.example',
    password: PASSWORD,
  }

  it('creates an account with its owner, and signs the owner in', async () => {
    const answer = await guest.post('/sign-up', input)
    expect(answer).toMatchObject({ status: 303, to: '' })
    const { text } = await guest.get('', sessionOf(answer))
    expect(text).toContain('Welcome to Muster. You own the account Northwind.')
    expect(text).toContain('Account Owner')
    const { text: log } = await guest.get('/audit-log', sessionOf(answer))
    expect(log).toMatch(/Created the account .*Northwind/)
    expect(log).toContain('Signed in')
  })

  it('an email in use: 422 that does not tell who uses it', async () => {
    const email = 'taken@northwind.example'
    expect((await guest.post('/sign-up', { ...input, email })).status).toBe(303)
    const accounts = await app.db.read('accounts').count({ total: '*' })
    const { status, text } = await guest.post('/sign-up', {
      ...input,
      email: ' TAKEN@northwind.example',
      account_name: 'Other',
    })
    expect(status).toBe(422)
    expect(text).toContain('This email cannot be used. Enter another one.')
    expect(text).not.toContain('Northwind')
    expect(text).toContain('value="Other"')
    expect(await app.db.read('accounts').count({ total: '*' })).toEqual(accounts)
  })

  it('invalid fields: 422 with each problem and without the password, and the limit of sign-ups does not count them', async () => {
    for (let n = 0; n < 12; n++) {
      const { status, text } = await guest.post('/sign-up', {
        account_name: ' ',
        full_name: '<b>',
        email: 'mara',
        password: 'shorter',
      })
      expect(status).toBe(422)
      expect(text).toContain('The account name must not be empty.')
      expect(text).toContain('is not an email. Use the form name@example.com.')
      expect(text).toContain('The password must be at least 8 characters long.')
      expect(text).toContain('value="&#60;b&#62;"')
      expect(text).not.toContain('shorter')
    }
  })

  it('more than 10 an hour from one IP address: 429', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 11; n++)
      statuses.push(
        await postFrom('127.0.0.9', app, '/sign-up', { ...input, email: `x${n}@example.com` }),
      )
    expect(statuses).toEqual([...Array(10).fill(303), 429])
  })

  it('SIGN_UP=off: 404, and the sign-in page has no link to it', async () => {
    await using closed = await startApp({ environment: { SIGN_UP: 'off' } })
    const closedGuest = await visitor(closed)
    expect((await closedGuest.get('/sign-up')).status).toBe(404)
    expect((await closedGuest.post('/sign-up', input)).status).toBe(404)
    expect((await closedGuest.get('/sign-in')).text).not.toContain('sign-up')
    expect(await closed.db.read('accounts')).toEqual([])
  })
})
