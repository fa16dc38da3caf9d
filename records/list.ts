/** Lists: filters, sorts and pages as openapi.yaml declares them, in SQL that the indexes serve. */
import type { Knex } from 'knex'
import type { Operation } from '../generated/operations.ts'
import type { Scope } from './db.ts'
import { InvalidInput } from './invalid-input.ts'
import { withStoredIds } from './references.ts'

/** How a table is listed. */
export interface Listing<Row, Item> {
  table: string
  fromRow(row: Row): Item
  /** Filters that are more than `column = value`, `column in (values)`, `*_after` and `*_before`. */
  filters?: Record<string, (query: Knex.QueryBuilder, value: string, scope: Scope) => void>
  /** Columns that may be null: there the records without a value come last, in both directions. */
  nullable?: string[]
}

export interface Page<Item> {
  data: Item[]
  meta: { current_page: number; last_page: number; per_page: number; total: number; allowed_sorts: string[] }
}

/** A validated query of a list operation. */
export type ListQuery = { 'page[number]': number; 'page[size]': number; sort?: string[] } & { [filter: string]: unknown }

/** One page. Throws InvalidInput for a sort that names a field twice. */
export async function listPage<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  operation: Operation,
  query: ListQuery,
): Promise<Page<Item>> {
  const { 'page[number]': number, 'page[size]': size } = query
  const rows = matching(scope, listing, filtersOf(query))
  const page = sorted(rows.clone(), listing, query.sort ?? [])
    .limit(size)
    .offset((number - 1) * size)
  const [counted, found] = await Promise.all([rows.count({ total: '*' }), page.select(`${listing.table}.*`)])
  const total = Number((counted as { total: number }[])[0]?.total ?? 0)
  return {
    data: (found as Row[]).map(listing.fromRow),
    meta: pageMeta(number, size, total, operation),
  }
}

export function pageMeta(number: number, size: number, total: number, { sorts }: Operation): Page<never>['meta'] {
  return { current_page: number, last_page: Math.max(1, Math.ceil(total / size)), per_page: size, total, allowed_sorts: [...sorts] }
}

/** All matching records in the order of their creation, a batch at a time: memory does not grow with their number. */
export async function* eachBatch<Row extends { id: string }, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  filters: Record<string, unknown>,
  size: number,
): AsyncGenerator<Item[]> {
  for (let after = ''; ; ) {
    const query = matching(scope, listing, filters).orderBy(`${listing.table}.id`).limit(size)
    if (after !== '') query.where(`${listing.table}.id`, '>', after)
    const rows = (await query.select(`${listing.table}.*`)) as Row[]
    if (rows.length > 0) yield rows.map(listing.fromRow)
    const last = rows.at(-1)
    if (last === undefined || rows.length < size) return
    after = last.id
  }
}

/** `filter[status]` → `status`. */
function filtersOf(query: ListQuery): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
      return filter === undefined ? [] : [[filter, value]]
    }),
  )
}

function matching<Row, Item>(scope: Scope, { table, filters = {} }: Listing<Row, Item>, given: Record<string, unknown>): Knex.QueryBuilder {
  const query = scope.rows(table)
  for (const [name, value] of Object.entries(withStoredIds(given))) {
    const special = filters[name]
    const time = /^(.+)_(after|before)$/.exec(name)
    if (special) special(query, String(value), scope)
    else if (time) query.where(`${table}.${time[1]}_at`, time[2] === 'after' ? '>' : '<', toMillis(String(value)))
    else if (Array.isArray(value)) query.whereIn(`${table}.${name}`, value)
    else query.where(`${table}.${name}`, value as string)
  }
  return query
}

function sorted<Row, Item>(query: Knex.QueryBuilder, { table, nullable = [] }: Listing<Row, Item>, sorts: string[]): Knex.QueryBuilder {
  const fields = sorts.map((sort) => sort.replace(/^-/, ''))
  if (new Set(fields).size < fields.length) throw new InvalidInput({ sort: ['must not name a field twice.'] })
  for (const [index, field] of fields.entries()) {
    const direction = sorts[index]?.startsWith('-') ? 'desc' : 'asc'
    query.orderByRaw(`?? ${direction}${nullable.includes(field) ? ' nulls last' : ''}`, [`${table}.${field}`])
  }
  // Ties by id, in the direction of the last field, which is that of the index.
  return query.orderBy(`${table}.id`, sorts.at(-1)?.startsWith('-') ? 'desc' : 'asc')
}

/** A `like` that contains the text, whatever its case. The column holds what `folded` makes of the searchable text. */
export function containing(query: Knex.QueryBuilder, column: string, text: string): void {
  query.whereRaw(`?? like ? escape '\\'`, [column, `%${folded(text).replace(/[\\%_]/g, '\\$&')}%`])
}

/** Text without its case and its Unicode form: ß is SS, Σ is σ wherever it stands, and é is é whether it is one character or two. */
export function folded(text: string): string {
  return text.normalize('NFC').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}

/** Epoch milliseconds of an RFC 3339 time that was validated. */
export function toMillis(time: string): number {
  return Date.parse(time)
}

let last = { millis: Number.NaN, text: '' }

/** RFC 3339 in UTC with milliseconds. */
export function toTimestamp(millis: number): string {
  // Most records have been made and never changed: one text for both of their times.
  if (millis !== last.millis) last = { millis, text: new Date(millis).toISOString() }
  return last.text
}

export function toNullableTimestamp(millis: number | null): string | null {
  return millis === null ? null : toTimestamp(millis)
}
