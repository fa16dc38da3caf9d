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
        ${matches.map((match, index) => option(match, index, text))}
      </div>
      <p class="muted" role="status">${note}</p>
    </div>
    ${KEYS}`
}

function option({ to, title, detail, kind }: Match, index: number, text: string): Html {
  return html`<a role="option" id="${RESULTS_ID}-${index}" href="${hrefOf(to)}">
    <span class="title">${withMarks(title, text)}</span>
    ${detail && html`<small>${detail}</small>`}
    <span class="kind">${kind}</span>
  </a>`
}

/** Marks the words that were typed. */
function withMarks(title: string, text: string): Content {
  const words = text.split(/\s+/).filter(Boolean)
  if (words.length === 0) return title
  const pattern = words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, '\\$&')).join('|')
  return title
    .split(new RegExp(`(${pattern})`, 'i'))
    .map((part, index) => (index % 2 === 1 ? html`<mark>${part}</mark>` : part))
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
