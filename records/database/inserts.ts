import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

/** Rows of one table with the same columns. */
export interface Insert {
  table: string
  columns: string[]
  rows: Record<string, unknown>[]
  /** Returns the error to throw in place of the database's. */
  translate?: (error: unknown) => unknown
}

/** A statement as pg takes it. */
export interface NamedStatement {
  text: string
  values: unknown[]
  /** With a name, PostgreSQL plans the statement once per connection. */
  name?: string
}

/** Once this many rows are collected, the inserts do not wait for the next statement. */
const MANY_ROWS = 500
/** Statements with up to this many rows are frequent, so they get a name. */
const MAX_NAMED_ROWS = 8

/** Inserts of a transaction on PostgreSQL that were not sent yet. */
export class CollectedInserts {
  #inserts: Insert[] = []

  /** Adds the rows to an earlier insert into the same columns: PostgreSQL plans one insert of many
   *  rows faster than many inserts. Returns whether the inserts are to be sent now. */
  add(insert: Insert): boolean {
    const earlier = this.#inserts.find((other) => hasSameTarget(other, insert))
    if (earlier) earlier.rows.push(...insert.rows)
    else this.#inserts.push({ ...insert, rows: [...insert.rows] })
    return countRows(this.#inserts) >= MANY_ROWS
  }

  take(): Insert[] {
    const inserts = this.#inserts
    this.#inserts = []
    return inserts
  }
}

/** All inserts into a table translate its errors in the same way. */
function hasSameTarget(one: Insert, other: Insert): boolean {
  return one.table === other.table && isDeepStrictEqual(one.columns, other.columns)
}

/** One statement for all inserts: PostgreSQL runs it faster than a statement for each. */
export function combineInserts(inserts: Insert[]): NamedStatement {
  const texts = inserts.map(({ table, columns, rows }) => insertText(table, columns, rows.length))
  const last = texts.pop() ?? ''
  const others = texts.map((text, index) => `insert_${index} as (${text})`)
  const text = toNumbered(others.length > 0 ? `with ${others.join(', ')} ${last}` : last)
  const values = inserts.flatMap(({ columns, rows }) =>
    rows.flatMap((row) => columns.map((column) => row[column])),
  )
  return countRows(inserts) <= MAX_NAMED_ROWS
    ? { name: hash('sha1', text), text, values }
    : { text, values }
}

/** Replaces each `?` by `$1`, `$2` and so on, as PostgreSQL wants it. */
export function toNumbered(text: string): string {
  let number = 0
  return text.replaceAll('?', () => `$${++number}`)
}

function countRows(inserts: Insert[]): number {
  return inserts.reduce((total, { rows }) => total + rows.length, 0)
}

/** knex's own insert for SQLite has one select per row, which takes 20 % more CPU. */
export function insertText(table: string, columns: string[], rowCount: number): string {
  const names = columns.map((column) => `"${column}"`).join(',')
  const row = `(${columns.map(() => '?').join(',')})`
  return `insert into ${table} (${names}) values ${new Array(rowCount).fill(row).join(',')}`
}
