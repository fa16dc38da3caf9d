/** The form of the search, with its results. Client/combobox.js adds the keyboard. */
import { type Content, type Html, html } from '../../shared/html.ts'
import { replace } from '../htmx.ts'
import { hrefOf } from '../navigation.ts'
import type { Match } from './match.ts'

/** Below /console. */
export const SEARCH_PATH = '/search'
const RESULTS_ID = 'search-results'

interface SearchState {
  text: string
  matches: Match[]
  /** Shown below the matches. */
  note: Content
}

export function searchForm({ text, matches, note }: SearchState): Html {
  const searchWhileTyping = replace(RESULTS_ID, {
    path: `/console${SEARCH_PATH}`,
    trigger: 'input changed delay:150ms, focus',
    swap: 'outerMorph',
  })
  return html`<form class="search" role="search" action="/console${SEARCH_PATH}">
      <input
        type="search"
        name="q"
        role="combobox"
        aria-label="Search"
        aria-autocomplete="list"
        aria-expanded="true"
        aria-controls="${RESULTS_ID}-list"
        value="${text}"
        placeholder="A page, a name or an ID"
        autocomplete="off"
        spellcheck="false"
        autofocus
        ${searchWhileTyping}
      >
      <button class="button">Search</button>
    </form>
    <div id="${RESULTS_ID}">
      <div role="listbox" id="${RESULTS_ID}-list" aria-label="Results" data-text="${text}"${matches.length === 0 && html` hidden`}>
        ${matches.map(option)}
      </div>
      <p class="muted" role="status">${note}</p>
    </div>
    ${KEYS}`
}

function option({ to, title, detail, kind }: Match, index: number): Html {
  return html`<a role="option" id="${RESULTS_ID}-${index}" href="${hrefOf(to)}">
    <span class="title">${title}</span>
    ${detail && html`<small>${detail}</small>`}
    <span class="kind">${kind}</span>
  </a>`
}

const KEYS = html`<details class="keys">
  <summary>Keyboard shortcuts</summary>
  <dl>
    <div><dt><kbd>Ctrl K</kbd></dt><dd>Search everything</dd></div>
    <div><dt><kbd>/</kbd></dt><dd>Search this list</dd></div>
    <div><dt><kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd></dt><dd>Choose a result</dd></div>
    <div><dt><kbd>Esc</kbd></dt><dd>Close</dd></div>
    <div><dt><kbd>?</kbd></dt><dd>Show these keys</dd></div>
  </dl>
</details>`

export const searchDialog = html`<dialog id="search" aria-label="Search">
  ${searchForm({ text: '', matches: [], note: '' })}
</dialog>`
