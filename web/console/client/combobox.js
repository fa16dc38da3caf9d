/** Comboboxes for records: https://www.w3.org/WAI/ARIA/apg/patterns/combobox/. The server searches,
 *  and its response replaces the list. Without JavaScript, the options are buttons below the input. */

const listOf = (input) => document.getElementById(input.getAttribute('aria-controls'))
const optionsOf = (input) => [...listOf(input).children]
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

function move(input, step) {
  setOpen(input, true)
  const options = optionsOf(input)
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

document.addEventListener('htmx:after:swap', () => {
  for (const input of document.querySelectorAll('[role="combobox"]')) {
    setOpen(input, input === document.activeElement)
    // An empty text asks for nothing, so Enter must choose nothing.
    if (input === document.activeElement && input.value !== '') activate(input, optionsOf(input)[0])
  }
})
