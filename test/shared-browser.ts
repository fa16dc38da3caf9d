import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, type RunnerTestCase, TestRunner } from 'vitest'
import { hasBrowser, NO_BROWSER, openBrowser } from './browser.ts'

/** One browser for all tests of a file. The result returns it, or skips the test that calls it on
 *  a machine without a browser. */
export function sharedBrowser(): () => Browser {
  let browser: Browser
  beforeAll(async () => {
    if (hasBrowser) browser = await openBrowser()
    else console.log(`Skipped: ${NO_BROWSER}`)
  })
  afterAll(() => browser?.close())
  return () => {
    if (!hasBrowser) TestRunner.getCurrentTest<RunnerTestCase>().context.skip(NO_BROWSER)
    return browser
  }
}
