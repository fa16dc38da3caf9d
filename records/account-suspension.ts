/** Suspends, resumes and deletes accounts. */
import { Refused } from '../errors.ts'
import { insertAccountDeletion, isBeingDeleted } from './account-deletions.ts'
import { lockAccount } from './accounts.ts'
import type { WriteScope } from './database/scope.ts'
import { deleteAccountSessions } from './sessions.ts'
import { excludePauseFromOutages } from './webhook-outages.ts'
import { updateSuspendedAt } from './webhooks.ts'

/** Stops the account's API keys, sign-in, sessions and deliveries on every node. Returns false when
 *  it is suspended already. */
export async function suspendAccount(scope: WriteScope, now: Date): Promise<boolean> {
  if (!(await changeSuspension(scope, now.getTime(), now))) return false
  await deleteAccountSessions(scope)
  return true
}

/** Lets API keys, sign-in and deliveries continue. Returns false when the account is not suspended.
 *  Throws `Refused` when it is being deleted. */
export async function resumeAccount(scope: WriteScope, now: Date): Promise<boolean> {
  return changeSuspension(scope, null, now)
}

/** Suspends the account, and orders workers to erase it. Returns false when this is ordered
 *  already. */
export async function deleteAccount(scope: WriteScope, now: Date): Promise<boolean> {
  await suspendAccount(scope, now)
  if (await isBeingDeleted(scope)) return false
  await insertAccountDeletion(scope, now)
  return true
}

/** Locks the account first: a concurrent insert of a webhook waits for it. */
async function changeSuspension(
  scope: WriteScope,
  suspendedAt: number | null,
  now: Date,
): Promise<boolean> {
  const account = await lockAccount(scope)
  if (suspendedAt === null && (await isBeingDeleted(scope)))
    throw new Refused('The account is being deleted, which cannot be undone.')
  if (!account || (account.suspendedAt === null) === (suspendedAt === null)) return false
  await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .update({ suspended_at: suspendedAt, updated_at: now.getTime() })
  await updateSuspendedAt(scope, suspendedAt)
  if (suspendedAt === null) await excludePauseFromOutages(scope.sql, now, scope.accountId)
  return true
}
