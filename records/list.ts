/** Reads single records, and lists with the filters, sorts and pages that openapi.yaml declares.
 *  Indexes serve every query. The statements are plain SQL: knex would take three times as long to
 *  build the statements of a list as the database takes to run them. */
import type { OperationRow } from '../generated/operations.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'
import { LOWEST_ID } from './ids.ts'
import { findRow, withStoredIds } from './references.ts'

/** How the records of a table are read and listed. */
export interface Listing<Row, Item> {
  table: string
  fromRow(row: Row): Item
  /** By name: the filters that `columnFilter` does not cover. */
  filters?: Record<string, (value: string, scope: Scope) => Condition>
  /** Sorts by columns that can be null: records without a value come last in both directions. */
  nullable?: string[]
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

/** `forUpdate` locks the record until the transaction ends. */
export async function findRecord<Row, Item>(
  scope: Scope,
  { table, fromRow }: Listing<Row, Item>,
  id: string,
  options?: { forUpdate: boolean },
): Promise<Item | undefined> {
  const row = await findRow<Row>(scope, table, id, options)
  return row && fromRow(row)
}

/** A validated query of a list operation. */
type PageQuery = { 'page[number]': number; 'page[size]': number; sort?: string[] } & {
  [filter: string]: unknown
}

export async function listPage<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  operation: OperationRow,
  query: PageQuery,
): Promise<ListPage<Item>> {
  const { 'page[number]': number, 'page[size]': size } = query
  const filters = filtersOf(query)
  const where = matching(scope, listing, filters)
  // Only the unfiltered count is a named statement, whose plan PostgreSQL keeps per connection. A
  // plan that returns rows would fail after a migration that changes the columns.
  const name = Object.keys(filters).length === 0 ? `count_${listing.table}` : undefined
  const [[counted], rows] = await Promise.all([
    select<{ total: number }>(
      scope.sql,
      `select count(*) as total from ${listing.table} where ${where.sql}`,
      where.bindings,
      name,
    ),
    select<Row>(
      scope.sql,
      `select ${listing.table}.* from ${listing.table}
       where ${where.sql}
       order by ${order(listing, query.sort ?? [])}
       limit ? offset ?`,
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
  { sorts }: OperationRow,
): ListPage<never>['meta'] {
  return {
    current_page: number,
    last_page: Math.max(1, Math.ceil(total / size)),
    per_page: size,
    total,
    allowed_sorts: [...sorts],
  }
}

/** All matching records in batches, oldest first. Memory does not grow with their number. */
export async function* eachBatch<Row extends { id: string }, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  filters: Record<string, unknown>,
  size: number,
): AsyncGenerator<Item[]> {
  const { table, fromRow } = listing
  const where = matching(scope, listing, filters)
  const text = `select ${table}.* from ${table}
    where ${where.sql} and ${table}.id > ?
    order by ${table}.id
    limit ?`
  for (let after = LOWEST_ID; ; ) {
    const rows = await select<Row>(scope.sql, text, [...where.bindings, after, size])
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
  input: Record<string, unknown>,
): Condition {
  const conditions = Object.entries(withStoredIds(input)).map(
    ([name, value]) => filters[name]?.(String(value), scope) ?? columnFilter(table, name, value),
  )
  return {
    sql: [`${table}.account_id = ?`, ...conditions.map(({ sql }) => sql)].join(' and '),
    bindings: [scope.accountId, ...conditions.flatMap(({ bindings }) => bindings)],
  }
}

/** `created_after` → `created_at > ?`, and `status` → `status in (?)`. */
function columnFilter(table: string, name: string, value: unknown): Condition {
  const [, time, bound] = /^(.+)_(after|before)$/.exec(name) ?? []
  if (time !== undefined)
    return {
      sql: `${column(table, `${time}_at`)} ${bound === 'after' ? '>' : '<'} ?`,
      bindings: [toMillis(String(value))],
    }
  const values: string[] = Array.isArray(value) ? value : [value]
  return {
    sql: `${column(table, name)} in (${values.map(() => '?').join(', ')})`,
    bindings: values,
  }
}

function order<Row, Item>({ table, nullable = [] }: Listing<Row, Item>, sorts: string[]): string {
  const terms = sorts.map((sort) => {
    const field = sort.replace(/^-/, '')
    const nulls = nullable.includes(field) ? ' nulls last' : ''
    return `${column(table, field)} ${directionOf(sort)}${nulls}`
  })
  // Ties are sorted by ID in the direction of the last field, as in the index.
  return [...terms, `${table}.id ${directionOf(sorts.at(-1))}`].join(', ')
}

function directionOf(sort: string | undefined): string {
  return sort?.startsWith('-') ? 'desc' : 'asc'
}

/** Names come from the contract and were validated. The check keeps anything else out of the
 *  statement. */
function column(table: string, name: string): string {
  if (!/^[a-z_]+$/.test(name)) throw new Error(`${name} is not a column name`)
  return `${table}.${name}`
}

/** A case-insensitive substring search. The column contains text that `foldText` has normalised. */
export function containing(name: string, text: string): Condition {
  return {
    sql: `${name} like ? escape '\\'`,
    bindings: [`%${foldText(text).replace(/[\\%_]/g, '\\$&')}%`],
  }
}

/** Folds case and normalises Unicode, so that ß equals SS, ς equals σ, and é equals e with a
 *  combining accent. */
export function foldText(text: string): string {
  return text.normalize('NFC').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}

/** Epoch milliseconds of a validated RFC 3339 time. */
export function toMillis(time: string): number {
  return Date.parse(time)
}

/** RFC 3339 in UTC with milliseconds. */
export function toTimestamp(millis: number): string {
  return new Date(millis).toISOString()
}

export function toNullableTimestamp(millis: number | null): string | null {
  return millis === null ? null : toTimestamp(millis)
}
