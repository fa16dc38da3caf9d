/** What the console says about a click: that it is in progress, that nothing was sent, or that nobody
 *  knows. */
import type { Page, Route } from 'playwright-core'
import { describe, expect, inject, it } from 'vitest'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { newWebhookAdmin } from './hooks.ts'
import { newSite } from './site.ts'
import { TOKEN_PATTERN, visitor } from './visitors.ts'

const NOTHING_SENT = 'No connection. Nothing was sent.'
const UNKNOWN = 'The change may have been made. There was no usable response.'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

const isPost = (route: Route): boolean => route.request().method() === 'POST'
const announcements = (page: Page): Promise<string[]> =>
  page.locator('#toast .toast > p').allTextContents()

/** The service makes the change of the next POST, and its response gets lost. */
async function loseResponse(page: Page): Promise<void> {
  await page.route('**/console/**', async (route) => {
    if (!isPost(route)) return route.fallback()
    await route.fetch({ maxRedirects: 0 })
    await route.abort()
    await page.unroute('**/console/**')
  })
}

async function keyNames(accountId: string): Promise<string[]> {
  return site.app.db.read('api_keys').where({ account_id: accountId }).pluck('name')
}

// The browser is the subject, not the database.
describe.runIf(inject('database') === 'sqlite')('the feedback of a click', () => {
  it('a slow request: shows a progress line and a busy button, and ignores another click', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/api-keys/new', { person: account })
    const { page } = visited
    const arrived = Promise.withResolvers<Route>()
    await page.route('**/console/api-keys', (route) =>
      isPost(route) ? arrived.resolve(route) : route.fallback(),
    )
    await page.getByLabel('Name').fill('Slow')
    await page.getByRole('button', { name: 'Create API key' }).click()
    const request = await arrived.promise
    const line = 'getComputedStyle(document.documentElement, "::before").visibility'
    await expect.poll(() => page.evaluate(line)).toBe('visible')
    expect(
      await page.getByRole('button', { name: 'Create API key' }).getAttribute('aria-busy'),
    ).toBe('true')
    await page.getByRole('button', { name: 'Create API key' }).click()
    await request.continue()
    await page.getByText(TOKEN_PATTERN).first().waitFor()
    expect((await keyNames(account.accountId)).filter((name) => name === 'Slow')).toHaveLength(1)
    expect(await page.locator('[aria-busy]').count()).toBe(0)
  })

  it('offline: says that nothing was sent, keeps the input, and sends it on a retry', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/api-keys/new', { person: account })
    const { page, context } = visited
    await page.getByLabel('Name').fill('Typed on a train')
    await context.setOffline(true)
    await page.getByLabel('Name').press('Enter')
    await page.getByText(NOTHING_SENT).waitFor()
    expect(await page.getByLabel('Name').inputValue()).toBe('Typed on a train')
    await context.setOffline(false)
    await page.getByRole('button', { name: 'Retry' }).press('Enter')
    await page.getByText(TOKEN_PATTERN).first().waitFor()
    expect(await announcements(page)).toEqual([])
  })

  it('a lost response: says that the change may have been made, and a retry makes it once', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/records/tasks/new', { person: account })
    const { page } = visited
    await page.getByLabel('Title').fill('Only one')
    await loseResponse(page)
    await page.getByRole('button', { name: 'Create task' }).click()
    await page.getByText(UNKNOWN).waitFor()
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('The task was already created.').waitFor()
    const tasks = site.app.db.read('tasks').where({ account_id: account.accountId })
    expect(await tasks.pluck('title')).toEqual(['Only one'])
  })

  it('a lost response of a test event: replaces the earlier success, and a retry sends no second one', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(site.app)
    const id = await admin.subscribe(receiver.url)
    await using visited = await site.visit(`/webhooks/${id}`, { person: admin.manager })
    const { page } = visited
    const send = page.getByRole('button', { name: 'Send test event' })
    await send.click()
    await page.getByText('Test event sent.').waitFor()
    await page.reload()
    await loseResponse(page)
    await send.click()
    await page.getByText(UNKNOWN).waitFor()
    expect(await announcements(page)).toEqual([UNKNOWN])
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('Test event sent.').waitFor()
    await page.getByRole('button', { name: 'Close the message' }).click()
    expect(await announcements(page)).toEqual([])
    expect(await admin.scope.rows('deliveries').where({ webhook_id: id })).toHaveLength(2)
  })

  it('a refused form: says that it is not saved, and keeps the input', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/api-keys/new', { person: account })
    const { page } = visited
    const other = await visitor(site.app, account)
    const forms = Array.from({ length: 121 }, () => other.post('/webhooks/check-url', { url: '' }))
    expect((await Promise.all(forms)).map(({ status }) => status)).toContain(429)
    await page.getByLabel('Name').fill('Too many')
    await page.getByRole('button', { name: 'Create API key' }).click()
    await page.getByText('Not saved. You sent too many forms').waitFor()
    expect(await page.getByLabel('Name').inputValue()).toBe('Too many')
    expect(await keyNames(account.accountId)).not.toContain('Too many')
  })

  it('a failed reload: says until when the page is up to date', async () => {
    const admin = await newWebhookAdmin(site.app)
    const id = await admin.subscribe('https://example.com/')
    await using visited = await site.visit(`/webhooks/${id}`, { person: admin.manager })
    const { page } = visited
    await page.route('**/console/webhooks/*', (route) => route.abort())
    await page
      .getByText(/^The server does not respond\. Last update: \d\d:\d\d:\d\d UTC\.$/)
      .waitFor()
    await page.unroute('**/console/webhooks/*')
    await page.locator('#stale:empty').waitFor({ state: 'attached' })
  })

  it('an invalid form: keeps the page, and moves the focus to the first field with an error', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/webhooks/new', { person: account })
    const { page } = visited
    await page.getByLabel('Description').fill('The shop')
    await page.getByLabel('Description').press('Enter')
    await page.getByText('Please fix the fields marked below.').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('field-url')
    expect(await page.getByLabel('Description').inputValue()).toBe('The shop')
  })
})
