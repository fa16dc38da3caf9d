/** The search for pages, actions, IDs and names. Each page has its form in a dialog. Without
 *  JavaScript, /search shows it. */
import type { Content } from '../../shared/html.ts'
import { html } from '../../shared/html.ts'
import { counted } from '../format.ts'
import { anyUser, type ConsolePage, getFromStandby, type Route, type Visit } from '../page.ts'
import { parseId } from '../query.ts'
import { card } from '../ui.ts'
import { destinations } from './destinations.ts'
import { SEARCH_PATH, searchForm } from './form.ts'
import { findById } from './ids.ts'
import { hasWords, type Match } from './match.ts'
import { findByName, limitNote, MIN_NAME_CHARACTERS } from './names.ts'

export const searchRoutes: Route[] = [getFromStandby(SEARCH_PATH, anyUser, searchPage)]

const MAX_CHARACTERS = 200

async function searchPage(visit: Visit): Promise<ConsolePage> {
  const text = (visit.query.get('q') ?? '')
    .replaceAll('\0', '')
    .trim()
    .slice(0, MAX_CHARACTERS)
    // The cut can divide a character.
    .toWellFormed()
  const matches = await search(visit, text)
  const form = searchForm({ text, matches, note: noteOn(visit, text, matches) })
  return {
    title: 'Search',
    isNarrow: true,
    body: card('', html`<div class="card-body">${form}</div>`),
  }
}

async function search(visit: Visit, text: string): Promise<Match[]> {
  const id = parseId(text)
  if (id !== undefined) return findById(visit, id)
  const pages = destinations(visit.user).filter(({ title }) => hasWords(title, text))
  return text === '' ? pages : [...pages, ...(await findByName(visit, text))]
}

function noteOn({ user }: Visit, text: string, matches: Match[]): Content {
  const results = matches.length === 0 ? 'No results.' : `${counted(matches.length, 'result')}.`
  if (text === '' || parseId(text) !== undefined) return results
  return text.length < MIN_NAME_CHARACTERS
    ? `${results} Type ${MIN_NAME_CHARACTERS} characters to search the names of records.`
    : [results, ' ', limitNote(user)]
}
