/** Keys that work on every page: Ctrl-K or Cmd-K and ? open the search, / focuses the list's own. */

const SEARCH_LINK = 'a[href="/console/search"]'
const LIST_SEARCH = 'main .filters input:is([type="search"], [type="text"])'

/** Undefined on the page of the search, which has the same form, and for guests. */
const dialog = document.getElementById('search')
const searchInput = () => document.querySelector('form[role="search"] input')

function openSearch() {
  if (dialog && !dialog.open) dialog.showModal()
  searchInput()?.focus()
  searchInput()?.select()
}

function showKeys() {
  openSearch()
  const keys = document.querySelector('.keys')
  if (keys) keys.open = true
}

function focusListSearch() {
  const input = document.querySelector(LIST_SEARCH)
  if (!input) return openSearch()
  input.closest('details').open = true
  input.focus()
  input.select()
}

const KEYS = { '/': focusListSearch, '?': showKeys }

document.addEventListener('keydown', (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event
  const isSearchKey = (ctrlKey || metaKey) && !altKey && key.toLowerCase() === 'k'
  const isTyping = target.closest('input, textarea, select') !== null
  const press = ctrlKey || metaKey || altKey || isTyping ? undefined : KEYS[key]
  const run = isSearchKey ? openSearch : press
  if (!run || !searchInput()) return
  event.preventDefault()
  run()
})

document.addEventListener('click', (event) => {
  if (!dialog || event.ctrlKey || event.metaKey || !event.target.closest(SEARCH_LINK)) return
  event.preventDefault()
  document.querySelector('.side:popover-open')?.hidePopover()
  openSearch()
})

dialog?.addEventListener('click', ({ target }) => {
  // The backdrop belongs to the dialog, and its content covers the dialog.
  if (target === dialog) dialog.close()
})
dialog?.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') dialog.close()
})

if (navigator.platform.startsWith('Mac'))
  for (const kbd of document.querySelectorAll('.search-link kbd, .keys dt:first-child kbd'))
    if (kbd.textContent === 'Ctrl K') kbd.textContent = '⌘ K'
