/** Suspends, resumes and deletes accounts. */
import { Refused } from '../errors.ts'
import { insertAccountDeletion, isBeingDeleted } from './account-deletions.ts'
import { lockAccount } from './accounts.ts'
import type { WriteScope } from './database/scope.ts'
import { deleteAccountSessions } from './sessions.ts'
import { excludePauseFromOutages } from './webhook-outages.ts'
import { updateSuspendedAt } from './webhooks.ts'

/** Stops the account's API keys, sign-in, sessions and deliveries on every node. Returns false when
 *  the account is suspended already, or does not exist. */
export async function suspendAccount(scope: WriteScope, now: Date): Promise<boolean> {
  if (!(await changeSuspension(scope, now.getTime(), now))) return false
  await deleteAccountSessions(scope)
  return true
}

/** Lets API keys, sign-in and deliveries continue. Returns false when the account is not suspended,
 *  or does not exist. Throws `Refused` when the account is being deleted. */
export async function resumeAccount(scope: WriteScope, now: Date): Promise<boolean> {
  return changeSuspension(scope, null, now)
}

/** Suspends the account, and requests its deletion, which workers then carry out. Returns false
 *  when the deletion was requested before. */
export async function deleteAccount(scope: WriteScope, now: Date): Promise<boolean> {
  await suspendAccount(scope, now)
  if (await isBeingDeleted(scope)) return false
  await insertAccountDeletion(scope, now)
  return true
}

/** `suspendedAt`: null resumes the account. Locks the account first, so that a concurrent insert of
 *  a webhook waits. Returns false when nothing changes. */
async function changeSuspension(
  scope: WriteScope,
  suspendedAt: number | null,
  now: Date,
): Promise<boolean> {
  const account = await lockAccount(scope)
  if (suspendedAt === null && (await isBeingDeleted(scope)))
    throw new Refused('The account is being deleted, which cannot be undone.')
  const isUnchanged = !account || (account.suspendedAt === null) === (suspendedAt === null)
  if (isUnchanged) return false
  await scope
    .sql('accounts')
    .where({ id: scope.accountId })
    .update({ suspended_at: suspendedAt, updated_at: now.getTime() })
  await updateSuspendedAt(scope, suspendedAt)
  if (suspendedAt === null) await excludePauseFromOutages(scope.sql, now, scope.accountId)
  return true
}
