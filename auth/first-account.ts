import { hasAccount, insertAccount } from '../records/accounts.ts'
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

/** An address that leads nowhere (RFC 6762 keeps `.local` off the public DNS): its owner puts their own in. */
const EMAIL = 'owner@muster.local'
const NAME = 'My account'

/** Makes an account to begin with, where there is none: its Owner's password and key are in the answer and nowhere else.
 *  Undefined: there is one already. Call it inside `withSetupLock`. */
export async function createFirstAccount(db: Db, now: Date): Promise<FirstAccount | undefined> {
  if (await hasAccount(db.write)) return undefined
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
    return { ...ids, email: EMAIL, password, token }
  })
}
