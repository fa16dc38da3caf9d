/** What all pages of the console have in common: headers, sessions, the origin of forms, and
 *  errors. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, startApp, type TestAccount } from '../helpers.ts'
import { newAccountOwner, newConsoleUser, PASSWORD, type Visitor, visitor } from './visitors.ts'

const DAY_MS = 86_400_000

describe('the console', () => {
  let account: TestAccount
  let owner: Visitor
  let now = Date.now()
  const app = sharedApp({ now: () => new Date(now) })
  beforeAll(async () => {
    ;({ account, owner } = await newAccountOwner(app))
  })

  it('headers forbid inline scripts and styles, frames and caching', async () => {
    const { headers, text } = await owner.get('')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(text).not.toMatch(/<script(?![^>]*src=)|<style| style=| on[a-z]+=/)
  })

  describe('a guest', () => {
    it('is redirected to the sign-in page, and after the sign-in to the requested page', async () => {
      const guest = await visitor(app)
      const { accountId } = account
      const { email } = await newConsoleUser(app, accountId)
      expect(await guest.get('/webhooks?state=failed')).toMatchObject({
        status: 303,
        to: `/sign-in?next=${encodeURIComponent('/console/webhooks?state=failed')}`,
      })
      const next = '/console/webhooks?state=failed'
      expect(await guest.post('/sign-in', { email, password: PASSWORD, next })).toMatchObject({
        status: 303,
        to: '/webhooks?state=failed',
      })
    })

    it.each([
      'https://example.com/',
      '//example.com',
      '/console/../x',
      '/\\example.com',
      '/console//example.com',
    ])('is not redirected to %s after the sign-in', async (next) => {
      const { email } = await newConsoleUser(app, account.accountId)
      const { headers } = await (await visitor(app)).post('/sign-in', {
        email,
        password: PASSWORD,
        next,
      })
      const location = new URL(headers.get('location') ?? '', app.url)
      expect(location.origin).toBe(app.url)
      expect(location.pathname).toMatch(/^\/console/)
    })

    it('gets HX-Redirect to the sign-in page for a request of htmx', async () => {
      const answer = await (await visitor(app)).get('/webhooks', { 'HX-Request': 'true' })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('hx-redirect')).toBe('/console/sign-in')
    })
  })

  describe('a session', () => {
    it('has a cookie that scripts and other sites cannot use', async () => {
      const { email } = await newConsoleUser(app, account.accountId)
      const { headers } = await (await visitor(app)).post('/sign-in', { email, password: PASSWORD })
      expect(headers.getSetCookie()[0]).toMatch(
        /^muster-session=[\w-]{43}; path=\/; expires=[^;]*; samesite=lax; httponly$/i,
      )
    })

    it('behind TLS: its cookie is secure and bound to this host', async () => {
      await using secure = await startApp({
        environment: { BASE_URL: 'https://muster.example.com' },
      })
      const { accountId } = await secure.newAccount()
      const { email } = await newConsoleUser(secure, accountId)
      const { headers } = await (await visitor(secure)).post('/sign-in', {
        email,
        password: PASSWORD,
      })
      const [session, device] = headers.getSetCookie()
      expect(session).toMatch(
        /^__Host-muster-session=[\w-]{43}; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/i,
      )
      expect(device).toMatch(
        /^muster-device=[\w-]{43}; path=\/console; expires=[^;]*; samesite=lax; secure; httponly$/i,
      )
      const chosen = await (await visitor(secure)).post('/theme', { theme: 'dark' })
      expect(chosen.headers.getSetCookie()[0]).toMatch(/^muster-theme=dark;.*; secure; httponly$/i)
    })

    it('is stored as a hash', async () => {
      const token = owner.cookie.split('=')[1] ?? ''
      const rows = await app.db.read('sessions').select('*')
      expect(rows.length).toBeGreaterThan(0)
      expect(JSON.stringify(rows)).not.toContain(token)
    })

    it('ends with signing out', async () => {
      const user = await visitor(app, account)
      expect((await user.get('')).status).toBe(200)
      expect(await user.post('/sign-out')).toMatchObject({
        status: 303,
        to: '/sign-in?signed-out',
      })
      expect((await user.get('')).to).toBe('/sign-in')
    })

    it('ends when its user is deactivated', async () => {
      const person = await newConsoleUser(app, account.accountId)
      const user = await visitor(app, person)
      expect((await user.get('')).status).toBe(200)
      await app.db.write('users').where({ id: person.userId }).update({ status: 'deactivated' })
      expect((await user.get('')).status).toBe(303)
    })

    it.each([
      { days: 13, status: 200 },
      { days: 15, status: 303 },
    ])('unused for $days days: $status', async ({ days, status }) => {
      const user = await visitor(app, account)
      const before = now
      now += days * DAY_MS
      try {
        expect((await user.get('')).status).toBe(status)
      } finally {
        now = before
      }
    })

    it('ends after 30 days, even if it is used', async () => {
      const user = await visitor(app, account)
      const before = now
      try {
        for (const days of [10, 20, 29]) {
          now = before + days * DAY_MS
          expect((await user.get('')).status).toBe(200)
        }
        now = before + 30 * DAY_MS + 60_000
        expect((await user.get('')).status).toBe(303)
      } finally {
        now = before
      }
    })
  })

  describe('a form', () => {
    it.each<{ name: string; headers: Record<string, string>; status: number }>([
      { name: 'the page itself', headers: { 'Sec-Fetch-Site': 'same-origin' }, status: 303 },
      { name: 'no browser', headers: {}, status: 303 },
      { name: 'another site', headers: { 'Sec-Fetch-Site': 'cross-site' }, status: 403 },
      {
        name: 'another port of this host',
        headers: { 'Sec-Fetch-Site': 'same-site' },
        status: 403,
      },
      {
        name: 'an old browser on another site',
        headers: { Origin: 'https://example.com' },
        status: 403,
      },
      { name: 'an old browser in a sandbox', headers: { Origin: 'null' }, status: 403 },
    ])('from $name: $status', async ({ headers, status }) => {
      expect((await owner.post('/theme', { theme: 'dark' }, headers)).status).toBe(status)
    })

    it.each([
      { origin: 'https://muster.example.com', status: 303 },
      { origin: 'http://muster.example.com', status: 403 },
      { origin: 'https://muster.example.com.evil.example', status: 403 },
    ])('behind TLS, from an old browser at $origin: $status', async ({ origin, status }) => {
      await using secure = await startApp({
        environment: { BASE_URL: 'https://muster.example.com' },
      })
      const guest = await visitor(secure)
      expect((await guest.post('/theme', { theme: 'dark' }, { Origin: origin })).status).toBe(
        status,
      )
    })

    it('from another site: 403, and nothing changes', async () => {
      const user = await visitor(app, account)
      expect((await user.post('/sign-out', {}, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(
        403,
      )
      expect((await user.get('')).status).toBe(200)
    })

    it('larger than 1 MiB, of another type, or with a NUL character: refused', async () => {
      expect((await owner.post('/theme', { theme: 'x'.repeat(1024 * 1024) })).status).toBe(413)
      expect(
        (await owner.post('/theme', { theme: 'dark' }, { 'Content-Type': 'text/plain' })).status,
      ).toBe(415)
      expect((await owner.post('/theme', { theme: 'a\0b' })).status).toBe(400)
    })
  })

  describe('an unknown URL', () => {
    it.each([
      '/nothing',
      '/webhooks/not-an-id',
      '/webhooks/0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11',
      '/assets/x/console.css',
      '/%',
    ])('%s: 404 or 400 as a page of the console', async (path) => {
      const { status, text, headers } = await owner.get(path)
      expect([400, 404]).toContain(status)
      expect(headers.get('content-type')).toMatch(/^text\/html/)
      expect(text).not.toMatch(/ at .*\.ts:\d+/)
    })
  })

  it('an automatic reload of a page: keeps the notice for the next page', async () => {
    const { owner } = await newAccountOwner(app)
    expect((await owner.post('/settings', { name: 'Renamed' })).status).toBe(303)
    expect((await owner.get('', { 'HX-Request': 'true', 'Muster-Poll': '1' })).text).not.toContain(
      'Account renamed to Renamed',
    )
    expect((await owner.get('/settings')).text).toContain('Account renamed to Renamed')
    expect((await owner.get('/settings')).text).not.toContain('Account renamed to Renamed')
  })

  it('more than 120 forms of a user within a minute: 429', async () => {
    const { owner: user } = await newAccountOwner(app)
    const statuses = await Promise.all(
      Array.from({ length: 125 }, async () => (await user.post('/me', { full_name: '' })).status),
    )
    expect(statuses.toSorted()).toEqual([...Array(120).fill(422), ...Array(5).fill(429)])
    const refused = await user.post('/me', { full_name: 'Ann' })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.text).toContain('Wait a minute, go back, and send it again.')
    expect((await user.get('/me')).status).toBe(200)
  })

  it('an internal error: the page shows only the request ID', async () => {
    await using broken = await startApp()
    const user = await visitor(broken, await broken.newAccount())
    await broken.db.write.schema.renameTable('audit_log', 'audit_log_gone')
    const { status, text, headers } = await user.get('/audit-log')
    // test/statements.ts has the database plan the statements afterwards.
    await broken.db.write.schema.renameTable('audit_log_gone', 'audit_log')
    expect(status).toBe(500)
    expect(text).toContain(headers.get('x-request-id'))
    expect(text).not.toContain('audit_log_gone')
    expect(text).not.toMatch(/select\s|no such table|relation/i)
  })
})
