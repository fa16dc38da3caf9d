/** The search for pages, actions, IDs and names. Each page has its form in a dialog. Without
 *  JavaScript, /search shows it. */
import type { Content } from '../../shared/html.ts'
import { html } from '../../shared/html.ts'
import { counted } from '../format.ts'
import { anyUser, type ConsolePage, getFromStandby, type Route, type Visit } from '../page.ts'
import { parseId } from '../query.ts'
import { MAX_COMPARED_NAMES } from '../records/references.ts'
import { card } from '../ui.ts'
import { destinations } from './destinations.ts'
import { SEARCH_PATH, searchForm } from './form.ts'
import { findById } from './ids.ts'
import { hasWords } from './match.ts'
import { type FoundNames, findByName, MIN_NAME_CHARACTERS } from './names.ts'

export const searchRoutes: Route[] = [getFromStandby(SEARCH_PATH, anyUser, searchPage)]

const MAX_CHARACTERS = 200

async function searchPage(visit: Visit): Promise<ConsolePage> {
  const text = (visit.query.get('q') ?? '')
    .replaceAll('\0', '')
    .trim()
    .slice(0, MAX_CHARACTERS)
    // The cut can divide a character.
    .toWellFormed()
  const found = await search(visit, text)
  const form = searchForm({ text, matches: found.matches, note: noteOn(text, found) })
  return {
    title: 'Search',
    isNarrow: true,
    body: card('', html`<div class="card-body">${form}</div>`),
  }
}

async function search(visit: Visit, text: string): Promise<FoundNames> {
  const id = parseId(text)
  if (id !== undefined) return { matches: await findById(visit, id), limitedTo: [] }
  const pages = destinations(visit.user).filter(({ title }) => hasWords(title, text))
  if (text === '') return { matches: pages, limitedTo: [] }
  const { matches, limitedTo } = await findByName(visit, text)
  return { matches: [...pages, ...matches], limitedTo }
}

function noteOn(text: string, { matches, limitedTo }: FoundNames): Content {
  const results = matches.length === 0 ? 'No results.' : `${counted(matches.length, 'result')}.`
  if (text === '' || parseId(text) !== undefined) return results
  if (text.length < MIN_NAME_CHARACTERS)
    return `${results} Type ${MIN_NAME_CHARACTERS} characters to search the names of records.`
  if (limitedTo.length === 0) return results
  const slugs = limitedTo.map(({ slug }) => slug).join(' and ')
  return `${results} Only the newest ${MAX_COMPARED_NAMES} ${slugs} were searched.`
}
