/** The form above a list, with the filters of the list. */
import { type Content, type Html, html } from '../shared/html.ts'
import { button, buttonLink, hiddenInput } from './ui.ts'

interface MoreFilters {
  title?: string
  isOpen: boolean
  fields: Content
}

interface FilterForm {
  /** The path of the list, below /console. */
  to: string
  fields: Content
  /** The path that "Clear filters" leads to, below /console. False if no filter is set. */
  clear: string | false
  /** Further parameters of the query, by name. */
  hidden?: Record<string, string>
  /** Fields that can be collapsed. */
  more?: MoreFilters | false
  attributes?: Content
}

export function filterForm({ to, fields, clear, hidden = {}, more, attributes }: FilterForm): Html {
  return html`<form class="filters" method="get" action="/console${to}" novalidate${attributes}>
    ${Object.entries(hidden).map(([name, value]) => hiddenInput(name, value))}
    <div class="filter-row">
      ${fields}
      <div class="actions">
        ${button('Filter')}
        ${clear !== false && buttonLink(clear, 'Clear filters', 'quiet')}
      </div>
    </div>
    ${more && moreFilters(more)}
  </form>`
}

function moreFilters({ title = 'More filters', isOpen, fields }: MoreFilters): Html {
  return html`<details${isOpen && html` open`}>
    <summary>${title}</summary>
    <div class="filter-grid">${fields}</div>
  </details>`
}
