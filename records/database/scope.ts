import type { Knex } from 'knex'
import type { Subscription } from '../subscriptions.ts'
import type { Db } from './open.ts'
import { type Dialect, inBatches, type Sql } from './statements.ts'
import { type Source, type Trx, transaction } from './transaction.ts'

const MAX_INSERTED_ROWS = 500
/** SQLite accepts 32,766 in a statement. */
const MAX_VARIABLES = 30_000

/** All that a query of one account may use. Handlers get a scope and never a connection. `rows`
 *  limits a query to the account. A query that uses `sql` must do so itself. */
export interface Scope {
  accountId: string
  dialect: Dialect
  sql: Sql
  /** A query on the account's rows of a table. */
  rows(table: string): Knex.QueryBuilder
  /** Records that a transaction has locked before it writes references to them: a table and an ID. */
  lockedReferences?: ReadonlySet<string>
  /** See `findCompleteUntil`. Undefined: the query may read a standby, which is behind. */
  findCompleteUntil?(): Promise<number | undefined>
}

export function accountScope({ dialect, sql }: Source, accountId: string): Scope {
  return {
    accountId,
    dialect,
    sql,
    rows: (table) => sql(table).where(`${table}.account_id`, accountId),
  }
}

/** The scope of an account outside a transaction. */
export function readScope(db: Db, accountId: string, sql: Sql = db.read): Scope {
  return accountScope({ dialect: db.dialect, sql }, accountId)
}

/** A user, with an API key or in the console. */
export interface Actor {
  userId: string
  apiKey?: { id: string }
}

/** The request that causes a change. */
export interface Origin {
  requestId: string
  ip: string
}

/** The scope of an account in a transaction. */
export interface WriteScope extends Scope {
  trx: Trx
  /** The trace of the request, as in the header `traceparent`. */
  traceparent?: string
  /** Who causes the events. Undefined: the system. */
  actor?: Actor
  /** Undefined: no request causes the events, or an earlier version received it. */
  origin?: Origin
  /** The enabled webhooks, as read when the transaction began. Undefined: they were not read. */
  subscriptions?: Subscription[]
  /** Inserts the rows with the account ID. On PostgreSQL the rows are sent later, see `Trx.insert`:
   *  an error of the insert then ends the transaction. `translate`: see `Insert`. */
  insert(
    table: string,
    rows: object | object[],
    translate?: (error: unknown) => unknown,
  ): Promise<void>
}

/** Runs `work` in one transaction of the account: see `transaction`. */
export function accountTransaction<T>(
  db: Db,
  accountId: string,
  work: (scope: WriteScope) => Promise<T>,
): Promise<T> {
  return transaction(db, (trx) => work(writeScope(trx, accountId)))
}

export function writeScope(
  trx: Trx,
  accountId: string,
  begin: Pick<WriteScope, 'traceparent' | 'actor' | 'origin' | 'subscriptions'> = {},
): WriteScope {
  return {
    ...accountScope(trx, accountId),
    ...begin,
    trx,
    async insert(table, input, translate) {
      const rows = [input].flat().map((row) => ({ ...row, account_id: accountId }))
      const columns = Object.keys(rows[0] ?? {})
      const batchRows = Math.min(MAX_INSERTED_ROWS, Math.floor(MAX_VARIABLES / columns.length))
      for (const batch of inBatches(rows, batchRows))
        await trx.insert({ table, columns, rows: batch, translate })
    },
  }
}
