/** Rules for every page of the console. The routes name the pages, so a new page needs no line
 *  here. */
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { routes } from '../../web/console/routes.ts'
import { assertFits, assertReadable } from '../browser.ts'
import type { TestAccount } from '../helpers.ts'
import { requestsOf } from './every-route.ts'
import { deadWithoutScript, invisibleInForcedColors } from './page-rules.ts'
import { newSite, SCREENS } from './site.ts'
import { type BrowserVisit, linkIn, NO_ACCESS, type VisitOptions, visitor } from './visitors.ts'

const LONG_NAME = 'Wolfeschlegelsteinhausenbergerdorff-'.repeat(5)
/** The width of a screen of 1280 pixels at 400 %: WCAG 2.2, 1.4.10. */
const SMALLEST = { width: 320, height: 640 }
const OPEN_ALL = 'for (const details of document.querySelectorAll("details")) details.open = true'
/** Only ends a test that hangs. */
const TIMEOUT_MS = 180_000
/** So many tabs of the browser share the pages. */
const TABS = 2

/** Pages in other states: with filters, without a match, for one of several resources. */
const STATES = [
  '/records/participants?filter[created_after]=2026-01-01T00:00:00Z&sort=-full_name',
  '/records/tasks?filter[status]=completed',
  '/records/exports/new?resource=payments',
  '/requests?status=4xx',
  '/search?q=wolf',
]
/** Queries that are refused. Their status is 422. */
const REFUSED = ['/records/payments?filter[search]=x', '/requests?duration=x', '/events?id=x']
const REFUSAL = /status of 422/

const isPage = ({ method, path }: { method: string; path: string }): boolean =>
  method === 'GET' && !/\.(csv|ndjson)$|\/file$/.test(path)

// The pages are the same on both databases.
describe.runIf(inject('database') === 'sqlite')('every page', { timeout: TIMEOUT_MS }, () => {
  const site = newSite()
  let account: TestAccount
  let paths: string[]
  let guestPaths: string[]
  beforeAll(async () => {
    account = await site.app.newAccount()
    const requests = await requestsOf(site.app, account, LONG_NAME)
    paths = [...requests.filter(isPage).map(({ path }) => path), ...STATES, ...REFUSED]
    const owner = await visitor(site.app, account)
    const person = { full_name: LONG_NAME, email: 'aiko@northwind.example', role: 'member' }
    const invitation = linkIn(await owner.post('/people/invite', { ...person, ...NO_ACCESS }))
    const guestRoutes = routes.filter((route) => !route.access && isPage(route))
    guestPaths = guestRoutes.map(({ path }) => path.replace(/^.*:token$/, invitation))
  })

  /** Opens each page in one of several tabs, and calls `check`. */
  async function forEachPage(
    options: VisitOptions,
    check: (page: Page, path: string) => Promise<void>,
  ): Promise<void> {
    await using guest = await site.visit('/sign-in', options)
    await openAll(guest, [...guestPaths], check)
    const waiting = [...paths]
    const openNext = async (): Promise<void> => {
      await using visited = await site.visit('', { person: account, ...options })
      await openAll(visited, waiting, check)
    }
    await Promise.all(Array.from({ length: TABS }, openNext))
  }

  async function openAll(
    { page, troubles }: BrowserVisit,
    waiting: string[],
    check: (page: Page, path: string) => Promise<void>,
  ): Promise<void> {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const response = await page.goto(`${site.app.url}/console${path}`)
      expect(response?.status(), path).toBe(REFUSED.includes(path) ? 422 : 200)
      await page.evaluate(OPEN_ALL)
      await check(page, path)
    }
    expect(troubles.filter((trouble) => !REFUSAL.test(trouble))).toEqual([])
  }

  it.each(SCREENS)('is readable at $viewport.width pixels, $colorScheme', async (screen) => {
    await forEachPage(screen, assertReadable)
  })

  it('works without JavaScript, in forced colours, and on the smallest screen', async () => {
    await forEachPage({ viewport: SMALLEST, javaScriptEnabled: false }, async (page, path) => {
      await assertFits(page, path)
      expect(await deadWithoutScript(page), path).toEqual([])
      expect(await invisibleInForcedColors(page), path).toEqual([])
    })
  })
})
