import { v7 as uuidv7 } from 'uuid'
import { accountScope, type Scope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { assertName } from './names.ts'
import { insertUser } from './users.ts'

export interface NewAccount {
  name: string
  /** The Account Owner's, like the following fields. */
  email: string
  fullName: string
  passwordHash: string
}

/** Inserts an account and its Owner. Throws `Refused` when the input is invalid or the email is taken. */
export async function insertAccount(
  trx: Trx,
  account: NewAccount,
  now: Date,
): Promise<{ accountId: string; userId: string }> {
  const accountId = uuidv7()
  const name = assertName('The account name', account.name)
  await trx
    .sql('accounts')
    .insert({ id: accountId, name, created_at: now.getTime(), updated_at: now.getTime() })
  const { email, fullName, passwordHash } = account
  const userId = await insertUser(
    accountScope(trx, accountId),
    { email, fullName, passwordHash, role: 'owner' },
    now,
  )
  return { accountId, userId }
}

/** Throws when the account does not exist. */
export async function readAccountName({ sql, accountId }: Scope): Promise<string> {
  const row: { name: string } | undefined = await sql('accounts')
    .where({ id: accountId })
    .first('name')
  if (row === undefined) throw new Error(`Account ${accountId} does not exist`)
  return row.name
}

export async function updateAccountName(scope: Scope, input: string, now: Date): Promise<void> {
  const name = assertName('The account name', input)
  await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .update({ name, updated_at: now.getTime() })
}

export async function hasAccounts(sql: Sql): Promise<boolean> {
  return (await sql('accounts').first('id')) !== undefined
}

export async function isAccount(sql: Sql, id: string): Promise<boolean> {
  return (await sql('accounts').where({ id }).first('id')) !== undefined
}

/** Oldest first. */
export async function listAccountIds(sql: Sql): Promise<string[]> {
  return sql('accounts').orderBy('id').pluck('id')
}
