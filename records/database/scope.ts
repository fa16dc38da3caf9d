import { hash } from 'node:crypto'
import type { Knex } from 'knex'
import type { Dialect } from './open.ts'
import { insertText, runInOrder, type Sql } from './statements.ts'
import type { Trx } from './transaction.ts'

const MAX_INSERTED_ROWS = 500
/** SQLite accepts 32,766 in a statement. */
const MAX_VARIABLES = 30_000
/** PostgreSQL plans inserts of up to this many rows once per connection: they are frequent. */
const MAX_NAMED_INSERT_ROWS = 8

async function insertRows(
  sql: Sql,
  table: string,
  columns: string[],
  rows: Record<string, unknown>[],
): Promise<void> {
  const values = rows.flatMap((row) => columns.map((column) => row[column]))
  const text = insertText(table, columns, rows.length)
  const insert = sql.raw(text, values as Knex.RawBinding[])
  await (rows.length <= MAX_NAMED_INSERT_ROWS
    ? insert.options({ name: hash('sha1', text) })
    : insert)
}

/** All that a query of one account may use. Handlers get a scope and never a connection, so they cannot
 *  write a query without the account. */
export interface Scope {
  accountId: string
  dialect: Dialect
  sql: Sql
  /** A query on the account's rows of a table. */
  rows(table: string): Knex.QueryBuilder
  /** Adds the account ID to the rows. */
  insert(table: string, rows: Record<string, unknown> | Record<string, unknown>[]): Promise<void>
}

export function accountScope(source: { dialect: Dialect; sql: Sql }, accountId: string): Scope {
  const { dialect, sql } = source
  return {
    accountId,
    dialect,
    sql,
    rows: (table) => sql(table).where(`${table}.account_id`, accountId),
    async insert(table, rows) {
      const own = (Array.isArray(rows) ? rows : [rows]).map((row) => ({
        ...row,
        account_id: accountId,
      }))
      const columns = Object.keys(own[0] ?? {})
      const size = Math.min(
        MAX_INSERTED_ROWS,
        Math.max(1, Math.floor(MAX_VARIABLES / columns.length)),
      )
      const inserts: (() => Promise<void>)[] = []
      for (let from = 0; from < own.length; from += size)
        inserts.push(() => insertRows(sql, table, columns, own.slice(from, from + size)))
      await runInOrder(source, ...inserts)
    },
  }
}

/** The scope of an account in a transaction. */
export interface WriteScope extends Scope {
  trx: Trx
  /** The trace of the request, as in the header. */
  traceparent?: string
}

export function writeScope(trx: Trx, accountId: string, traceparent?: string): WriteScope {
  return { ...accountScope(trx, accountId), trx, traceparent }
}
