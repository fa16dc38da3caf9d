/** One service and one browser for all tests of a file. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { openBrowser } from '../browser.ts'
import { type AppOptions, startApp, type TestApp } from '../helpers.ts'
import { type BrowserVisit, type VisitOptions, visit } from './visitors.ts'

export interface Site {
  app: TestApp
  browser: Browser
  /** Opens a path below /console. Without `person`, as a guest. */
  visit(path: string, options?: VisitOptions): Promise<BrowserVisit>
}

/** Starts before the tests and stops after them. */
export function newSite(options?: AppOptions): Site {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    app = await startApp(options)
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.[Symbol.asyncDispose]()
  })
  return {
    get app() {
      return app
    },
    get browser() {
      return browser
    },
    visit: (path, visitOptions) => visit(app, browser, path, visitOptions),
  }
}
