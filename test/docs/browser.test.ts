/** The documentation in a browser: two widths, light and dark theme, mouse and keyboard. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertReadable, loadAxe } from '../browser.ts'
import { newMuster } from '../cli/muster.ts'
import { startApp, type TestApp, until } from '../helpers.ts'
import { sharedBrowser } from '../shared-browser.ts'

const TIMEOUT_MS = 120_000
/** One page of each kind, and the pages with the widest content. */
const PAGES = [
  ...['', 'guides/lists', 'guides/webhooks', 'guides/errors'],
  ...['api', 'resources/jobs', 'operations/listParticipants', 'operations/createJob'],
  ...['events/job_application.created', 'schemas'],
]

interface Visit extends AsyncDisposable {
  page: Page
  /** Errors in the browser, and requests to other hosts. */
  problems: string[]
}

describe('the documentation in a browser', { timeout: TIMEOUT_MS }, () => {
  let app: TestApp
  const browser = sharedBrowser()

  beforeAll(async () => {
    app = await startApp()
  }, TIMEOUT_MS)
  afterAll(() => app?.[Symbol.asyncDispose]())

  async function visit(
    path: string,
    options: BrowserContextOptions = {},
    site = `${app.url}/docs/`,
  ): Promise<Visit> {
    const context = await browser().newContext({
      viewport: { width: 1280, height: 860 },
      reducedMotion: 'reduce',
      ...options,
    })
    context.setDefaultTimeout(TIMEOUT_MS / 4)
    await loadAxe(context)
    const page = await context.newPage()
    const problems: string[] = []
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith(site.replace(/docs\/$/, '')))
        problems.push(`a request to ${request.url()}`)
    })
    await page.goto(site + path, { waitUntil: 'load' })
    return { page, problems, [Symbol.asyncDispose]: () => context.close() }
  }

  it.each([
    { width: 390, colorScheme: 'dark' },
    { width: 1280, colorScheme: 'light' },
  ] as const)(
    'pages are accessible at $width px in the $colorScheme theme',
    async ({ width, colorScheme }) => {
      await using opened = await visit('', { viewport: { width, height: 844 }, colorScheme })
      const { page, problems } = opened
      for (const path of PAGES) {
        await page.goto(`${app.url}/docs/${path}`, { waitUntil: 'load' })
        await assertReadable(page, path)
      }
      expect(problems).toEqual([])
    },
  )

  it('search finds operations, events, fields and guides, and opens the first result with Enter', async () => {
    // The fragment is no valid percent-encoding.
    await using opened = await visit('guides/lists#100%')
    const { page, problems } = opened
    for (const [query, path] of [
      ['create participant', '/docs/operations/createParticipant'],
      ['application.status', '/docs/events/job_application.status_changed'],
      ['screening_questions', '/docs/operations/createJob'],
      ['constant time', '/docs/guides/webhooks'],
      ['429', '/docs/guides/errors'],
    ] as const) {
      await page.keyboard.press('/')
      await page.getByRole('combobox').fill(query)
      await page.getByRole('option').first().waitFor()
      await page
        .getByRole('option')
        .filter({ has: page.locator(`a[href*="${path.replace('/docs/', '')}"]`) })
        .first()
        .waitFor()
      expect(await page.getByRole('combobox').getAttribute('aria-activedescendant')).toBe(
        'result-0',
      )
      const first = await page.locator('#result-0 a').getAttribute('href')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('Enter')
      await page.waitForURL(new URL(first ?? '', page.url()).href)
      await page.goto(`${app.url}/docs/guides/lists`)
    }
    await page.keyboard.press('/')
    await page.getByRole('combobox').fill('xylophone')
    await page.getByText('No results for “xylophone”.').waitFor()
    await page.keyboard.press('Escape')
    expect(await page.locator('dialog').isVisible()).toBe(false)
    expect(problems).toEqual([])
  })

  it('keeps the selected language and theme on other pages', async () => {
    await using opened = await visit('operations/createTask', { colorScheme: 'light' })
    const { page, problems } = opened
    await page.getByRole('tab', { name: 'curl' }).focus()
    for (let count = 0; count < 3; count++) await page.keyboard.press('ArrowRight')
    expect(await page.getByRole('tab', { selected: true }).textContent()).toBe('Python')
    expect(await page.getByRole('tabpanel').count()).toBe(1)
    expect(await page.getByRole('tabpanel').textContent()).toContain('import json')

    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    await page.getByRole('button', { name: 'Dark theme' }).click()
    const dark = await background()
    expect(dark).not.toBe(light)

    await page.goto(`${app.url}/docs/guides/webhooks`)
    expect(await page.getByRole('tabpanel').textContent()).toContain('import hmac')
    expect(await background()).toBe(dark)
    expect(
      await page.getByRole('button', { name: 'Dark theme' }).getAttribute('aria-pressed'),
    ).toBe('true')

    // A page without the selected language shows its first one.
    await page.goto(`${app.url}/docs/operations/createTask`)
    await page.getByRole('tab', { name: 'curl' }).click()
    await page.goto(`${app.url}/docs/guides/webhooks`)
    expect(await page.getByRole('tab', { selected: true }).textContent()).toBe('TypeScript')
    expect(await page.getByRole('tabpanel').textContent()).toContain('node:crypto')
    expect(problems).toEqual([])
  })

  it('the Copy button copies a sample', async () => {
    await using opened = await visit('operations/listTasks', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page } = opened
    await page.getByRole('tabpanel').hover()
    await page.getByRole('tabpanel').getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain("curl -G '")
  })

  it('"Try it" sends real requests, and the key stays in the tab', async () => {
    const account = await app.newAccount()
    await using opened = await visit('operations/createParticipant')
    const { page, problems } = opened
    await page.getByRole('link', { name: 'Try it' }).click()
    await page.getByLabel('API key').fill(account.key)
    await page.getByLabel('Body').fill('{"full_name": "Ada <b>Lovelace</b>"}')
    await page.getByRole('button', { name: 'Send POST' }).click()
    await page.getByText(/^201 Created in \d+ ms$/).waitFor()
    const [record] = (await app.as(account).get('/participants')).body.data
    expect(record.full_name).toBe('Ada <b>Lovelace</b>')
    expect(await page.locator('[data-response]').textContent()).toContain(record.id)

    await page.goto(`${app.url}/docs/operations/getParticipant#try`)
    expect(await page.getByLabel('API key').inputValue()).toBe(account.key)
    await page.getByLabel('participant', { exact: true }).fill(record.id)
    await page.getByRole('button', { name: 'Send GET' }).click()
    await page.getByText(/^200 OK in/).waitFor()
    await page.goto(`${app.url}/docs/operations/listParticipants#try`)
    await page.getByLabel('page[size]').fill('0')
    await page.getByRole('button', { name: 'Send GET' }).click()
    await page.getByText(/^422 .* in \d+ ms$/).waitFor()
    expect(problems.filter((problem) => !problem.includes('status of 422'))).toEqual([])

    const stored = (await page.evaluate(
      'JSON.stringify([localStorage, document.cookie, location.href])',
    )) as string
    expect(stored).not.toContain(account.key)
    const other = await page.context().newPage()
    await other.goto(`${app.url}/docs/operations/getParticipant#try`)
    expect(await other.getByLabel('API key').inputValue()).toBe('')
  })

  it('"Try it" shows large numbers of a response as they were sent', async () => {
    await using opened = await visit('operations/listEventTypes')
    const { page } = opened
    const json = '{"id":9223372036854775807,"price":1.10}'
    await page.route('**/public/v1/event-types*', (route) =>
      route.fulfill({ body: json, contentType: 'application/json' }),
    )
    await page.getByRole('link', { name: 'Try it' }).click()
    await page.getByLabel('API key').fill('mst_any')
    await page.getByRole('button', { name: 'Send GET' }).click()
    const shown = await page.locator('[data-response] pre').first().textContent()
    expect(shown).toBe('{\n  "id": 9223372036854775807,\n  "price": 1.10\n}')
  })

  it('on phones: has a menu and a skip link, and opens the section of a link', async () => {
    await using opened = await visit('operations/updateTask#response-422', {
      viewport: { width: 390, height: 844 },
    })
    const { page, problems } = opened
    await until(
      'the response is open',
      () => page.evaluate("document.getElementById('response-422').open") as Promise<boolean>,
    )
    expect(await page.getByRole('navigation', { name: 'Documentation' }).isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await page
      .getByRole('navigation', { name: 'Documentation' })
      .getByRole('link', { name: 'Authentication' })
      .click()
    await page.waitForURL(/guides\/authentication$/)
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    expect(problems).toEqual([])
  })

  it('muster docs: the files work on a static host, below any path', async () => {
    await using muster = await newMuster()
    const out = join(muster.dataDir, 'site')
    await muster.json(['docs', '--out', out])
    const types: Record<string, string> = {
      html: 'text/html',
      css: 'text/css',
      js: 'text/javascript',
      json: 'application/json',
      svg: 'image/svg+xml',
    }
    const host = createServer(async (request, response) => {
      const path = (request.url ?? '').replace(/^\/some\/where\//, '').replace(/\?.*$/, '')
      const bytes = await readFile(join(out, path)).catch(() => undefined)
      response
        .writeHead(bytes ? 200 : 404, {
          'Content-Type': types[path.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
        })
        .end(bytes)
    })
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
    try {
      await using opened = await visit('index.html', {}, `${origin}/some/where/`)
      const { page, problems } = opened
      await page.keyboard.press('/')
      await page.getByRole('combobox').fill('createJob')
      await page.getByRole('option', { name: 'Create a job' }).first().click()
      await page.waitForURL(`${origin}/some/where/operations/createJob.html`)
      await page.getByRole('tab', { name: 'Go' }).click()
      expect(await page.getByRole('tabpanel').textContent()).toContain('package main')
      await page.getByRole('main').getByRole('link', { name: 'job.created' }).click()
      await page.waitForURL(`${origin}/some/where/events/job.created.html`)
      expect(problems).toEqual([])
    } finally {
      host.closeAllConnections()
      await new Promise((resolve) => host.close(resolve))
    }
  })

  it('is readable without JavaScript', async () => {
    await using opened = await visit('operations/createTask', { javaScriptEnabled: false })
    const { page } = opened
    expect(await page.getByRole('tabpanel').count()).toBe(7)
    expect(await page.locator('[role=tabpanel]').last().isVisible()).toBe(true)
    expect(await page.locator('.tab-list').isVisible()).toBe(false)
    expect(await page.locator('.try').isVisible()).toBe(false)
  })
})
