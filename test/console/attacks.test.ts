/** Attacks on the console by guests and by users. */
import { availableParallelism } from 'node:os'
import { beforeAll, describe, expect, it } from 'vitest'
import { toNetwork } from '../../auth/rate-limit.ts'
import { sharedApp } from '../helpers.ts'
import {
  type ConsoleAnswer,
  linkIn,
  NO_ACCESS,
  newAccountOwner,
  newAccountWithPassword,
  newConsoleUser,
  PASSWORD,
  type Visitor,
  visitor,
} from './visitors.ts'

const NEW_PASSWORD = 'a wholly new password'

it.each([
  { ip: '203.0.113.9', network: '203.0.113.9' },
  { ip: '::ffff:203.0.113.9', network: '203.0.113.9' },
  { ip: '2001:db8:1:2:3:4:5:6', network: '2001:db8:1:2::/64' },
  { ip: '2001:db8:1:2::ffff', network: '2001:db8:1:2::/64' },
  { ip: '::1', network: '0:0:0:0::/64' },
  { ip: 'unknown', network: 'unknown' },
])('$ip counts as $network', ({ ip, network }) => {
  expect(toNetwork(ip)).toBe(network)
})

describe('limits against attacks', () => {
  const app = sharedApp({ environment: { TRUSTED_PROXIES: '1' } })

  const signIn = async (email: string, password: string, ip: string, cookie = '') =>
    (await visitor(app)).post(
      '/sign-in',
      { email, password },
      { 'X-Forwarded-For': ip, ...(cookie !== '' && { Cookie: cookie }) },
    )
  const cookiesOf = (headers: Headers): string =>
    headers
      .getSetCookie()
      .map((cookie) => cookie.split(';')[0])
      .join('; ')

  /** The cookie of a device from which the user has signed in. Throws if the sign-in failed. */
  function deviceOf({ status, headers }: ConsoleAnswer): string {
    const device = cookiesOf(headers)
      .split('; ')
      .find((cookie) => cookie.startsWith('muster-device='))
    if (status !== 303 || device === undefined) throw new Error(`Not signed in: ${status}`)
    return device
  }

  describe('a form', () => {
    it('of a guest: 413 above 16 KiB', async () => {
      const guest = await visitor(app)
      expect((await guest.post('/sign-in', { email: 'x'.repeat(17_000) })).status).toBe(413)
    })

    it('with more than 5,000 fields: 413', async () => {
      const owner = await visitor(app, await app.newAccount())
      const response = await fetch(`${app.url}/console/me`, {
        method: 'POST',
        headers: { Cookie: owner.cookie, 'Content-Type': 'application/x-www-form-urlencoded' },
        body: 'a&'.repeat(200_000),
      })
      expect(response.status).toBe(413)
    })

    it('of a user without access: 404 and not 413, however large it is', async () => {
      const { accountId } = await app.newAccount()
      const member = await visitor(app, await newConsoleUser(app, accountId, { role: 'member' }))
      expect((await member.post('/people/invite', { full_name: 'x'.repeat(2 ** 20) })).status).toBe(
        404,
      )
    })
  })

  describe('guessing passwords', () => {
    it('in a flood: 503 for those who would wait too long; users can sign in afterwards', async () => {
      const { accountId } = await app.newAccount()
      const { email } = await newConsoleUser(app, accountId)
      // More than the threads that hash passwords and their queue can take at once.
      const flood = Array.from({ length: 100 + availableParallelism() }, (_, guess) =>
        signIn(`${guess}@example.com`, 'guess', `192.0.2.${guess}`),
      )
      const busy = (await Promise.all(flood)).filter(({ status }) => status !== 401)
      expect(busy.length).toBeGreaterThan(0)
      for (const { status, headers, text } of busy) {
        expect(status).toBe(503)
        expect(headers.get('Retry-After')).toBe('5')
        expect(text).toContain('Try again in a few seconds.')
      }
      expect((await signIn(email, PASSWORD, '192.0.2.254')).status).toBe(303)
    })

    it('from one IPv6 /64 network: 429 after 50 guesses', async () => {
      const statuses: number[] = []
      for (let guess = 0; guess < 52; guess++)
        statuses.push(
          (await signIn(`${guess}@example.com`, 'guess', `2001:db8:7:7::${guess}`)).status,
        )
      expect(statuses).toEqual([...Array(50).fill(401), 429, 429])
    })

    it('from many IP addresses: 429 for the user on new devices, but not on known ones or with a link', async () => {
      const account = await app.newAccount()
      const { accountId } = account
      const { email, userId } = await newConsoleUser(app, accountId)
      const device = deviceOf(await signIn(email, PASSWORD, '203.0.113.1'))
      const colleague = await newConsoleUser(app, accountId)
      const otherDevice = deviceOf(await signIn(colleague.email, PASSWORD, '203.0.113.1'))
      // Four from each IP address, which may try five passwords for one email.
      for (let guess = 0; guess < 50; guess++)
        await signIn(email, 'guess', `198.51.100.${Math.floor(guess / 4)}`)
      const refused = await signIn(email, PASSWORD, '203.0.113.2')
      expect(refused.status).toBe(429)
      expect(refused.text).toContain('ask the Account Owner or the operator')
      expect((await signIn(email, PASSWORD, '203.0.113.2', otherDevice)).status).toBe(429)
      expect((await signIn(email, PASSWORD, '203.0.113.2', device)).status).toBe(303)

      const owner = await visitor(app, account)
      const link = linkIn(await owner.post(`/people/${userId}/link`))
      const elsewhere = await visitor(app)
      const newDevice = deviceOf(await elsewhere.post(link, { password: NEW_PASSWORD }))
      expect((await signIn(email, NEW_PASSWORD, '203.0.113.3')).status).toBe(429)
      expect((await signIn(email, NEW_PASSWORD, '203.0.113.3', newDevice)).status).toBe(303)
    })
  })

  describe('a transfer of ownership', () => {
    it('during requests for password links of the new owner: leaves no usable link', async () => {
      for (let round = 0; round < 4; round++) {
        const account = await newAccountWithPassword(app)
        const { accountId } = account
        const newOwner = await newConsoleUser(app, accountId)
        const oldOwner = await visitor(app, account)
        const requestLinks = () =>
          Array.from({ length: 20 }, () => oldOwner.post(`/people/${newOwner.userId}/link`))
        const before = requestLinks()
        const transfer = oldOwner.post('/settings/transfer', {
          user: newOwner.userId,
          current_password: PASSWORD,
        })
        const after = requestLinks()
        expect((await transfer).status).toBe(303)
        await Promise.all([...before, ...after])
        expect(
          await app.db.read('users').where({ account_id: accountId, role: 'owner' }).pluck('id'),
        ).toEqual([newOwner.userId])
        expect(await app.db.read('invitations').where({ user_id: newOwner.userId })).toEqual([])
      }
    })
  })

  it('a sign-in with the old password during its change: leaves no session', async () => {
    const { accountId } = await app.newAccount()
    const person = await newConsoleUser(app, accountId)
    const changing = await visitor(app, person)
    const signInEightTimes = (from: number) =>
      Array.from({ length: 8 }, (_, index) =>
        signIn(person.email, PASSWORD, `192.0.2.${from + index}`),
      )
    const before = signInEightTimes(0)
    const changed = changing.post('/me/password', {
      current_password: PASSWORD,
      new_password: 'another horse battery staple',
    })
    const after = signInEightTimes(20)
    expect((await changed).status).toBe(303)
    for (const { status, headers } of await Promise.all([...before, ...after])) {
      const hasSignedIn = status === 303
      if (!hasSignedIn) continue
      const page = await fetch(`${app.url}/console/me`, {
        redirect: 'manual',
        headers: { Cookie: cookiesOf(headers) },
      })
      expect(page.status).toBe(303)
    }
    // Only the session that changed the password is left.
    expect(
      await app.db.read('sessions').where({ user_id: person.userId }).pluck('id'),
    ).toHaveLength(1)
  })

  it('invitations that probe for emails in use: refused after 60', async () => {
    const owner = await visitor(app, await app.newAccount())
    const invite = (email: string) =>
      owner.post('/people/invite', { full_name: 'Jonas', email, role: 'member', ...NO_ACCESS })
    const statuses: number[] = []
    for (let count = 0; count < 62; count++)
      statuses.push((await invite(`invited-${count}@example.com`)).status)
    expect(statuses).toEqual([...Array(60).fill(200), 422, 422])
    expect((await invite('invited-99@example.com')).text).toContain('Too many attempts')
  })

  it('an invalid Referer: no server error', async () => {
    expect(
      await (await visitor(app)).post('/theme', { theme: 'dark' }, { Referer: 'http://[' }),
    ).toMatchObject({ status: 303, to: '' })
  })
})

describe('a malformed ID', () => {
  const app = sharedApp()
  let owner: Visitor
  beforeAll(async () => {
    ;({ owner } = await newAccountOwner(app))
  })

  async function expectNoServerError(path: string): Promise<void> {
    expect((await owner.get(path)).status, path).toBeLessThan(500)
  }

  const pages = [
    ...['/requests', '/requests.csv', '/api-keys', '/audit-log'],
    ...['/people', '/webhooks', '/webhooks/jobs', '/webhooks/new'],
  ]
  const slugs = ['participants', 'tasks', 'jobs', 'job-applications', 'exports', 'payments']
  const recordLists = slugs.map((slug) => `/records/${slug}`)
  const parameters = [
    ...['key', 'user', 'target', 'before', 'after', 'id'],
    ...['request', 'webhook', 'cursor', 'page', 'participant_id', 'job_id'],
  ]
  const malformedIds = [
    '-'.repeat(36),
    'g'.repeat(36),
    `1_${'-'.repeat(36)}`,
    '{00000000-0000-0000-0000-000000000000}',
    '0'.repeat(36),
  ]

  it.each([...pages, ...recordLists])(
    'in any parameter of %s is not a server error',
    async (path) => {
      for (const name of parameters)
        for (const value of malformedIds)
          await expectNoServerError(`${path}?${name}=${encodeURIComponent(value)}`)
    },
  )

  it('in any filter of a record list is not a server error', async () => {
    for (const path of recordLists)
      for (const name of [
        ...['participant_id', 'job_id', 'task_id', 'external_id'],
        ...['status', 'search', 'created_at'],
      ])
        for (const value of malformedIds)
          await expectNoServerError(`${path}?filter[${name}]=${encodeURIComponent(value)}`)
  })
})
