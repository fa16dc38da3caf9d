/** One service and one browser for all tests of a file. */
import type { Browser, Page } from 'playwright-core'
import { type AppOptions, sharedApp, type TestApp } from '../helpers.ts'
import { sharedBrowser } from '../shared-browser.ts'
import { type BrowserVisit, type VisitOptions, visit } from './visitors.ts'

/** Every page must be readable on these: wide and light, narrow and dark. */
export const SCREENS = [
  { viewport: { width: 1280, height: 860 }, colorScheme: 'light' },
  { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
] as const

export interface Site {
  app: TestApp
  browser: Browser
  /** Opens a path below /console. Without `person`, as a guest. */
  visit(path: string, options?: VisitOptions): Promise<BrowserVisit>
}

/** Shows the filters of a list, which narrow screens fold. */
export async function openFilters(page: Page): Promise<void> {
  const button = page.locator('.fold > summary')
  if (await button.isVisible()) await button.press('Enter')
}

/** Follows a link of the menu, which narrow screens fold. */
export async function follow(page: Page, name: string): Promise<void> {
  const menu = page.getByRole('button', { name: 'Menu' })
  if (await menu.isVisible()) await menu.press('Enter')
  await page.getByRole('link', { name, exact: true }).press('Enter')
}

/** The service and the browser start before the tests of the file, and stop after them. */
export function newSite(options?: AppOptions): Site {
  const app = sharedApp(options)
  const browser = sharedBrowser()
  return {
    app,
    get browser() {
      return browser()
    },
    visit: (path, visitOptions) => visit(app, browser(), path, visitOptions),
  }
}
