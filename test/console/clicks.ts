/** Counts what a task costs a user of the console. */
import type { Page } from 'playwright-core'

/** One for each click, each choice in a list, and Ctrl-K. A key that activates a control is a click,
 *  too. A narrow screen folds the menu and filters: their buttons are not counted. */
const COUNT = `
  let chosen
  const isFold = (target) => target.closest('[popovertarget="menu"], .fold > summary') !== null
  // A click on a label causes one on its control.
  const isLabel = (target) => !target.closest('a, button, input') && target.closest('label') !== null
  addEventListener('click', ({ target }) => {
    if (!isFold(target) && !isLabel(target) && !target.matches('select')) countClick()
  }, true)
  addEventListener('change', ({ target }) => {
    if (!target.matches('select') || target === chosen) return
    chosen = target
    countClick()
  }, true)
  addEventListener('keydown', ({ key, ctrlKey }) => {
    if (ctrlKey && key === 'k') countClick()
  }, true)`

/** Counts from now on. Returns a function that returns the count. */
export async function countClicks(page: Page): Promise<() => number> {
  let clicks = 0
  await page.exposeFunction('countClick', () => void clicks++)
  await page.addInitScript(COUNT)
  await page.evaluate(`(() => {${COUNT}})()`)
  return () => clicks
}
