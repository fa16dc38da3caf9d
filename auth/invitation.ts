import type { Scope } from '../records/database/scope.ts'
import { insertInvitation } from '../records/invitations.ts'
import { newToken } from './session.ts'

/** Creates the one-time link of a user and replaces the previous one. Only the hash of the token is
 *  stored. `expiresAt` is in milliseconds since the epoch. */
export async function invite(
  scope: Scope,
  userId: string,
  now: Date,
): Promise<{ token: string; expiresAt: number }> {
  const { token, tokenHash } = newToken()
  return { token, expiresAt: await insertInvitation(scope, userId, tokenHash, now) }
}
