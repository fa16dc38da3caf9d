/** IDs, filters and pages of lists, as written in URLs. */
import { validate as isUuid } from 'uuid'

/** The ID in lower case. Undefined if the text is no UUID. */
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

/** `found` are up to `size` + 1 items next to the cursor, newest first. The page leaves out the
 *  additional item, which only tells that there are more. It is the first item if the cursor is
 *  `newerThan`, and the last one otherwise. */
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
