/** Searches the texts of records. The column `search_text` of a table contains text that `foldText`
 *  has normalised. The index `<table>_search` finds texts by their trigrams, which are all parts of
 *  three characters: see records/migrations/search-index.ts. */
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'

/** SQLite: with more candidates, the records are read in the order of the list. */
const MAX_CANDIDATES = 10_000

/** A case-insensitive substring search in the records of the table. */
export async function containing(
  { dialect, sql }: Scope,
  table: string,
  text: string,
): Promise<Condition> {
  const folded = foldText(text)
  const isContained: Condition = {
    sql: `${table}.search_text like ? escape '\\'`,
    bindings: [`%${folded.replace(/[\\%_]/g, '\\$&')}%`],
  }
  const trigrams = trigramsOf(folded)
  // PostgreSQL itself decides whether to use the index.
  if (dialect === 'postgres' || trigrams === '') return isContained
  const index = `${table}_search`
  const candidates = `select rowid from ${index} where ${index} match ?`
  // SQLite does not estimate how many rows the index finds. To look up each of many rows takes longer
  // than to read the records until the page is full.
  const [found] = await select<{ total: number }>(
    sql,
    `select count(*) as total from (${candidates} limit ?)`,
    [trigrams, MAX_CANDIDATES],
  )
  if (found?.total === MAX_CANDIDATES) return isContained
  return {
    sql: `${table}.rowid in (${candidates}) and ${isContained.sql}`,
    bindings: [trigrams, ...isContained.bindings],
    isSelective: true,
  }
}

/** A query of FTS5 for the rows that contain all trigrams of the text, in any order. Empty if the
 *  text has fewer than three characters. */
function trigramsOf(text: string): string {
  const characters = [...text]
  const trigrams = characters.slice(2).map((last, index) => {
    const trigram = characters.slice(index, index + 2).join('') + last
    return `"${trigram.replaceAll('"', '""')}"`
  })
  return [...new Set(trigrams)].join(' AND ')
}

/** Folds case and normalises Unicode, so that ß equals SS, ς equals σ, and é equals e with a
 *  combining accent. */
export function foldText(text: string): string {
  return text.normalize('NFC').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}
