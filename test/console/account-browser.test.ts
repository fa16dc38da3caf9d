/** The account pages in a browser. */
import { describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { newSite, SCREENS } from './site.ts'
import { newAccountWithPassword, newConsoleUser, PASSWORD } from './visitors.ts'

const NEW_PASSWORD = 'a different horse entirely'

describe('account pages in a browser', () => {
  const site = newSite()

  it('change the password: signs out the other browser', async () => {
    const { accountId } = await site.app.newAccount()
    const person = await newConsoleUser(site.app, accountId)
    await using here = await site.visit('/me', { person })
    await using there = await site.visit('/me', { person })
    await here.page.getByRole('link', { name: 'Change password' }).click()
    await here.page.getByLabel('Current password').fill(PASSWORD)
    const newPassword = here.page.getByLabel('New password')
    await newPassword.fill(NEW_PASSWORD)
    await here.page.getByRole('button', { name: 'Show the password' }).last().click()
    expect(await newPassword.getAttribute('type')).toBe('text')
    await here.page.getByRole('button', { name: 'Change password' }).click()
    await here.page.getByText('Password updated. 1 other session was signed out.').waitFor()
    await there.page.reload()
    await there.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect([...here.troubles, ...there.troubles]).toEqual([])
  })

  it('transfer the ownership: the next page of both users shows their new access', async () => {
    const owner = await newAccountWithPassword(site.app)
    const newOwner = await newConsoleUser(site.app, owner.accountId, {
      fullName: 'Jonas Weber',
      role: 'member',
    })
    await using old = await site.visit('/settings', { person: owner })
    await using next = await site.visit('/me', { person: newOwner })
    expect(await next.page.getByRole('link', { name: 'People' }).count()).toBe(0)
    await old.page.getByLabel('New Owner').selectOption(newOwner.userId)
    await old.page.getByLabel('Your password').fill(PASSWORD)
    await old.page.getByRole('button', { name: 'Transfer ownership' }).click()
    await old.page.getByText('Jonas Weber is now the Account Owner').waitFor()
    expect(await old.page.getByRole('link', { name: 'People' }).count()).toBe(0)
    await next.page.reload()
    await next.page.getByRole('link', { name: 'People' }).click()
    await next.page.getByRole('heading', { name: 'People' }).waitFor()
    expect([...old.troubles, ...next.troubles]).toEqual([])
  })

  it('detect the time zone, and switch to UTC and back', async () => {
    const person = await site.app.newAccount()
    await using visited = await site.visit('/me', { person, timezoneId: 'Asia/Tokyo' })
    const { page, troubles } = visited
    await page.goto(`${site.app.url}/console/requests`)
    await page.getByText('Times are in Asia/Tokyo.').waitFor()
    const toUtc = page.getByRole('button', { name: 'Times: Asia/Tokyo. Change to UTC.' })
    await toUtc.press('Enter')
    await page.getByText('Times are in UTC.').waitFor()
    await page.getByRole('button', { name: 'Times: UTC. Change to Asia/Tokyo.' }).press('Enter')
    await page.getByText('Times are in Asia/Tokyo.').waitFor()
    expect(troubles).toEqual([])
  })

  it('on a low screen: the foot of the menu does not cover the link that has the focus', async () => {
    const person = await site.app.newAccount()
    const viewport = { width: 1280, height: 600 }
    await using visited = await site.visit('/me', { person, viewport, timezoneId: 'Asia/Tokyo' })
    const foot = visited.page.locator('.side .me')
    for (const link of await visited.page.locator('.side li a, .side .zone button').all()) {
      await link.focus()
      const { y = 0, height = 0 } = (await link.boundingBox()) ?? {}
      expect(y + height).toBeLessThan(((await foot.boundingBox())?.y ?? 0) + 1)
    }
  })

  // The pages are the same on both databases.
  it.runIf(inject('database') === 'sqlite')(
    'guests: forms with errors and an unusable link are readable',
    async () => {
      for (const screen of SCREENS) {
        for (const path of ['/sign-in', '/sign-up']) {
          await using visited = await site.visit(path, screen)
          await visited.page.getByRole('button').last().click()
          await visited.page.getByText('Please fix the fields marked below.').waitFor()
          await assertReadable(visited.page, `${path}, with errors`)
        }
        await using visited = await site.visit('/invitation/x', screen)
        await assertReadable(visited.page, 'the page of an unusable link')
      }
    },
  )
})
