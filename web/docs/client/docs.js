/** Browser behaviour of every page: theme, code tabs, copying, search. */
const root = document.documentElement

function savePreference(name, value) {
  root.dataset[name] = value
  try {
    localStorage.setItem(`muster-${name}`, value)
  } catch {
    // Storage is disabled: the choice lasts until the page is left.
  }
}

const toggle = document.querySelector('[data-theme-toggle]')
const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : prefersDark.matches)
const showTheme = () => toggle.setAttribute('aria-pressed', String(isDark()))
toggle.addEventListener('click', () => {
  savePreference('theme', isDark() ? 'light' : 'dark')
  showTheme()
})
prefersDark.addEventListener('change', showTheme)
showTheme()

/** Marks the tab of the chosen language. The style sheet shows the panel. */
function showLanguage() {
  for (const list of document.querySelectorAll('[role=tablist]')) {
    const tabs = [...list.children]
    const selected = tabs.find((tab) => tab.dataset.language === root.dataset.language) ?? tabs[0]
    for (const tab of tabs) {
      tab.setAttribute('aria-selected', String(tab === selected))
      tab.tabIndex = tab === selected ? 0 : -1
    }
  }
}

/** Keeps the tab in its place on the screen, although the panels above it change their height. */
function chooseLanguage(tab) {
  const topBefore = tab.getBoundingClientRect().top
  savePreference('language', tab.dataset.language)
  showLanguage()
  scrollBy(0, tab.getBoundingClientRect().top - topBefore)
}

/** The tab to which the key moves. Undefined for other keys. */
function tabFor(key, tabs) {
  const position = tabs.indexOf(document.activeElement)
  if (key === 'ArrowRight') return tabs[(position + 1) % tabs.length]
  if (key === 'ArrowLeft') return tabs.at(position - 1)
  if (key === 'Home') return tabs[0]
  if (key === 'End') return tabs.at(-1)
}

for (const list of document.querySelectorAll('[role=tablist]')) {
  list.addEventListener(
    'click',
    ({ target }) => target.matches('[role=tab]') && chooseLanguage(target),
  )
  list.addEventListener('keydown', (event) => {
    const tab = tabFor(event.key, [...list.children])
    if (!tab) return
    event.preventDefault()
    tab.focus()
    chooseLanguage(tab)
  })
}
showLanguage()

document.addEventListener('click', async ({ target }) => {
  const button = target.closest?.('[data-copy]')
  if (!button) return
  const text = button.parentElement.querySelector('pre').textContent
  try {
    // Browsers have a clipboard only on HTTPS and localhost.
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Copy failed'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 1500)
})

for (const element of document.querySelectorAll(':is(h2, h3, .field)[id]')) {
  const anchor = document.createElement('a')
  anchor.className = 'anchor'
  anchor.href = `#${element.id}`
  anchor.textContent = '#'
  anchor.setAttribute('aria-label', 'Link to this part')
  const place = element.querySelector('.field-head') ?? element
  place.append(' ', anchor)
}

/** Opens the folded sections around the target of a link, and scrolls to it. */
function openTarget() {
  const target = document.getElementById(readHash())
  if (!target) return
  for (let element = target; element; element = element.parentElement)
    if (element instanceof HTMLDetailsElement) element.open = true
  target.scrollIntoView()
}

function readHash() {
  const hash = location.hash.slice(1)
  try {
    return decodeURIComponent(hash)
  } catch {
    return hash
  }
}
addEventListener('hashchange', openTarget)
if (location.hash !== '') openTarget()

document
  .getElementById('menu')
  .querySelector('[aria-current]')
  ?.scrollIntoView({ block: 'nearest' })

// Loads the search code and its index on first use.
const openSearch = async () => (await import('./search.js')).open()
document.querySelector('[data-search]').addEventListener('click', openSearch)
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches?.('input, textarea, select')
  const isShortcut =
    (event.key === '/' && !isTyping) || (event.key === 'k' && (event.metaKey || event.ctrlKey))
  if (!isShortcut) return
  event.preventDefault()
  openSearch()
})
