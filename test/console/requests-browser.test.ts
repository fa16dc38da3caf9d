/** The list of API requests in a browser. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { type TestAccount, until } from '../helpers.ts'
import { newSite, SCREENS } from './site.ts'
import { visitor } from './visitors.ts'

const run = promisify(execFile)

describe('API requests in a browser', () => {
  const site = newSite()
  let account: TestAccount
  beforeAll(async () => {
    account = await site.app.newAccount()
    await site.app.as(account).post('/tasks', { title: 'Call the library' })
    await site.app.as(account).post('/tasks', { title: '' })
    await site.app.as(account).get('/participants?page[size]=2')
    await until(
      'all requests are logged',
      async () =>
        (await site.app.db.read('request_log').where({ account_id: account.accountId })).length ===
        3,
    )
  })

  it('filters, opens a row, and copies a curl command that repeats the request', async () => {
    await using visited = await site.visit('/requests', {
      person: account,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page, troubles } = visited
    await page.getByLabel('Text or record ID').fill('PARTICIPANTS')
    await page.getByLabel('Method').selectOption('GET')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/requests\?text=PARTICIPANTS&method=GET$/)
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    await page.getByRole('button', { name: 'Copy the curl command' }).click()
    const command = await page.evaluate('navigator.clipboard.readText()')
    const { stdout } = await run(
      'sh',
      ['-c', String(command).replaceAll(site.app.config.baseUrl, site.app.url)],
      {
        env: { PATH: process.env.PATH, MUSTER_API_KEY: account.key },
      },
    )
    const { data, meta } = (await site.app.as(account).get('/participants?page[size]=2')).body
    // It depends on the time of the request.
    const complete_until = expect.any(String)
    expect(JSON.parse(stdout)).toEqual({ data, meta: { ...meta, complete_until } })
    // Close the row.
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor({ state: 'detached' })
    expect(troubles).toEqual([])
  })

  it('shows new requests by itself, but not while a row is open', async () => {
    await using visited = await site.visit('/requests?method=DELETE', { person: account })
    const { page, troubles } = visited
    await page.getByText('No requests match').waitFor()
    const { body } = await site.app.as(account).post('/tasks', { title: 'Gone soon' })
    await site.app.as(account).delete(`/tasks/${body.id}`)
    await page.locator('.requests .toggle').waitFor()
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    // Without an open row, the page reloads every 5 seconds.
    await page.waitForTimeout(6_000)
    expect(requested).toEqual([])
    expect(await page.getByRole('heading', { name: 'Response body' }).count()).toBe(1)
    await page.locator('.requests .toggle').click()
    await until(
      'the page reloads again',
      () => requested.filter((url) => url.endsWith('/requests?method=DELETE')).length >= 1,
    )
    expect(troubles).toEqual([])
  })

  it.each([
    { path: '/requests', isReloading: true },
    { path: '/requests?until=2030-01-01T00:00', isReloading: false },
    {
      path: '/requests?before=9999999999999_01934567-89ab-7def-8123-456789abcdef',
      isReloading: false,
    },
  ])('$path reloads by itself: $isReloading', async ({ path, isReloading }) => {
    const owner = await visitor(site.app, account)
    expect((await owner.get(path)).text.includes('hx-trigger="every')).toBe(isReloading)
  })

  it('shows a tooltip at a bar of the chart, which leads to its requests', async () => {
    await using visited = await site.visit('/requests?range=1h', { person: account })
    const { page } = visited
    await page.locator('.hit').last().hover()
    expect(await page.locator('.tip').textContent()).toMatch(
      /^\d+ \w+ \d\d:\d\d\nSuccess \d+\nClient error \d+\nServer error 0$/,
    )
    await page.locator('h1').hover()
    await page.locator('.tip').waitFor({ state: 'hidden' })
    await page.locator('.hit').last().click()
    await page.waitForURL(/requests\?from=[^&]+Z&until=[^&]+Z$/)
  })

  it('works without JavaScript', async () => {
    await using visited = await site.visit('/requests', {
      person: account,
      javaScriptEnabled: false,
    })
    const { page } = visited
    await page.getByLabel('Status').selectOption('4xx')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/requests\?status=4xx$/)
    // A button of the period sends the filters, too. The Enter key keeps the period.
    await page.getByLabel('Method').selectOption('POST')
    await page.getByRole('button', { name: '1 h', exact: true }).press('Enter')
    await page.waitForURL(/requests\?status=4xx&method=POST&range=1h$/)
    await page.getByLabel('Text or record ID').press('Enter')
    await page.waitForURL(/requests\?status=4xx&method=POST&range=1h$/)
    await page.getByRole('button', { name: '24 h' }).click()
    await page.waitForURL(/requests\?status=4xx&method=POST$/)
    await page.getByText('Show as table').click()
    await page.getByRole('region', { name: 'Requests per 15 minutes' }).waitFor()
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { level: 1, name: 'POST /public/v1/tasks' }).waitFor()
    await page.getByText('"title"').first().waitFor()
    await page.getByRole('link', { name: 'API requests' }).last().click()
    await page.getByRole('heading', { level: 1, name: 'API requests' }).waitFor()
  })

  it.each(SCREENS)('is readable at $viewport.width pixels, $colorScheme', async (screen) => {
    const { id } = await site.app.db
      .read('request_log')
      .where({ account_id: account.accountId, method: 'POST' })
      .first('id')
    await using visited = await site.visit('/requests', {
      person: account,
      ...screen,
    })
    const { page, troubles } = visited
    await page.locator('.requests .toggle').first().click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    await page.getByText('Show as table').click()
    await assertReadable(page, 'the dashboard with an open row and the table of its chart')
    for (const path of [`/requests/${id}`, '/requests?path=nothing', '/requests?duration=x']) {
      await page.goto(`${site.app.url}/console${path}`)
      await assertReadable(page, path)
    }
    // The query `duration=x` gets 422.
    expect(troubles.filter((trouble) => !trouble.includes('422'))).toEqual([])
  })
})
