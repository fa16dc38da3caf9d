import type { paths } from '../../generated/openapi.ts'

interface List {
  get: {
    parameters: { query?: object }
    responses: { 200: { content: { 'application/json': { data: unknown[]; meta: object } } } }
  }
}

/** The paths that answer with pages of records. */
export type ListPath = {
  [Path in keyof paths]: paths[Path] extends List ? Path : never
}[keyof paths]

/** Filters, `sort` and `page[size]`. With `page[number]` it begins there. */
export type ListQuery<Path extends ListPath> = NonNullable<
  paths[Path]['get']['parameters']['query']
>

export type Page<Path extends ListPath> =
  paths[Path]['get']['responses'][200]['content']['application/json']

export type RecordOf<Path extends ListPath> = Page<Path>['data'][number]

interface AnyPage {
  data: unknown[]
  meta: { current_page: number; last_page: number }
}

/** As many as the service gives: fewer requests. */
const LARGEST_PAGE = 100

/** One page after the other, each fetched when it is asked for. */
export async function* walk<P extends AnyPage>(
  fetchPage: (query: Record<string, unknown>) => Promise<P>,
  query: Record<string, unknown> = {},
): AsyncGenerator<P, void, undefined> {
  for (let number = Number(query['page[number]'] ?? 1); ; number++) {
    const page = await fetchPage({ 'page[size]': LARGEST_PAGE, ...query, 'page[number]': number })
    yield page
    if (page.meta.current_page >= page.meta.last_page) return
  }
}
