/** A table row that opens in place and shows details. Without JavaScript, the details have their own page. */
import { type Content, type Html, html } from '../shared/html.ts'
import { replaceOnClick } from './htmx.ts'

/** `alone`: open, on its own page. */
export type RowView = 'closed' | 'open' | 'alone'

export function parseRowView(text: string | null): RowView {
  return text === 'open' || text === 'closed' ? text : 'alone'
}

interface RowToggle {
  id: string
  /** The ID of the row's `tbody`. */
  rowId: string
  /** The row's own page. */
  path: string
  view: RowView
  className?: string
}

export function rowToggle({ id, rowId, path, view, className = '' }: RowToggle, label: Html): Html {
  const isOpen = view === 'open'
  const attributes = replaceOnClick(`${path}?row=${isOpen ? 'closed' : 'open'}`, rowId)
  return html`<a
    class="${className} toggle"
    id="toggle-${id}"
    href="${path}"
    aria-expanded="${isOpen ? 'true' : 'false'}"
    ${attributes}
  >${label}</a>`
}

/** A heading inside the details: h2 on the row's own page, h3 in a list. */
export function rowHeading(view: RowView, text: string): Html {
  return view === 'alone' ? html`<h2>${text}</h2>` : html`<h3>${text}</h3>`
}

/** The row below an open row. */
export function detailRow(columns: number, detail: Content): Content {
  return (
    detail !== undefined &&
    html`<tr class="detail">
      <td colspan="${columns}">${detail}</td>
    </tr>`
  )
}
