/** HTML attributes for htmx, which loads a response and replaces an element of the page by the
 *  element of the response with the same ID. */
import { type Html, html } from '../shared/html.ts'

interface Replacement {
  /** The URL path of the request. */
  path: string
  method?: 'get' | 'post'
  /** Default: a click, or the submission of a form. */
  trigger?: string
  /** `outerMorph` keeps the focus and the scroll position. */
  swap?: 'outerHTML' | 'outerMorph'
  /** Other elements to replace, for example `#notices`. */
  also?: string
}

export function replace(
  elementId: string,
  { path, method = 'get', trigger, swap = 'outerHTML', also }: Replacement,
): Html {
  return html` hx-${method}="${path}"
    hx-target="#${elementId}"
    hx-select="#${elementId}"
    hx-swap="${swap} ignoreTitle:true"
    ${trigger && html`hx-trigger="${trigger}"`}
    ${also && html`hx-select-oob="${also}"`}`
}

/** Reloads the element from `path`. The header `Muster-Poll` keeps the notice of the session, such
 *  as “Changes saved.”, for the next page that the user opens. */
export function reloadEvery(seconds: number, path: string, elementId: string, also?: string): Html {
  const trigger = `every ${seconds}s`
  return html`${replace(elementId, { path, trigger, swap: 'outerMorph', also })}
    hx-headers='{"Muster-Poll":"1"}'`
}
