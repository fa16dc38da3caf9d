import type { WriteScope } from '../records/database/scope.ts'
import { deleteInvitation } from '../records/invitations.ts'
import { deleteSessions } from '../records/sessions.ts'
import { updateUserStatus } from '../records/users.ts'

/** Stops the sign-in, the sessions, the one-time link and the API keys of a user at once. The
 *  sessions and the link are deleted: otherwise they would work again after a reactivation. False:
 *  the user does not exist. Throws `Refused` for the Owner. */
export async function deactivateUser(scope: WriteScope, id: string, now: Date): Promise<boolean> {
  if (!(await updateUserStatus(scope, id, 'deactivated', now))) return false
  await deleteSessions(scope, id)
  await deleteInvitation(scope, id)
  return true
}
