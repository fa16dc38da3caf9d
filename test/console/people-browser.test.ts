/** The pages of people and the audit log in a browser. */
import { describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { newSite, SCREENS } from './site.ts'
import { linkIn, listActions, NO_ACCESS, newConsoleUser, PASSWORD, visitor } from './visitors.ts'

describe('people in a browser', () => {
  const site = newSite()

  it('invite, join, change access, deactivate: the other browser shows each change at once', async () => {
    const account = await site.app.newAccount()
    await using own = await site.visit('/people', { person: account })
    const { page } = own
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

    await using theirs = await site.visit(path)
    await theirs.page.getByLabel('Choose a password').fill(PASSWORD)
    await theirs.page.getByRole('button', { name: 'Join' }).click()
    await theirs.page.getByText('Welcome to Test account.').waitFor()
    await theirs.page.getByRole('link', { name: 'API keys' }).click()
    await theirs.page
      .getByText('You can view API keys but not change them. To get access, ask Test Owner')
      .waitFor()
    expect(await theirs.page.getByRole('link', { name: 'Create a key' }).count()).toBe(0)

    await page.goto(`${site.app.url}/console/people`)
    await page.getByRole('link', { name: 'Jonas Weber' }).click()
    await page.getByRole('group', { name: 'Can manage' }).getByLabel('API keys').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated.').waitFor()
    await theirs.page.reload()
    await theirs.page.getByRole('link', { name: 'Create a key' }).waitFor()

    await page.getByLabel('Member').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Access of Jonas Weber updated').waitFor()
    await theirs.page.goto(`${site.app.url}/console/me`)
    expect(await theirs.page.getByRole('link', { name: 'API keys' }).count()).toBe(0)

    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('Jonas Weber is deactivated and signed out.').waitFor()
    await theirs.page.reload()
    await theirs.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect([...own.troubles, ...theirs.troubles]).toEqual([])
    expect(await listActions(site.app, account.accountId)).toEqual([
      'user.invited',
      'user.joined',
      'session.started',
      'user.access_changed',
      'user.access_changed',
      'user.deactivated',
    ])
  })

  it('filters of the audit log: work in place and stay in the URL', async () => {
    const account = await site.app.newAccount()
    const owner = await visitor(site.app, account)
    await owner.post('/settings', { name: 'Northwind' })
    await owner.post('/api-keys', { name: 'CI', access_level: 'read_only' })
    await using own = await site.visit('/audit-log', { person: account })
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
    'every page: readable on wide light and on narrow dark screens',
    async () => {
      const account = await site.app.newAccount()
      const person = await newConsoleUser(site.app, account.accountId, { fullName: 'Jonas Weber' })
      const owner = await visitor(site.app, account)
      const invited = await owner.post('/people/invite', {
        full_name: 'Aiko',
        email: 'aiko@northwind.example',
        role: 'member',
        ...NO_ACCESS,
      })
      await owner.post(`/people/${person.userId}`, { role: 'member', ...NO_ACCESS })
      for (const screen of SCREENS) {
        await using own = await site.visit('/people', { ...screen, person: account })
        for (const path of [
          '/people',
          '/people/invite',
          `/people/${person.userId}`,
          `/people/${account.userId}`,
          '/audit-log',
        ]) {
          await own.page.goto(`${site.app.url}/console${path}`)
          await assertReadable(own.page, path)
        }
        expect(own.troubles).toEqual([])
        await using theirs = await site.visit(linkIn(invited), screen)
        await assertReadable(theirs.page, 'the page of an invitation')
        await theirs.page.goto(`${site.app.url}/console/invitation/x`)
        await assertReadable(theirs.page, 'the page of an unusable link')
      }
    },
  )
})
