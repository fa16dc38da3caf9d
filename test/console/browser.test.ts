/** What all pages of the console have in common, in a browser. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertReadable, openBrowser } from '../browser.ts'
import { startApp, type TestApp } from '../helpers.ts'
import { newConsoleUser, PASSWORD, visit } from './visitors.ts'

describe('the console in a browser', () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    app = await startApp()
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.[Symbol.asyncDispose]()
  })

  it('signs in and out', async () => {
    const { accountId } = await app.newAccount()
    const { email } = await newConsoleUser(app, accountId, { fullName: 'Ada Lovelace' })
    await using visited = await visit(app, browser, '/sign-in')
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
    const account = await app.newAccount()
    await using visited = await visit(app, browser, '/api-keys/new', { person: account })
    const { page, troubles } = visited
    await page.getByLabel('Name').fill('Made once')
    await page.getByRole('button', { name: 'Create key' }).dblclick()
    await page
      .getByText(/mst_\w{43}_\w{6}/)
      .first()
      .waitFor()
    expect(
      await app.db
        .read('api_keys')
        .where({ account_id: account.accountId, name: 'Made once' })
        .pluck('id'),
    ).toHaveLength(1)
    expect(troubles).toEqual([])
  })
})
