import { hash } from 'node:crypto'
import type { Knex } from 'knex'
import type { Db } from './open.ts'
import { inOrder, insertText, type Sql } from './statements.ts'
import type { Trx } from './transaction.ts'

const MAX_INSERTED_ROWS = 500
/** An insert of so many comes again and again: PostgreSQL plans it once per connection. */
const FEW_ROWS = 8

async function insertRows(
  sql: Sql,
  table: string,
  columns: string[],
  rows: Record<string, unknown>[],
): Promise<void> {
  const values = rows.flatMap((row) => columns.map((column) => row[column]))
  const text = insertText(table, columns, rows.length)
  const insert = sql.raw(text, values as Knex.RawBinding[])
  await (rows.length <= FEW_ROWS ? insert.options({ name: hash('sha1', text) }) : insert)
}

/** Everything a query may touch on behalf of one account. Handlers get this and never a bare connection,
 *  so a query that forgets the account cannot be written there. */
export interface Scope {
  accountId: string
  dialect: Db['dialect']
  sql: Sql
  /** The account's rows of a table. */
  rows(table: string): Knex.QueryBuilder
  /** Inserts rows as the account's own. */
  insert(table: string, rows: Record<string, unknown> | Record<string, unknown>[]): Promise<void>
}

export function accountScope(
  source: { dialect: Db['dialect']; sql: Sql },
  accountId: string,
): Scope {
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
      // SQLite takes at most 32,766 variables in a statement.
      const size = Math.min(MAX_INSERTED_ROWS, Math.max(1, Math.floor(30_000 / columns.length)))
      const inserts: (() => Promise<void>)[] = []
      for (let from = 0; from < own.length; from += size)
        inserts.push(() => insertRows(sql, table, columns, own.slice(from, from + size)))
      await inOrder(source, ...inserts)
    },
  }
}

/** The scope of an account inside a transaction that can also make attempts due. */
export interface WriteScope extends Scope {
  trx: Trx
}

export function writeScope(trx: Trx, accountId: string): WriteScope {
  return { ...accountScope(trx, accountId), trx }
}
