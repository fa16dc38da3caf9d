import type { Scope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { emailKey, type User, type UserRow, userFromRow } from './users.ts'

interface Credentials {
  user: User
  /** Null: the user has not set a password. */
  passwordHash: string | null
  /** Is the user's account suspended? */
  isSuspended: boolean
}

/** Searches all accounts. */
export async function findCredentials(sql: Sql, email: string): Promise<Credentials | undefined> {
  const row: (UserRow & { suspended_at: number | null }) | undefined = await sql('users')
    .join('accounts', 'accounts.id', 'users.account_id')
    .where('email_key', emailKey(email))
    .first('users.*', 'accounts.suspended_at')
  return (
    row && {
      user: userFromRow(row),
      passwordHash: row.password_hash,
      isSuspended: row.suspended_at !== null,
    }
  )
}

/** Null: the user has not set a password, or does not exist. */
export async function findPasswordHash(scope: Scope, id: string): Promise<string | null> {
  const row = await scope
    .rows('users')
    .where({ id })
    .first<{ password_hash: string | null } | undefined>('password_hash')
  return row?.password_hash ?? null
}

export async function updatePassword(
  scope: Scope,
  id: string,
  passwordHash: string,
  now: Date,
): Promise<void> {
  await scope
    .rows('users')
    .where({ id })
    .update({ password_hash: passwordHash, updated_at: now.getTime() })
}

/** The IDs of the users who have set a password. */
export async function listJoinedIds(scope: Scope): Promise<string[]> {
  return scope.rows('users').whereNotNull('password_hash').pluck('id')
}
