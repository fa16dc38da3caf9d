/** Reading the rows of an account in the order of their IDs. */
import type { Scope } from './scope.ts'
import type { Condition } from './statements.ts'

/** A condition for the account's rows that are read in `orderOfIds` without another filter. With `account_id = ?`,
 *  PostgreSQL may choose the primary key, and read the rows of other accounts that come first. Only an index of the
 *  account has the order of account and ID that `= any` needs. */
export function isOfAccount({ accountId, dialect }: Scope, table: string): Condition {
  return dialect === 'postgres'
    ? { sql: `${table}.account_id = any (?::uuid[])`, bindings: [`{${accountId}}`] }
    : { sql: `${table}.account_id = ?`, bindings: [accountId] }
}

export const orderOfIds = (table: string, direction: 'asc' | 'desc'): string =>
  `${table}.account_id ${direction}, ${table}.id ${direction}`
