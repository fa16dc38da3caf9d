/** Rules for the HTML and the style of a page, which axe does not know. */
import type { Page } from 'playwright-core'

/** Marks that have neither text nor an image: dots, bars and squares that differ by their colour. */
const MARKS = `[...document.querySelectorAll('body *')].flatMap((element) =>
  ['', '::before', '::after'].map((pseudo) => {
    const { content, backgroundColor } = getComputedStyle(element, pseudo)
    const isMark = pseudo === ''
      ? element.textContent.trim() === '' && element.matches('i, span, div, li, b') &&
        element.clientWidth > 0 && element.checkVisibility({ visibilityProperty: true })
      : content === '""' && element.checkVisibility()
    return isMark && !/^rgba\\(.* 0\\)$/.test(backgroundColor) && { element, pseudo }
  }).filter(Boolean))`

const SELECTED = `[...document.querySelectorAll('[aria-current="page"], label:has(:checked)')]`

/** The marks and selected elements that look like their surroundings in the forced colours of the
 *  operating system. The text of each begins with its HTML. */
export async function invisibleInForcedColors(page: Page): Promise<string[]> {
  await page.evaluate(`window.marks = ${MARKS}`)
  await page.emulateMedia({ forcedColors: 'active' })
  const names = (await page.evaluate(`(() => {
    const isClear = (color) => /^rgba\\(.* 0\\)$/.test(color)
    const backdropOf = (element) => {
      for (let outer = element; outer; outer = outer.parentElement) {
        const { backgroundColor } = getComputedStyle(outer)
        if (!isClear(backgroundColor)) return backgroundColor
      }
    }
    const hasFrame = ({ borderStyle, outlineStyle }) => borderStyle !== 'none' || outlineStyle !== 'none'
    const faded = window.marks.filter(({ element, pseudo }) => {
      const style = getComputedStyle(element, pseudo)
      const backdrop = backdropOf(pseudo === '' ? element.parentElement : element)
      return !hasFrame(style) && (isClear(style.backgroundColor) || style.backgroundColor === backdrop)
    })
    const isDistinct = (element) => {
      const input = element.querySelector('input')
      if (input && input.clientWidth > 4 && getComputedStyle(input).opacity !== '0') return true
      return [element, ...element.querySelectorAll(':scope > span')].some((part) => {
        const { outlineStyle, textDecorationLine } = getComputedStyle(part)
        return outlineStyle !== 'none' || textDecorationLine !== 'none'
      })
    }
    const same = ${SELECTED}.filter((element) => element.checkVisibility() && !isDistinct(element))
    return [...faded, ...same.map((element) => ({ element, pseudo: '' }))]
      .map(({ element, pseudo }) => element.outerHTML.slice(0, 120) + pseudo)
  })()`)) as string[]
  await page.emulateMedia({ forcedColors: 'none' })
  return names
}

/** What a page without JavaScript shows, but cannot do: buttons without an effect, forms that cannot
 *  be sent, and links of htmx that lead nowhere. */
export async function deadWithoutScript(page: Page): Promise<string[]> {
  return (await page.evaluate(`(() => {
    const dead = [...document.querySelectorAll('button[type="button"]:not([popovertarget])')]
      .filter((button) => button.checkVisibility({ visibilityProperty: true }))
    const unsent = [...document.forms].filter((form) =>
      !form.hasAttribute('action') ||
      ![...form.elements].some(({ type, hidden }) => type === 'submit' && !hidden))
    const stuck = [...document.querySelectorAll('[hx-get], [hx-post]')].filter((element) =>
      !element.matches('a[href], form[action], form[action] *, [hx-trigger^="every"]'))
    return [...dead, ...unsent, ...stuck].map(({ outerHTML }) => outerHTML.slice(0, 200))
  })()`)) as string[]
}
