/** Lists: filters, sorts and pages as openapi.yaml declares them, in SQL that the indexes serve. */

import { InvalidInput } from '../errors.ts'
import type { Operation } from '../generated/operations.ts'
import type { Scope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { withStoredIds } from './references.ts'

/** How a table is listed. */
export interface Listing<Row, Item> {
  table: string
  fromRow(row: Row): Item
  /** Filters that are more than `column = value`, `column in (values)`, `*_after` and `*_before`. */
  filters?: Record<string, (value: string, scope: Scope) => Condition>
  /** Columns that may be null: there the records without a value come last, in both directions. */
  nullable?: string[]
}

/** Part of a statement, and the values of its question marks. Plain text, because knex takes three times as long to build a list's two
 *  statements as the database takes to answer them. */
export interface Condition {
  sql: string
  bindings: (string | number)[]
}

export interface ListPage<Item> {
  data: Item[]
  meta: {
    current_page: number
    last_page: number
    per_page: number
    total: number
    allowed_sorts: string[]
  }
}

/** A validated query of a list operation. */
export type PageQuery = { 'page[number]': number; 'page[size]': number; sort?: string[] } & {
  [filter: string]: unknown
}

/** One page. Throws InvalidInput for a sort that names a field twice. */
export async function listPage<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  operation: Operation,
  query: PageQuery,
): Promise<ListPage<Item>> {
  const { 'page[number]': number, 'page[size]': size } = query
  const where = matching(scope, listing, filtersOf(query))
  // Only where no filter makes it one of many: a connection keeps the plan of each. The rows' own columns may change with a migration.
  const name = where.bindings.length === 1 ? `count_${listing.table}` : undefined
  const [[counted], rows] = await Promise.all([
    select<{ total: number }>(
      scope.sql,
      `select count(*) as total from ${listing.table} where ${where.sql}`,
      where.bindings,
      name,
    ),
    select<Row>(
      scope.sql,
      `select ${listing.table}.* from ${listing.table} where ${where.sql} order by ${order(listing, query.sort ?? [])} limit ? offset ?`,
      [...where.bindings, size, (number - 1) * size],
    ),
  ])
  return {
    data: rows.map(listing.fromRow),
    meta: pageMeta(number, size, Number(counted?.total), operation),
  }
}

export function pageMeta(
  number: number,
  size: number,
  total: number,
  { sorts }: Operation,
): ListPage<never>['meta'] {
  return {
    current_page: number,
    last_page: Math.max(1, Math.ceil(total / size)),
    per_page: size,
    total,
    allowed_sorts: [...sorts],
  }
}

/** All matching records in the order of their creation, a batch at a time: memory does not grow with their number. */
export async function* eachBatch<Row extends { id: string }, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  filters: Record<string, unknown>,
  size: number,
): AsyncGenerator<Item[]> {
  const { table, fromRow } = listing
  const where = matching(scope, listing, filters)
  for (let after = ''; ; ) {
    const [rest, bindings] =
      after === '' ? ['', where.bindings] : [` and ${table}.id > ?`, [...where.bindings, after]]
    const text = `select ${table}.* from ${table} where ${where.sql}${rest} order by ${table}.id limit ?`
    const rows = await select<Row>(scope.sql, text, [...bindings, size])
    if (rows.length > 0) yield rows.map(fromRow)
    const last = rows.at(-1)
    if (last === undefined || rows.length < size) return
    after = last.id
  }
}

/** `filter[status]` → `status`. */
function filtersOf(query: PageQuery): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
      return filter === undefined ? [] : [[filter, value]]
    }),
  )
}

function matching<Row, Item>(
  scope: Scope,
  { table, filters = {} }: Listing<Row, Item>,
  given: Record<string, unknown>,
): Condition {
  const all = Object.entries(withStoredIds(given)).map(([name, value]) => {
    const special = filters[name]
    const time = /^(.+)_(after|before)$/.exec(name)
    if (special) return special(String(value), scope)
    if (time)
      return {
        sql: `${column(table, `${time[1]}_at`)} ${time[2] === 'after' ? '>' : '<'} ?`,
        bindings: [toMillis(String(value))],
      }
    const values: string[] = Array.isArray(value) ? value : [value]
    return {
      sql: `${column(table, name)} in (${values.map(() => '?').join(', ')})`,
      bindings: values,
    }
  })
  return {
    sql: [`${table}.account_id = ?`, ...all.map(({ sql }) => sql)].join(' and '),
    bindings: [scope.accountId, ...all.flatMap(({ bindings }) => bindings)],
  }
}

function order<Row, Item>({ table, nullable = [] }: Listing<Row, Item>, sorts: string[]): string {
  const fields = sorts.map((sort) => sort.replace(/^-/, ''))
  if (new Set(fields).size < fields.length)
    throw new InvalidInput({ sort: ['must not name a field twice.'] })
  const direction = (sort: string | undefined): string => (sort?.startsWith('-') ? 'desc' : 'asc')
  const terms = fields.map(
    (field, index) =>
      `${column(table, field)} ${direction(sorts[index])}${nullable.includes(field) ? ' nulls last' : ''}`,
  )
  // Ties by id, in the direction of the last field, which is that of the index.
  return [...terms, `${table}.id ${direction(sorts.at(-1))}`].join(', ')
}

/** Names come from the contract, and were validated; anything else must not become a part of a statement. */
function column(table: string, name: string): string {
  if (!/^[a-z_]+$/.test(name)) throw new Error(`${name} is no name of a column`)
  return `${table}.${name}`
}

/** A `like` that contains the text, whatever its case. The column holds what `folded` makes of the searchable text. */
export function containing(name: string, text: string): Condition {
  return {
    sql: `${name} like ? escape '\\'`,
    bindings: [`%${folded(text).replace(/[\\%_]/g, '\\$&')}%`],
  }
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
