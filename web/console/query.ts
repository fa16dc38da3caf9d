/** IDs, filters and pages of lists, as written in URLs. */
import { validate as isUuid } from 'uuid'

/** In lower case. Undefined for any other text. */
export function parseId(text: string | null | undefined): string | undefined {
  return text && isUuid(text) ? text.toLowerCase() : undefined
}

/** The path with a query. Leaves out empty values. */
export function withQuery(path: string, values: Record<string, string | undefined>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value)
  return query.size > 0 ? `${path}?${query}` : path
}

export interface ListPage<T> {
  items: T[]
  hasNewer: boolean
  hasOlder: boolean
}

/** `found` are the entries next to the cursor, newest first: up to `size`, and one more if the list
 *  goes on behind them. That one is the last, or with the cursor `newerThan` the first. */
export function toListPage<T>(
  found: T[],
  size: number,
  { olderThan, newerThan }: { olderThan?: unknown; newerThan?: unknown },
): ListPage<T> {
  const hasMore = found.length > size
  return newerThan === undefined
    ? { items: found.slice(0, size), hasNewer: olderThan !== undefined, hasOlder: hasMore }
    : { items: found.slice(-size), hasNewer: hasMore, hasOlder: true }
}
