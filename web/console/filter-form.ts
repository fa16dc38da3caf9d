/** The form above a list, with the filters of the list. */
import { DAY_MS, HOUR_MS } from '../../records/time-units.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { type Errors, hasErrors } from './form-fields.ts'
import { button, enterButton, hiddenInput } from './ui.ts'

interface MoreFilters {
  title?: string
  isOpen: boolean
  fields: Content
}

/** Links that set the start of the period, and remove its end. */
interface Presets {
  now: Date
  /** What happened in the period, unless fields beside the links show it. */
  label?: string
  /** The path of the list from a time, in epoch milliseconds, below /console. */
  to(from: number): string
}

interface FilterForm {
  /** The path of the list, below /console. */
  to: string
  fields: Content
  /** The number of filters that are set. */
  usedCount: number
  /** The path that "Clear filters" leads to, below /console. */
  clear: string
  /** Fields that are marked, by name: then the filters are not folded. */
  errors?: Errors
  /** The filters are not folded. */
  isOpen?: boolean
  /** Further parameters of the query, by name. */
  hidden?: Record<string, string>
  /** Fields that can be collapsed. */
  more?: MoreFilters | false
  presets?: Presets | false
  attributes?: Content
}

/** On narrow screens, one button shows and hides the fields: see .fold in client/media.css. */
export function filterForm(options: FilterForm): Html {
  const {
    to,
    fields,
    usedCount,
    clear,
    errors = {},
    isOpen,
    hidden = {},
    more,
    presets,
    attributes,
  } = options
  return html`<form class="filters" method="get" action="/console${to}" novalidate${attributes}>
    ${enterButton('Filter')}
    ${Object.entries(hidden).map(([name, value]) => hiddenInput(name, value))}
    <details class="fold"${(isOpen || hasErrors(errors)) && html` open`}>
      <summary class="button">Filters${usedCount > 0 && html` <b>${usedCount}</b>`}</summary>
      <div class="filter-row">
        ${fields}
        <div class="actions">
          ${button('Filter')}
        </div>
      </div>
      <div class="filter-links">
        ${more && moreFilters(more)}
        ${presets && presetLinks(presets)}
        ${usedCount > 0 && html`<a href="/console${clear}">Clear filters</a>`}
      </div>
    </details>
  </form>`
}

const PERIODS = {
  'Last hour': HOUR_MS,
  '24 hours': DAY_MS,
  '7 days': 7 * DAY_MS,
  '30 days': 30 * DAY_MS,
}

function presetLinks({ now, label, to }: Presets): Html {
  const links = Object.entries(PERIODS).map(
    ([period, ms]) => html`<li><a href="/console${to(now.getTime() - ms)}">${period}</a></li>`,
  )
  const shown = label !== undefined && html`<li class="muted" aria-hidden="true">${label}:</li>`
  return html`<ul class="presets" aria-label="${label ?? 'Period'}">${shown}${links}</ul>`
}

function moreFilters({ title = 'More filters', isOpen, fields }: MoreFilters): Html {
  return html`<details${isOpen && html` open`}>
    <summary>${title}</summary>
    <div class="filter-grid">${fields}</div>
  </details>`
}
