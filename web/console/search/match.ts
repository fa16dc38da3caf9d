import { foldText } from '../../../records/search.ts'

/** A result of the search. */
export interface Match {
  /** Below /console, or a path that begins with /docs. */
  to: string
  title: string
  /** Tells it apart from others with the same title. */
  detail?: string
  /** For example `Webhook`. */
  kind: string
}

/** Whether `text` contains every word of the query, in any order and ignoring case. */
export function hasWords(text: string, query: string): boolean {
  const folded = foldText(text)
  return foldText(query)
    .split(/\s+/)
    .every((word) => folded.includes(word))
}
