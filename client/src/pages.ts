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

/** Filters, `sort`, `page[size]`, and the `page[number]` to start from. */
export type ListParameters<Path extends ListPath> = NonNullable<
  paths[Path]['get']['parameters']['query']
>

export type ResultPage<Path extends ListPath> =
  paths[Path]['get']['responses'][200]['content']['application/json']

export type ListedRecord<Path extends ListPath> = ResultPage<Path>['data'][number]

interface AnyPage {
  data: unknown[]
  meta: { current_page: number; last_page: number }
}

/** The largest page that the service returns. */
const MAX_PAGE_SIZE = 100

/** Fetches each page when the caller asks for it. */
export async function* walk<P extends AnyPage>(
  fetchPage: (query: Record<string, unknown>) => Promise<P>,
  query: Record<string, unknown> = {},
): AsyncGenerator<P, void, undefined> {
  for (let number = Number(query['page[number]'] ?? 1); ; number++) {
    const page = await fetchPage({ 'page[size]': MAX_PAGE_SIZE, ...query, 'page[number]': number })
    yield page
    if (page.meta.current_page >= page.meta.last_page) return
  }
}
