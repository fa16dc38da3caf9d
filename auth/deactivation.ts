import type { WriteScope } from '../records/database/scope.ts'
import { deleteInvitation } from '../records/invitations.ts'
import { deleteSessions } from '../records/sessions.ts'
import { type User, updateUserStatus } from '../records/users.ts'

/** Stops the sign-in, the sessions and the API keys of a user at once, and the one-time link to set
 *  a password. Deletes the sessions and the link even if the user is already deactivated: if they
 *  were kept, they would work again after a reactivation. Returns the user before the change.
 *  Undefined: the user does not exist. Throws `Refused` for the Account Owner. */
export async function deactivateUser(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<User | undefined> {
  const before = await updateUserStatus(scope, id, 'deactivated', now)
  if (!before) return undefined
  await deleteSessions(scope, id)
  await deleteInvitation(scope, id)
  return before
}
