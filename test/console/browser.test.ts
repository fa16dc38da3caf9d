/** What all pages of the console have in common, in a browser. */
import { describe, expect, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { newSite } from './site.ts'
import { newConsoleUser, PASSWORD, TOKEN_PATTERN } from './visitors.ts'

describe('the console in a browser', () => {
  const site = newSite()

  it('signs in and out', async () => {
    const { accountId } = await site.app.newAccount()
    const { email } = await newConsoleUser(site.app, accountId, { fullName: 'Ada Lovelace' })
    await using visited = await site.visit('/sign-in')
    const { page, troubles } = visited
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await assertReadable(page, 'the overview')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await assertReadable(page, 'signing in')
    expect(troubles).toEqual([])
  })

  it('a double click: sends the form once and shows the created key', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/api-keys/new', { person: account })
    const { page, troubles } = visited
    await page.getByLabel('Name').fill('Created once')
    await page.getByRole('button', { name: 'Create API key' }).dblclick()
    await page.getByText(TOKEN_PATTERN).first().waitFor()
    expect(
      await site.app.db
        .read('api_keys')
        .where({ account_id: account.accountId, name: 'Created once' })
        .pluck('id'),
    ).toHaveLength(1)
    expect(troubles).toEqual([])
  })
})
