import { listAccountDeletions } from '../records/account-deletions.ts'
import { findOldestAccount, insertAccount } from '../records/accounts.ts'
import { insertAuditEntry } from '../records/audit-log.ts'
import type { Db } from '../records/database/open.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { issueApiKey } from './api-key.ts'
import { hashPassword, newPassword } from './password.ts'

export interface FirstAccount {
  accountId: string
  userId: string
  email: string
  password: string
  token: string
}

/** A placeholder (RFC 6762 reserves `.local`) that the owner replaces. */
const EMAIL = 'owner@muster.local'
const NAME = 'My account'

/** Creates the first account. Only the result has the password and the token: the database stores
 *  their hashes. Returns undefined if an account exists or existed. Call it inside `withSetupLock`,
 *  so that two processes cannot both create one.
 *
 *  `tries` has the account of each call, from before its COMMIT: a COMMIT that got no answer may have
 *  succeeded, and then the next call returns the account that it created. */
export async function createFirstAccount(
  db: Db,
  now: Date,
  tries: FirstAccount[] = [],
): Promise<FirstAccount | undefined> {
  const oldestId = await findOldestAccount(db.write)
  if (oldestId !== undefined) return tries.find(({ accountId }) => accountId === oldestId)
  if ((await listAccountDeletions(db.write)).length > 0) return undefined
  const password = newPassword()
  const passwordHash = await hashPassword(password)
  return transaction(db, async (trx) => {
    const ids = await insertAccount(
      trx,
      { name: NAME, email: EMAIL, fullName: 'Account Owner', passwordHash },
      now,
    )
    const scope = writeScope(trx, ids.accountId)
    const key = { userId: ids.userId, name: 'First key', accessLevel: 'full_access' } as const
    const { id, token } = await issueApiKey(scope, key, now)
    const byOperator = { user: null, ip: null }
    await insertAuditEntry(
      scope,
      {
        ...byOperator,
        action: 'account.created',
        target: { type: 'account', id: ids.accountId, name: NAME },
      },
      now,
    )
    await insertAuditEntry(
      scope,
      { ...byOperator, action: 'api_key.created', target: { type: 'api_key', id, name: key.name } },
      now,
    )
    const created = { ...ids, email: EMAIL, password, token }
    tries.push(created)
    return created
  })
}
