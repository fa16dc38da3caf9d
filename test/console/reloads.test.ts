/** The reloads of open pages: their content, and what they share. */
import { describe, expect, it } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { logRequests, NOW } from './logged-requests.ts'
import { newAccountOwner, newConsoleUser, visitor } from './visitors.ts'

const POLL = { 'HX-Request': 'true', 'Muster-Poll': '1' }

describe('the reload of an open page', () => {
  const app = sharedApp({ now: () => new Date(NOW) })

  it('has the elements that it replaces, and no frame', async () => {
    const { owner } = await newAccountOwner(app)
    for (const [path, id] of [
      ['', 'last-day'],
      ['/requests', 'traffic'],
    ] as const) {
      const { text } = await owner.get(path, POLL)
      expect(text).toContain(`id="${id}"`)
      expect(text).toContain('id="troubled-webhooks"')
      expect(text).not.toMatch(/<html|<nav class="side"|<form/)
    }
  })

  it('shows what a user has changed just before', async () => {
    const { owner } = await newAccountOwner(app)
    expect((await owner.get('', POLL)).text).toContain('in the last 24 hours')
    await owner.post('/settings', { name: 'Renamed' })
    expect((await owner.get('', POLL)).text).toContain('Renamed in the last 24 hours')
  })

  it('is not shared with users who have other permissions', async () => {
    const { account, owner } = await newAccountOwner(app)
    const path = '/public/v1/payments?filter[search]=secret'
    await logRequests(app, account, [{ at: NOW, operationId: 'listPayments', path }])
    const admin = await visitor(app, await newConsoleUser(app, account.accountId))
    expect((await owner.get('/requests', POLL)).text).toContain('secret')
    expect((await admin.get('/requests', POLL)).text).not.toContain('secret')
  })

  it('of a user who has signed out: opens the sign-in page', async () => {
    const { owner } = await newAccountOwner(app)
    expect((await owner.get('/requests', POLL)).status).toBe(200)
    await owner.post('/sign-out')
    const { status, headers } = await owner.get('/requests', POLL)
    expect([status, headers.get('hx-redirect')]).toEqual([204, '/console/sign-in'])
  })
})
