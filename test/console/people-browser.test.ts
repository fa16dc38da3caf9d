/** The pages of people and the audit log in a browser. */
import { describe, expect, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { until } from '../helpers.ts'
import { newSite, openFilters, SCREENS } from './site.ts'
import { listActions, newConsoleUser, PASSWORD, visitor } from './visitors.ts'

describe('people in a browser', () => {
  const site = newSite()

  it.each(['/people', '/api-keys', '/audit-log', '/events', '/requests'])(
    'a row of %s has few lines on a phone',
    async (path) => {
      const account = await site.app.newAccount()
      const client = site.app.as(account)
      const { body } = await client.post('/participants', { full_name: 'Ada Lovelace' })
      await client.patch(`/participants/${body.id}`, { full_name: 'Ada King' })
      const isLogged = async (): Promise<boolean> =>
        (await site.app.db.read('request_log').where({ account_id: account.accountId })).length > 1
      await until('the requests are logged', isLogged)
      const viewport = { width: 390, height: 844 }
      await using visited = await site.visit(path, { person: account, viewport })
      const rows = visited.page.locator('main tbody tr')
      await assertReadable(visited.page, path)
      const boxes = await Promise.all((await rows.all()).map((row) => row.boundingBox()))
      expect(boxes.length).toBeGreaterThan(0)
      for (const box of boxes) expect(box?.height).toBeLessThan(150)
    },
  )

  it('invite, join, change access, deactivate: the other browser shows each change at once', async () => {
    const account = await site.app.newAccount()
    await using ownerVisit = await site.visit('/people', { person: account })
    const { page } = ownerVisit
    await page.getByRole('link', { name: 'Invite a teammate' }).first().click()
    await page.getByLabel('Name').fill('Jonas Weber')
    await page.getByLabel('Email').fill('jonas@northwind.example')
    expect(await page.getByRole('group', { name: 'Can manage' }).isVisible()).toBe(false)
    await page.getByLabel('Admin').check()
    await page.getByRole('group', { name: 'Can manage' }).getByLabel('Webhooks').check()
    await page.getByRole('radiogroup', { name: 'Tasks' }).getByLabel('Edit').check()
    await page.getByRole('button', { name: 'Create invite link' }).click()
    const shown = await page.getByRole('group', { name: 'link' }).innerText()
    const path = new URL(shown).pathname.replace('/console', '')
    await assertReadable(page, 'the link')

    await using userVisit = await site.visit(path)
    await userVisit.page.getByLabel('Choose a password').fill(PASSWORD)
    await userVisit.page.getByRole('button', { name: 'Join' }).click()
    await userVisit.page.getByText('Welcome to Test account.').waitFor()
    await userVisit.page.getByRole('link', { name: 'API keys' }).click()
    await userVisit.page
      .getByText('You can view API keys but not change them. To get access, ask Test Owner')
      .waitFor()
    expect(await userVisit.page.getByRole('link', { name: 'Create API key' }).count()).toBe(0)

    await page.goto(`${site.app.url}/console/people`)
    await page.getByRole('link', { name: 'Jonas Weber' }).click()
    await page.getByRole('group', { name: 'Can manage' }).getByLabel('API keys').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated.').waitFor()
    await userVisit.page.reload()
    await userVisit.page.getByRole('link', { name: 'Create API key' }).waitFor()

    await page.getByLabel('Member').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated').waitFor()
    await userVisit.page.goto(`${site.app.url}/console/me`)
    expect(await userVisit.page.getByRole('link', { name: 'API keys' }).count()).toBe(0)

    await page.getByRole('link', { name: 'Deactivate' }).click()
    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('Jonas Weber is deactivated and signed out.').waitFor()
    await userVisit.page.reload()
    await userVisit.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect([...ownerVisit.troubles, ...userVisit.troubles]).toEqual([])
    expect(await listActions(site.app, account.accountId)).toEqual([
      ...['user.invited', 'user.joined', 'session.started'],
      ...['user.access_changed', 'user.access_changed', 'user.deactivated'],
    ])
  })

  it.each(SCREENS)(
    'filters of the audit log: work in place and stay in the URL',
    async (screen) => {
      const account = await site.app.newAccount()
      const owner = await visitor(site.app, account)
      await owner.post('/settings', { name: 'Northwind' })
      await owner.post('/api-keys', { name: 'CI', access_level: 'read_only' })
      await using ownerVisit = await site.visit('/audit-log', { ...screen, person: account })
      const { page } = ownerVisit
      await openFilters(page)
      await page.getByLabel('About').focus()
      await page.getByLabel('About').selectOption('API keys')
      await page.waitForURL(/kind=api_key/)
      await page.getByRole('link', { name: 'Clear filters' }).waitFor()
      expect(await page.locator('tbody tr').count()).toBe(1)
      // The next filter is one key away.
      expect(await page.locator(':focus').getAttribute('name')).toBe('kind')
      await page.reload()
      expect(await page.getByLabel('About').inputValue()).toBe('api_key')
      expect(await page.locator('tbody tr').count()).toBe(1)
      expect(ownerVisit.troubles).toEqual([])
    },
  )

  it('hand a key over and deactivate its user, by keyboard on a narrow screen', async () => {
    const account = await site.app.newAccount()
    const person = await newConsoleUser(site.app, account.accountId, { fullName: 'Ines Duarte' })
    await newConsoleUser(site.app, account.accountId, { fullName: 'Omar Haddad' })
    const client = site.app.as({ key: await site.app.newKey(person) })
    const path = `/people/${person.userId}/deactivate`
    await using visited = await site.visit(path, { ...SCREENS[1], person: account })
    const { page } = visited
    const newOwner = page.getByLabel('Hand over to')
    expect(await newOwner.isVisible()).toBe(false)
    await page.getByLabel('Test key').focus()
    await page.keyboard.type('Hand')
    await newOwner.waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.type('Omar')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Ines Duarte is deactivated and signed out. 1 key').waitFor()
    expect((await client.get('/me')).body.user.full_name).toBe('Omar Haddad')
    expect(visited.troubles).toEqual([])
  })
})
