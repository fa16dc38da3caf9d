/** Theme, tabs, copying, the search: what every page has. */
const root = document.documentElement

function keep(name, value) {
  root.dataset[name] = value
  try {
    localStorage.setItem(`muster-${name}`, value)
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
}

const toggle = document.querySelector('[data-theme-toggle]')
const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : prefersDark.matches)
const showTheme = () => toggle.setAttribute('aria-pressed', String(isDark()))
toggle.addEventListener('click', () => {
  keep('theme', isDark() ? 'light' : 'dark')
  showTheme()
})
prefersDark.addEventListener('change', showTheme)
showTheme()

// Which panel is shown follows from the language in the style sheet; here the tabs are told.
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

/** Without a jump: what was clicked stays where it is, whatever grows or shrinks above it. */
function chooseLanguage(tab) {
  const before = tab.getBoundingClientRect().top
  keep('language', tab.dataset.language)
  showLanguage()
  scrollBy(0, tab.getBoundingClientRect().top - before)
}

const STEPS = {
  ArrowRight: 1,
  ArrowLeft: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
}
for (const list of document.querySelectorAll('[role=tablist]')) {
  list.addEventListener(
    'click',
    ({ target }) => target.matches('[role=tab]') && chooseLanguage(target),
  )
  list.addEventListener('keydown', (event) => {
    if (!(event.key in STEPS)) return
    event.preventDefault()
    const tabs = [...list.children]
    const at = tabs.indexOf(document.activeElement)
    const step = STEPS[event.key]
    const next = Number.isFinite(step)
      ? (at + step + tabs.length) % tabs.length
      : step < 0
        ? 0
        : tabs.length - 1
    tabs[next].focus()
    chooseLanguage(tabs[next])
  })
}
showLanguage()

document.addEventListener('click', async ({ target }) => {
  const button = target.closest?.('[data-copy]')
  if (!button) return
  const text = button.parentElement.querySelector('pre').textContent
  const isCopied = await navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )
  button.textContent = isCopied ? 'Copied' : 'Not allowed'
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 1500)
})

// A link into something folded opens it.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (!target) return
  for (let at = target; at; at = at.parentElement)
    if (at instanceof HTMLDetailsElement) at.open = true
  target.scrollIntoView()
}
addEventListener('hashchange', unfold)
if (location.hash !== '') unfold()

const side = document.getElementById('menu')
side.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })

// The index and the code that reads it come with the first search.
const openSearch = async () => (await import('./search.js')).open()
document.querySelector('[data-search]').addEventListener('click', openSearch)
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches?.('input, textarea, select')
  const isAsked =
    (event.key === '/' && !isTyping) || (event.key === 'k' && (event.metaKey || event.ctrlKey))
  if (!isAsked) return
  event.preventDefault()
  openSearch()
})
