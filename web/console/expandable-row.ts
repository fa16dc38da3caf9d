/** A table row that opens in place and shows details. Without JavaScript, the details have their
 *  own page. */
import { type Content, type Html, html } from '../shared/html.ts'
import { replace } from './htmx.ts'
import { type Column, tableCells } from './ui.ts'

/** `alone`: open, and the only row of its own page. */
export type RowView = 'closed' | 'open' | 'alone'

export function parseRowView(text: string | null): RowView {
  return text === 'open' || text === 'closed' ? text : 'alone'
}

interface ExpandableRow {
  /** The ID of the row's `tbody`. */
  id: string
  view: RowView
  cells: Content[]
  detail?: Content
  reloadAttributes?: Content
}

export function expandableRow(
  columns: Column[],
  { id, view, cells, detail, reloadAttributes }: ExpandableRow,
): Html {
  const detailCell = html`<td colspan="${columns.length}">${detail}</td>`
  return html`<tbody id="${id}"${view !== 'closed' && html` class="opened"`}${reloadAttributes}>
    <tr>${tableCells(columns, cells)}</tr>
    ${detail !== undefined && html`<tr class="detail">${detailCell}</tr>`}
  </tbody>`
}

interface RowToggle {
  rowId: string
  /** The row's own page, below /console. */
  to: string
  view: RowView
  className?: string
}

/** A link that opens or closes the row. On the row's own page, only its text. */
export function rowToggle({ rowId, to, view, className = '' }: RowToggle, label: Content): Html {
  if (view === 'alone') return html`<span class="${className}">${label}</span>`
  const isOpen = view === 'open'
  const path = `/console${to}`
  return html`<a
    class="${className} toggle"
    id="toggle-${rowId}"
    href="${path}"
    aria-expanded="${isOpen ? 'true' : 'false'}"
    ${replace(rowId, { path: `${path}?row=${isOpen ? 'closed' : 'open'}` })}
  >${label}</a>`
}

/** A heading inside the details: h2 on the row's own page, h3 in a list. */
export function rowHeading(view: RowView, text: string): Html {
  return view === 'alone' ? html`<h2>${text}</h2>` : html`<h3>${text}</h3>`
}
