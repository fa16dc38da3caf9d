/** Comboboxes for records: https://www.w3.org/WAI/ARIA/apg/patterns/combobox/. The server searches,
 *  and its response replaces the list. Without JavaScript, the options are buttons below the input. */

const listOf = (input) => document.getElementById(input.getAttribute('aria-controls'))
const optionsOf = (input) => [...listOf(input).children]
/** Whether the options are the results for the typed text: a response can arrive while the user types
 *  on. */
const isCurrent = (input) => listOf(input).dataset.text === input.value.trim()
/** The search of the console, whose results are the content of its dialog or page. */
const isSearch = (input) => input.form.role === 'search'
const activeOf = (input) => optionsOf(input).find(({ ariaSelected }) => ariaSelected === 'true')

function activate(input, active) {
  for (const option of optionsOf(input)) option.ariaSelected = String(option === active)
  input.setAttribute('aria-activedescendant', active?.id ?? '')
  active?.scrollIntoView({ block: 'nearest' })
}

function setOpen(input, isOpen) {
  // The parent has the messages beside the list, too.
  if (!isSearch(input)) listOf(input).parentElement.hidden = !isOpen
  input.ariaExpanded = String(isOpen && optionsOf(input).length > 0)
  if (!isOpen) activate(input)
}

/** Asks for the results of the typed text, which open the list when they arrive. */
function load(input) {
  if (!isSearch(input)) input.dispatchEvent(new Event('open'))
}

function move(input, step) {
  const options = optionsOf(input)
  if (options.length === 0) return load(input)
  setOpen(input, true)
  const from = options.indexOf(activeOf(input))
  const next = from === -1 && step < 0 ? options.length - 1 : from + step
  activate(input, options.at(next % options.length))
}

const KEYS = {
  ArrowDown: (input) => move(input, 1),
  ArrowUp: (input) => move(input, -1),
  // Chooses, and submits no form but the search, whose results may not have arrived yet.
  Enter(input) {
    const active = activeOf(input)
    if (active) active.click()
    else if (isSearch(input)) input.form.requestSubmit()
  },
  Escape: (input) => setOpen(input, false),
}

document.addEventListener('keydown', (event) => {
  if (event.target.role !== 'combobox' || event.isComposing || !KEYS[event.key]) return
  event.preventDefault()
  KEYS[event.key](event.target)
})

document.addEventListener('input', ({ target }) => {
  // The options still belong to the text before.
  if (target.role === 'combobox') activate(target)
})

document.addEventListener('focusout', ({ target }) => {
  if (target.role === 'combobox') setOpen(target, false)
})

// The input keeps the focus while an option is clicked.
document.addEventListener('mousedown', (event) => {
  if (event.target.closest('[role="option"]')) event.preventDefault()
})

document.addEventListener('click', ({ target }) => {
  if (target.role === 'combobox') load(target)
})

export function closeLists() {
  for (const input of document.querySelectorAll('[role="combobox"]')) setOpen(input, false)
}

// The results that come with a page would cover its errors.
closeLists()

document.addEventListener('htmx:after:swap', () => {
  closeLists()
  const input = document.activeElement
  if (input.role !== 'combobox' || listOf(input).dataset.text === undefined) return
  setOpen(input, true)
  // An empty text asks for nothing, so Enter must choose nothing.
  if (input.value !== '' && isCurrent(input)) activate(input, optionsOf(input)[0])
})
