import type { Scope } from '../records/database/scope.ts'
import { insertInvitation } from '../records/invitations.ts'
import { newToken } from './session.ts'

/** Creates a one-time link with which a user sets a password. It replaces the previous link. Only
 *  the hash of the token is stored. `expiresAt` is in milliseconds since the epoch. */
export async function invite(
  scope: Scope,
  userId: string,
  now: Date,
): Promise<{ token: string; expiresAt: number }> {
  const { token, tokenHash } = newToken()
  return { token, expiresAt: await insertInvitation(scope, userId, tokenHash, now) }
}
