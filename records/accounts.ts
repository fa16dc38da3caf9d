import { type Scope, type WriteScope, writeScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { newId } from './ids.ts'
import { parseName } from './names.ts'
import { insertUser } from './users.ts'

export interface NewAccount {
  name: string
  /** The Account Owner's, like the following fields. */
  email: string
  fullName: string
  passwordHash: string
}

/** Inserts an account and its Account Owner. Throws `Refused` when the input is invalid or the
 *  email is taken. */
export async function insertAccount(
  trx: Trx,
  account: NewAccount,
  now: Date,
): Promise<{ accountId: string; userId: string }> {
  const accountId = newId()
  const name = parseName('The account name', account.name)
  await trx
    .sql('accounts')
    .insert({ id: accountId, name, created_at: now.getTime(), updated_at: now.getTime() })
  const { email, fullName, passwordHash } = account
  const userId = await insertUser(
    writeScope(trx, accountId),
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

/** Throws `Refused` for an invalid name. */
export async function updateAccountName(scope: Scope, input: string, now: Date): Promise<void> {
  const name = parseName('The account name', input)
  await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .update({ name, updated_at: now.getTime() })
}

/** On PostgreSQL the account stays locked until the transaction ends. Undefined: there is no such
 *  account. */
export async function lockAccount(
  scope: WriteScope,
): Promise<{ suspendedAt: number | null } | undefined> {
  const row: { suspended_at: number | null } | undefined = await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .forUpdate()
    .first('suspended_at')
  return row && { suspendedAt: row.suspended_at }
}

/** The ID of the oldest account. */
export async function findOldestAccount(sql: Sql): Promise<string | undefined> {
  return (await sql('accounts').orderBy('id').first('id'))?.id
}

export type OwnedTable = 'bulk_jobs' | 'deliveries' | 'webhooks'

/** The ID of the account that owns the row. Undefined: there is no such row, or the webhook is
 *  deleted. Searches all accounts, so only the CLI may call it. */
export async function findAccountOf(
  sql: Sql,
  table: OwnedTable,
  id: string,
): Promise<string | undefined> {
  const rows = sql(table).where({ id })
  if (table === 'webhooks') rows.whereNull('deleted_at')
  const row: { account_id: string } | undefined = await rows.first('account_id')
  return row?.account_id
}

export interface Account {
  id: string
  name: string
  ownerEmail: string | null
  /** Epoch milliseconds, like all times of records. */
  suspendedAt: number | null
  deletionRequestedAt: number | null
  createdAt: number
}

interface AccountRow {
  id: string
  name: string
  owner_email: string | null
  suspended_at: number | null
  requested_at: number | null
  created_at: number
}

function accountFromRow(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    ownerEmail: row.owner_email,
    suspendedAt: row.suspended_at,
    deletionRequestedAt: row.requested_at,
    createdAt: row.created_at,
  }
}

/** All accounts, or those with the ID or the name. Several may have the same name. Oldest first. */
export async function listAccounts(
  sql: Sql,
  filter?: { id: string } | { name: string },
): Promise<Account[]> {
  const query = sql('accounts')
    .leftJoin('users', (join) => join.on('users.account_id', 'accounts.id').onVal('role', 'owner'))
    .leftJoin('account_deletions', 'account_deletions.id', 'accounts.id')
    .orderBy('accounts.id')
    .select(
      'accounts.id',
      'name',
      'users.email as owner_email',
      'suspended_at',
      'account_deletions.requested_at',
      'accounts.created_at',
    )
  if (filter) query.where('id' in filter ? { 'accounts.id': filter.id } : filter)
  const rows: AccountRow[] = await query
  return rows.map(accountFromRow)
}

/** Oldest first. */
export async function listAccountIds(sql: Sql): Promise<string[]> {
  return sql('accounts').orderBy('id').pluck('id')
}
