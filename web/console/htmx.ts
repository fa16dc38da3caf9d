/** Attributes with which htmx replaces an element by the same element of a new response. */
import { type Html, html } from '../shared/html.ts'

/** Reloads the element from `path` every `seconds`. Keeps the focus and the scroll position. */
export function reloadEvery(seconds: number, path: string, elementId: string): Html {
  const swap = html` hx-select="#${elementId}" hx-swap="outerMorph ignoreTitle:true"`
  return html` hx-get="${path}" hx-trigger="every ${seconds}s" hx-target="#${elementId}"${swap}`
}

/** Replaces the element with its version at `path` when a link is clicked. */
export function replaceOnClick(path: string, elementId: string): Html {
  const select = html` hx-select="#${elementId}" hx-swap="outerHTML ignoreTitle:true"`
  return html` hx-get="${path}" hx-target="#${elementId}"${select}`
}
