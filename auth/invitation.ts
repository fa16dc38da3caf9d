import type { Scope } from '../records/database/scope.ts'
import { insertInvitation } from '../records/invitations.ts'
import { newToken } from './session.ts'

/** Makes the one-time link of a user, in place of the one before. The token is in the answer and nowhere else. `expiresAt` is epoch
 *  milliseconds. */
export async function invite(
  scope: Scope,
  userId: string,
  now: Date,
): Promise<{ token: string; expiresAt: number }> {
  const { token, tokenHash } = newToken()
  return { token, expiresAt: await insertInvitation(scope, userId, tokenHash, now) }
}
