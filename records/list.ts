/** Reads single records, and lists with the filters, sorts and pages that openapi.yaml declares.
 *  Indexes serve every query. The statements are plain SQL: knex would take three times as long to
 *  build the statements of a list as the database takes to run them. */
import type { OperationRow } from '../generated/operations.ts'
import {
  type PageQuery,
  type Position,
  readPageStart,
  refuseCursor,
  type Scalar,
  writeCursor,
} from './cursor.ts'
import { errorCode } from './database/errors.ts'
import { isOfAccount, orderOfIds } from './database/order-of-ids.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, idIn, select } from './database/statements.ts'
import { LOWEST_ID } from './ids.ts'
import { findStoredCount } from './record-counts.ts'
import { findRow, withStoredIds } from './references.ts'
import { countList, findWalk } from './walks.ts'

/** How the records of a table are read and listed. */
export interface Listing<Row, Item> {
  table: string
  /** The columns to read. By default all. */
  columns?: string[]
  fromRow(row: Row): Item
  /** SQL: lists have only the rows that meet it. */
  condition?: string
  /** By name: the filters that `columnFilter` does not cover. */
  filters?: Record<string, (value: string, scope: Scope) => Condition | Promise<Condition>>
  /** Sorts by columns that can be null: records without a value come last in both directions. */
  nullable?: string[]
  /** What `include` can embed in the records, by the name of the new field. */
  includes?: Record<string, Include>
}

export interface Include {
  /** The field of the record with an ID. */
  field: string
  /** With one statement, the values to embed by these IDs. */
  read(scope: Scope, ids: string[]): Promise<Map<unknown, unknown>>
}

export interface ListPage<Item> {
  data: Item[]
  meta: {
    current_page: number
    last_page: number
    per_page: number
    total: number
    allowed_sorts: string[]
    next_cursor: string | null
    complete_until: string | null
  }
}

/** `forUpdate` locks the record until the transaction ends. */
export async function findRecord<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  id: string,
  { forUpdate, include }: { forUpdate?: boolean; include?: string[] } = {},
): Promise<Item | undefined> {
  const row = await findRow<Row>(scope, listing.table, id, { forUpdate })
  if (row === undefined) return undefined
  const [item] = await embed(scope, listing, [listing.fromRow(row)], include)
  return item
}

/** Adds the fields that `names` asks for. A record whose reference is null does not get the field. */
async function embed<Row, Item>(
  scope: Scope,
  { includes = {} }: Listing<Row, Item>,
  items: Item[],
  names: string[] = [],
): Promise<Item[]> {
  const embedded = await Promise.all(
    names.map(async (name) => {
      const { field, read } = includes[name] as Include
      const idOf = (item: Item): unknown => item[field as keyof Item]
      const ids = new Set(items.map(idOf).filter((id) => id !== null))
      const values = ids.size === 0 ? new Map() : await read(scope, [...ids] as string[])
      return items.map((item) => (values.has(idOf(item)) ? { [name]: values.get(idOf(item)) } : {}))
    }),
  )
  return items.map((item, index) => Object.assign({}, item, ...embedded.map((each) => each[index])))
}

/** Embeds the record that the field refers to. */
export function referred<Row extends { id: string }, Item>(
  field: string,
  { table, fromRow }: Listing<Row, Item>,
): Include {
  return {
    field,
    async read(scope, ids) {
      const { sql, bindings } = idIn(scope.dialect, ids)
      const text = `select * from ${table} where account_id = ? and ${sql}`
      const rows = await select<Row>(scope.sql, text, [scope.accountId, ...bindings])
      return new Map(rows.map((row) => [row.id, fromRow(row)]))
    },
  }
}

/** Throws `InvalidInput` on `page[after]` for a cursor of another list. */
export async function listPage<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  operation: OperationRow,
  query: PageQuery,
): Promise<ListPage<Item>> {
  const { 'page[size]': size, sort: sorts = [] } = query
  const { number, after } = readPageStart(operation, query)
  const filters = withStoredIds(filtersOf(query))
  const where = await matching(scope, listing, filters, sorts)
  const isSynchronised = 'created_from' in operation.filters
  const completeUntil = isSynchronised ? await scope.findCompleteUntil?.() : undefined
  const list = { table: listing.table, filters, where, sorts, size }
  const walk = await findWalk(scope, list, number > 1 && after === undefined)
  const counting = countList(scope, list, walk)
  const start = after ?? walk?.starts.get(number)
  const count =
    start === undefined && number > 1 ? findStoredCount(scope, listing.table, filters) : undefined
  const [total, rows] = await Promise.all([
    counting,
    // One row more than the page has: whether there is a next page does not depend on the count,
    // which may be of another moment.
    selectRows(scope, listing, {
      where,
      sorts,
      after: start,
      limit: size + 1,
      offset: (number - 1) * size,
      stored: count && { count, total: await counting },
      isLate: isSynchronised && sorts.length === 0 && Object.keys(filters).some(isLowerBound),
    }),
  ])
  const onPage = rows.slice(0, size)
  const last = rows.length > size ? onPage.at(-1) : undefined
  const position = last && valuesOf(last, sorts.map(fieldOf))
  const cursor = position && writeCursor(operation, query, { page: number, ...position })
  // The number in a cursor may be that of another page meanwhile.
  if (position && after === undefined) walk?.starts.set(number + 1, position)
  return {
    data: await embed(scope, listing, onPage.map(listing.fromRow), query.include),
    meta: {
      ...pageMeta(operation, { number, size, total, cursor }),
      complete_until: toNullableTimestamp(completeUntil ?? null),
    },
  }
}

function columnsOf<Row, Item>({ table, columns = ['*'] }: Listing<Row, Item>): string {
  return columns.map((name) => `${table}.${name}`).join(', ')
}

export function pageMeta(
  { sorts }: OperationRow,
  page: { number: number; size: number; total: number; cursor: string | undefined },
): ListPage<never>['meta'] {
  const { number, size, total, cursor = null } = page
  return {
    current_page: number,
    last_page: Math.max(1, Math.ceil(total / size)),
    per_page: size,
    total,
    allowed_sorts: [...sorts],
    next_cursor: cursor,
    complete_until: null,
  }
}

interface RowSelection {
  where: Condition
  sorts: string[]
  limit: number
  /** Selects the rows after this one. */
  after: Pick<Position, 'values' | 'id'> | undefined
  /** Without `after`: the number of rows to skip. */
  offset: number
  /** The number of matching rows, also as SQL. Undefined: it is not stored. */
  stored: { total: number; count: Condition } | undefined
  /** Without sorts: whether the rows may be the last ones of the order. IDs increase with time. */
  isLate: boolean
}

function isLowerBound(filter: string): boolean {
  return /^(created|updated)_(after|from)$/.test(filter)
}

async function selectRows<Row, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  selection: RowSelection,
): Promise<Row[]> {
  const { accountId, dialect, sql } = scope
  const { table } = listing
  const { where, sorts, limit, after, offset, isLate } = selection
  const orderBy = `order by ${order(listing, sorts)}`
  const text = (condition: string): string =>
    `select ${columnsOf(listing)} from ${table} where ${condition} ${orderBy} limit ?`
  if (after === undefined && isLate && dialect === 'postgres') {
    // PostgreSQL expects matches everywhere in the order, and would read all rows before the first one.
    // With `offset 0`, it finds the IDs of all matches by the index of the time, and sorts them.
    const ids = `select ${table}.id from (select * from ${table} where ${where.sql} offset 0) as ${table}
      order by ${table}.id limit ? offset ?`
    const condition = `${table}.account_id = ? and ${table}.id in (${ids})`
    return select(sql, text(condition), [accountId, ...where.bindings, limit, offset, limit])
  }
  if (after === undefined && offset === 0)
    return select(sql, text(where.sql), [...where.bindings, limit])
  if (after === undefined) return skipRows(scope, listing, selection)
  const rows: Row[] = []
  for (const range of rangesAfter(listing, sorts, after)) {
    if (rows.length === limit) break
    const { sql: condition, bindings } = allOf(where, range)
    const values = [...bindings, limit - rows.length]
    rows.push(...(await select<Row>(sql, text(condition), values).catch(toInvalidCursor)))
  }
  return rows
}

/** Skips entries of an index, which takes a tenth of the time of skipping rows. */
async function skipRows<Row, Item>(
  { accountId, sql }: Scope,
  listing: Listing<Row, Item>,
  { where, sorts, limit, offset, stored }: RowSelection,
): Promise<Row[]> {
  const { table } = listing
  const orderBy = order(listing, sorts)
  const skip = (from: Condition, direction: string, ...limitAndOffset: number[]): Promise<Row[]> =>
    // With a `cross join`, SQLite begins with the IDs.
    select(
      sql,
      `select ${columnsOf(listing)}
       from (select ${table}.id from ${table} where ${from.sql} order by ${direction} limit ? offset ?) as page
       cross join ${table}
       where ${table}.account_id = ? and ${table}.id = page.id order by ${orderBy}`,
      [...from.bindings, ...limitAndOffset, accountId],
    )
  const left = (stored?.total ?? Number.POSITIVE_INFINITY) - offset
  if (left <= 0) return []
  if (stored !== undefined && left < offset) {
    // The page is nearer to the last row, and is read backwards from there. Selects nothing if the total has changed
    // meanwhile, which would shift the page.
    const isTotal = `(${stored.count.sql}) = ?`
    const same = allOf(where, { sql: isTotal, bindings: [...stored.count.bindings, stored.total] })
    const fromEnd = order(listing, sorts, true)
    const rows = await skip(same, fromEnd, Math.min(limit, left), Math.max(0, left - limit))
    if (rows.length > 0) return rows
  }
  return skip(where, orderBy, limit, offset)
}

/** The conditions for the rows after the position, in the order of the list. Each selects a range of
 *  the sort's index. One condition with `or` would read the index from its start. */
function rangesAfter<Row, Item>(
  listing: Listing<Row, Item>,
  sorts: string[],
  { values, id }: Pick<Position, 'values' | 'id'>,
): Condition[] {
  const { table, nullable = [] } = listing
  const [sort, ...others] = sorts
  const [value = null, ...otherValues] = values
  const operator = directionOf(sort) === 'asc' ? '>' : '<'
  const afterId = { sql: `${table}.id ${operator} ?`, bindings: [id] }
  if (sort === undefined || fieldOf(sort) === 'id') return [afterId]
  const name = column(table, fieldOf(sort))
  const isNull = { sql: `${name} is null`, bindings: [] }
  // Equal values are sorted by ID in the direction of the last sort.
  const isLast = others.length === 0
  const further = isLast ? [afterId] : rangesAfter(listing, others, { values: otherValues, id })
  if (value === null) return further.map((range) => allOf(isNull, range))
  const isEqual = { sql: `${name} = ?`, bindings: [value] }
  const ranges = isLast
    ? [{ sql: `(${name}, ${table}.id) ${operator} (?, ?)`, bindings: [value, id] }]
    : [
        ...further.map((range) => allOf(isEqual, range)),
        { sql: `${name} ${operator} ?`, bindings: [value] },
      ]
  return nullable.includes(fieldOf(sort)) ? [...ranges, isNull] : ranges
}

/** Only a forged cursor has values that do not fit their columns. PostgreSQL refuses these with an
 *  error of the class 22, data exceptions. SQLite compares values of any type. */
function toInvalidCursor(error: unknown): never {
  if (/^22/.test(errorCode(error))) return refuseCursor()
  throw error
}

function valuesOf(row: unknown, fields: string[]): Pick<Position, 'values' | 'id'> {
  const values = row as Record<string, Scalar> & { id: string }
  return { values: fields.map((field) => values[field] ?? null), id: values.id }
}

/** All matching records in batches, oldest first. Memory does not grow with their number. */
export async function* eachBatch<Row extends { id: string }, Item>(
  scope: Scope,
  listing: Listing<Row, Item>,
  filters: Record<string, unknown>,
  size: number,
): AsyncGenerator<Item[]> {
  const { table, fromRow } = listing
  const where = await matching(scope, listing, withStoredIds(filters), [])
  const text = `select ${table}.* from ${table}
    where ${where.sql} and ${table}.id > ?
    order by ${order(listing, [])}
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
export function filtersOf(query: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
      return filter === undefined ? [] : [[filter, value]]
    }),
  )
}

/** SQL: the rows of a list. */
export async function matching<Row, Item>(
  scope: Scope,
  { table, filters = {}, condition }: Listing<Row, Item>,
  input: Record<string, unknown>,
  sorts: string[],
): Promise<Condition> {
  const conditions = await Promise.all(
    Object.entries(input).map(
      ([name, value]) => filters[name]?.(String(value), scope) ?? columnFilter(table, name, value),
    ),
  )
  // SQLite would read all records of the account in the order of the list. The plus hides its indexes.
  const hidden = conditions.some(({ isSelective }) => isSelective) ? '+' : ''
  const isInOrderOfIds = conditions.length === 0 && sorts.every((sort) => fieldOf(sort) === 'id')
  return allOf(
    isInOrderOfIds
      ? isOfAccount(scope, table)
      : { sql: `${hidden}${table}.account_id = ?`, bindings: [scope.accountId] },
    ...(condition === undefined ? [] : [{ sql: condition, bindings: [] }]),
    ...conditions,
  )
}

function allOf(...conditions: Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => sql).join(' and '),
    bindings: conditions.flatMap(({ bindings }) => bindings),
  }
}

/** By the end of a filter's name. */
const BOUNDS: Record<string, string> = { after: '>', before: '<', from: '>=', until: '<' }

/** `created_after` → `created_at > ?`, `status` → `status in (?)`, and null → `is null`. */
function columnFilter(table: string, name: string, value: unknown): Condition {
  const [, time, bound = ''] = /^(.+)_(after|before|from|until)$/.exec(name) ?? []
  if (time !== undefined)
    return {
      sql: `${column(table, `${time}_at`)} ${BOUNDS[bound]} ?`,
      bindings: [bound === 'after' ? toMillis(String(value)) : toMillisAbove(String(value))],
    }
  if (value === null) return { sql: `${column(table, name)} is null`, bindings: [] }
  const values: string[] = Array.isArray(value) ? value : [value]
  return {
    sql: `${column(table, name)} in (${values.map(() => '?').join(', ')})`,
    bindings: values,
  }
}

function order<Row, Item>(
  { table, nullable = [] }: Listing<Row, Item>,
  sorts: string[],
  isReversed = false,
): string {
  // SQLite would sort the rows again for a second term with the ID.
  const others = sorts.filter((sort) => fieldOf(sort) !== 'id')
  const terms = others.map((sort) => {
    const field = fieldOf(sort)
    const nulls = nullable.includes(field) ? ` nulls ${isReversed ? 'first' : 'last'}` : ''
    return `${column(table, field)} ${directionOf(sort, isReversed)}${nulls}`
  })
  // Ties are sorted by ID in the direction of the last field, as in the index.
  const direction = directionOf(sorts.at(-1), isReversed)
  return terms.length === 0
    ? orderOfIds(table, direction)
    : [...terms, `${table}.id ${direction}`].join(', ')
}

function fieldOf(sort: string): string {
  return sort.replace(/^-/, '')
}

function directionOf(sort: string | undefined, isReversed = false): 'asc' | 'desc' {
  return (sort?.startsWith('-') ?? false) === isReversed ? 'asc' : 'desc'
}

/** Names come from the contract and were validated. The check keeps anything else out of the
 *  statement. */
function column(table: string, name: string): string {
  if (!/^[a-z_]+$/.test(name)) throw new Error(`${name} is not a column name`)
  return `${table}.${name}`
}

/** Epoch milliseconds of a validated RFC 3339 time. */
export function toMillis(time: string): number {
  return Date.parse(time)
}

/** Like `toMillis`, but rounds up: a millisecond is before a time within it. */
function toMillisAbove(time: string): number {
  return toMillis(time) + (/\.\d{3}\d*[1-9]/.test(time) ? 1 : 0)
}

/** RFC 3339 in UTC with milliseconds. */
export function toTimestamp(millis: number): string {
  return new Date(millis).toISOString()
}

export function toNullableTimestamp(millis: number | null): string | null {
  return millis === null ? null : toTimestamp(millis)
}
