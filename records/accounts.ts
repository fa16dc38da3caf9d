import { accountScope, type Scope, type WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { newId } from './ids.ts'
import { assertName } from './names.ts'
import { deleteAccountSessions } from './sessions.ts'
import { insertUser } from './users.ts'
import { updateSuspendedAt } from './webhooks.ts'

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
  const accountId = newId()
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

export interface Account {
  id: string
  name: string
  ownerEmail: string | null
  /** Epoch milliseconds, like all times of records. */
  suspendedAt: number | null
  createdAt: number
}

interface AccountRow {
  id: string
  name: string
  owner_email: string | null
  suspended_at: number | null
  created_at: number
}

function accountFromRow(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    ownerEmail: row.owner_email,
    suspendedAt: row.suspended_at,
    createdAt: row.created_at,
  }
}

const accountsWithOwners = (sql: Sql) =>
  sql('accounts')
    .leftJoin('users', (join) => join.on('users.account_id', 'accounts.id').onVal('role', 'owner'))
    .orderBy('accounts.id')
    .select(
      'accounts.id',
      'name',
      'users.email as owner_email',
      'suspended_at',
      'accounts.created_at',
    )

/** Oldest first. */
export async function listAccounts(sql: Sql): Promise<Account[]> {
  const rows: AccountRow[] = await accountsWithOwners(sql)
  return rows.map(accountFromRow)
}

/** Several accounts may have the same name. Oldest first. */
export async function findAccounts(
  sql: Sql,
  by: { id: string } | { name: string },
): Promise<Account[]> {
  const rows: AccountRow[] = await accountsWithOwners(sql).where(
    'id' in by ? { 'accounts.id': by.id } : by,
  )
  return rows.map(accountFromRow)
}

/** Stops the account's API keys, sign-in, sessions and deliveries on every node. Returns false when it is
 *  suspended already. */
export async function suspendAccount(scope: WriteScope, now: Date): Promise<boolean> {
  if (!(await changeSuspension(scope, now.getTime(), now))) return false
  await deleteAccountSessions(scope)
  return true
}

/** Lets API keys, sign-in and deliveries continue. Returns false when the account is not suspended. */
export function resumeAccount(scope: WriteScope, now: Date): Promise<boolean> {
  return changeSuspension(scope, null, now)
}

/** Changes the account first: that locks its row, and a concurrent insert of a webhook waits for it. */
async function changeSuspension(
  scope: WriteScope,
  suspendedAt: number | null,
  now: Date,
): Promise<boolean> {
  const account = scope.sql('accounts').where({ id: scope.accountId })
  const changed = await (suspendedAt === null
    ? account.whereNotNull('suspended_at')
    : account.whereNull('suspended_at')
  ).update({ suspended_at: suspendedAt, updated_at: now.getTime() })
  if (changed === 0) return false
  await updateSuspendedAt(scope, suspendedAt)
  return true
}

/** Oldest first. */
export async function listAccountIds(sql: Sql): Promise<string[]> {
  return sql('accounts').orderBy('id').pluck('id')
}
