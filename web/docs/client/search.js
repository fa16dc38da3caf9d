/** The search dialog: a combobox over a list of links (WAI-ARIA Authoring Practices,
 *  "Combobox"). */
import MiniSearch from './minisearch.js'
import { OPTIONS } from './search-words.js'

const MAX_RESULTS = 12

const dialog = document.querySelector('dialog.search')
const input = dialog.querySelector('input')
const list = dialog.querySelector('[role=listbox]')
const note = dialog.querySelector('[role=status]')
const { up, suffix } = document.documentElement.dataset

/** The search index. Undefined until it is loaded. */
let index
/** The position of the selected result, or -1 without results. */
let active = -1

export async function open() {
  dialog.showModal()
  input.select()
  index ??= await load()
  show()
}

async function load() {
  const response = await fetch(new URL('search.json', import.meta.url))
  return MiniSearch.loadJSON(await response.text(), OPTIONS)
}

function show() {
  const query = input.value.trim()
  const results = query === '' || !index ? [] : index.search(query).slice(0, MAX_RESULTS)
  list.replaceChildren(...results.map(resultItem))
  note.textContent = describeResults(query, results)
  activate(results.length > 0 ? 0 : -1)
}

function describeResults(query, results) {
  if (query === '') return 'Type to search. ↑ ↓ to select, ↵ to open.'
  if (!index) return 'Loading …'
  return results.length === 0 ? `No results for “${query}”.` : ''
}

function resultItem({ target, kind, title, hint, terms }, number) {
  const item = document.createElement('li')
  item.setAttribute('role', 'option')
  item.id = `result-${number}`
  const link = document.createElement('a')
  link.href = resultUrl(target)
  link.tabIndex = -1
  for (const [className, text] of Object.entries({ kind, title, hint })) {
    const part = document.createElement('span')
    part.className = className
    part.append(...(className === 'kind' ? [text] : highlighted(text, terms)))
    link.append(part)
  }
  item.append(link)
  return item
}

/** The text with the found words marked. `terms` are words of letters and digits only. */
function highlighted(text, terms) {
  const pattern = new RegExp(`(${terms.join('|')})`, 'i')
  return text.split(pattern).map((part, index) => {
    // `split` puts each match between two parts of the rest.
    if (index % 2 === 0) return part
    const mark = document.createElement('mark')
    mark.textContent = part
    return mark
  })
}

function resultUrl(target) {
  const [page, fragment] = target.split('#')
  return `${up}${page}${suffix}${fragment ? `#${fragment}` : ''}`
}

function activate(position) {
  active = position
  for (const [other, item] of [...list.children].entries())
    item.setAttribute('aria-selected', String(other === position))
  const item = list.children[position]
  item?.scrollIntoView({ block: 'nearest' })
  if (item) input.setAttribute('aria-activedescendant', item.id)
  else input.removeAttribute('aria-activedescendant')
}

input.addEventListener('input', show)
input.addEventListener('keydown', (event) => {
  const count = list.children.length
  if (event.key === 'Enter') {
    event.preventDefault()
    list.children[active]?.querySelector('a').click()
  } else if (event.key === 'Escape') {
    // Browsers would clear the field first.
    event.preventDefault()
    dialog.close()
  } else if (event.key === 'ArrowDown' && count > 0) {
    event.preventDefault()
    activate((active + 1) % count)
  } else if (event.key === 'ArrowUp' && count > 0) {
    event.preventDefault()
    activate((active - 1 + count) % count)
  }
})
// A result can be a section of this page: the link to it does not close the dialog.
list.addEventListener('click', () => dialog.close())
dialog.addEventListener('click', ({ target }) => target === dialog && dialog.close())
