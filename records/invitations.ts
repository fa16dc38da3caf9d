/** One-time links to set a password, for invited users and for users who need a new password. */
import type { Scope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'
import { DAY_MS } from './time-units.ts'
import { type User, type UserRow, userFromRow } from './users.ts'

const LIFETIME_DAYS = 7
/** An expired link stays for this long: the console shows when it expired. */
const EXPIRED_DAYS = 30

export interface Invitation {
  user: User
  accountName: string
  /** Has the user set a password before? */
  hasJoined: boolean
}

/** Replaces the user's earlier link. Returns the expiry in epoch milliseconds. */
export async function insertInvitation(
  scope: Scope,
  userId: string,
  tokenHash: string,
  now: Date,
): Promise<number> {
  const expiresAt = now.getTime() + LIFETIME_DAYS * DAY_MS
  await scope
    .sql('invitations')
    .insert({
      token_hash: tokenHash,
      account_id: scope.accountId,
      user_id: userId,
      expires_at: expiresAt,
      created_at: now.getTime(),
    })
    .onConflict('user_id')
    .merge(['token_hash', 'expires_at', 'created_at'])
  return expiresAt
}

/** Searches all accounts. Undefined: the link does not exist, was used or replaced, or has expired,
 *  its user is deactivated, or its account is suspended. */
export async function findInvitation(
  sql: Sql,
  tokenHash: string,
  now: Date,
): Promise<Invitation | undefined> {
  const row: (UserRow & { account_name: string }) | undefined = await sql('invitations')
    .join('users', 'users.id', 'invitations.user_id')
    .join('accounts', 'accounts.id', 'users.account_id')
    .where({ 'invitations.token_hash': tokenHash, 'users.status': 'active' })
    .where('invitations.expires_at', '>', now.getTime())
    .whereNull('accounts.suspended_at')
    .first('users.*', 'accounts.name as account_name')
  return (
    row && {
      user: userFromRow(row),
      accountName: row.account_name,
      hasJoined: row.password_hash !== null,
    }
  )
}

/** Consumes a link. False: it does not exist, has expired, or a concurrent request consumed it. */
export async function consumeInvitation(
  scope: Scope,
  tokenHash: string,
  now: Date,
): Promise<boolean> {
  return (
    (await scope
      .rows('invitations')
      .where({ token_hash: tokenHash })
      .where('expires_at', '>', now.getTime())
      .delete()) > 0
  )
}

/** Past and future expiries of the account's links, in epoch milliseconds, by user ID. */
export async function listExpiries(scope: Scope): Promise<Map<string, number>> {
  const rows: { user_id: string; expires_at: number }[] = await scope
    .rows('invitations')
    .select('user_id', 'expires_at')
  return new Map(rows.map((row) => [row.user_id, row.expires_at]))
}

/** False: the user has no link. */
export async function deleteInvitation(scope: Scope, userId: string): Promise<boolean> {
  return (await scope.rows('invitations').where({ user_id: userId }).delete()) > 0
}

/** Deletes the links of all users of the account. */
export async function deleteInvitations(scope: Scope): Promise<void> {
  await scope.rows('invitations').delete()
}

export function removeExpiredInvitations(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'invitations',
    key: ['token_hash'],
    condition: (rows) =>
      rows.where(
        'expires_at',
        '<=',
        run.time.expiredUntil(LIFETIME_DAYS * DAY_MS, EXPIRED_DAYS * DAY_MS),
      ),
  })
}
