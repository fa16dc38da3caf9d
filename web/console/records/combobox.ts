/** A text input that finds records by name, to which client/combobox.js adds the keyboard. */
import type { Resource } from '../../../generated/resources.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type FieldOptions, labelledField } from '../form-fields.ts'
import { count } from '../format.ts'
import { replace } from '../htmx.ts'
import { statePill } from './cells.ts'
import { elementId } from './form-parts.ts'
import { noun, plural } from './labels.ts'
import { distinguishingText, recordName, type SearchResult } from './references.ts'
import type { Item } from './resources.ts'

interface Combobox extends FieldOptions {
  resource: Resource
  /** Returns the page with the results for the typed text. */
  search: { path: string; method: 'get' | 'post'; also?: string }
  result?: SearchResult
  /** The button that chooses a record. */
  choose(item: Item, attributes: Html, text: Html): Html
  /** After the input. */
  beside?: Content
}

export function combobox(options: Combobox): Html {
  const { name, value = '', search, beside } = options
  const foundId = `found-${elementId(name)}`
  const searchWhileTyping = replace(foundId, {
    ...search,
    trigger: 'input changed delay:150ms, open',
  })
  return labelledField(
    options,
    (attributes) => html`
      <span class="reference">
        <input
          type="text"
          role="combobox"
          aria-autocomplete="list"
          aria-expanded="false"
          aria-controls="${foundId}-list"
          ${attributes}
          value="${value}"
          placeholder="Search by name"
          autocomplete="off"
          spellcheck="false"
          ${searchWhileTyping}
        >
        ${beside}
      </span>
      <div class="found" id="${foundId}" aria-live="polite">
        ${searchResults(options, `${foundId}-list`)}
      </div>`,
  )
}

function searchResults({ resource, result, choose }: Combobox, listId: string): Html {
  const { items, total } = result ?? { items: [], total: 0 }
  const options = items.map((item, index) =>
    choose(
      item,
      html`role="option" id="${listId}-${index}"`,
      html`<span>${recordName(resource, item) ?? item.id}</span>
      <small>${distinguishingText(resource, item, items)}</small>
      ${statusPill(item)}`,
    ),
  )
  const isHidden = items.length === 0 && html` hidden`
  const more = total - items.length
  const text = result && html` data-text="${result.text}"`
  return html`<div role="listbox" id="${listId}" aria-label="${plural(resource)}"${text}${isHidden}>
      ${options}
    </div>
    ${result && items.length === 0 && html`<p>No matching ${noun(resource)} found.</p>`}
    ${more > 0 && html`<p>${count(more)} more. Type more of the name.</p>`}`
}

export function statusPill(item: Record<string, unknown>): Content {
  return typeof item.status === 'string' && statePill(item.status)
}
