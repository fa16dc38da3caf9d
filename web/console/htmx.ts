/** Attributes of HTML with which htmx replaces an element by the element of a response that has the
 *  same ID. */
import { type Html, html } from '../shared/html.ts'

interface Replacement {
  /** The URL path of the response. */
  path: string
  method?: 'get' | 'post'
  /** Default: a click, or the submission of a form. */
  trigger?: string
  /** `outerMorph` keeps the focus and the scroll position. */
  swap?: 'outerHTML' | 'outerMorph'
  /** Other elements to replace, for example `#toast`. */
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

/** Reloads the element from `path`. Because of the header, the response leaves the notice to the
 *  next page that the user opens. */
export function reloadEvery(seconds: number, path: string, elementId: string, also?: string): Html {
  const trigger = `every ${seconds}s`
  return html`${replace(elementId, { path, trigger, swap: 'outerMorph', also })}
    hx-headers='{"Muster-Poll":"1"}'`
}
