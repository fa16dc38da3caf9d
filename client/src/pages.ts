import type { paths } from '../../generated/openapi.ts'

interface List {
  get: {
    parameters: { query?: object }
    responses: { 200: { content: { 'application/json': { data: unknown[]; meta: object } } } }
  }
}

/** The paths that respond with pages of records. */
export type ListPath = {
  [Path in keyof paths]: paths[Path] extends List ? Path : never
}[keyof paths]

/** Filters, `sort`, `page[size]`, and the `page[number]` or the `page[after]` to start from. */
export type ListParameters<Path extends ListPath> = NonNullable<
  paths[Path]['get']['parameters']['query']
>

export type ResultPage<Path extends ListPath> =
  paths[Path]['get']['responses'][200]['content']['application/json']

export type ListedRecord<Path extends ListPath> = ResultPage<Path>['data'][number]

interface AnyPage {
  data: unknown[]
  meta: { next_cursor: string | null }
}

/** The largest page that the service returns. */
const MAX_PAGE_SIZE = 100

/** Fetches each page when the caller asks for it. Walks by cursor, so that changes during the walk
 *  neither hide nor repeat other records. */
export async function* walk<P extends AnyPage>(
  fetchPage: (query: Record<string, unknown>) => Promise<P>,
  query: Record<string, unknown> = {},
): AsyncGenerator<P, void, undefined> {
  for (let next = query; ; ) {
    const page = await fetchPage({ 'page[size]': MAX_PAGE_SIZE, ...next })
    yield page
    const { next_cursor } = page.meta
    if (next_cursor === null) return
    // Otherwise the walk would read the first page again and again.
    if (next_cursor === undefined)
      throw new Error('The service is older than this client: its lists have no next_cursor.')
    next = { ...query, 'page[number]': undefined, 'page[after]': next_cursor }
  }
}
