import { hasAccount, insertAccount } from '../records/accounts.ts'
import { accountScope, type Db, transaction } from '../records/db.ts'
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

/** Makes an account to begin with, where there is none: its Owner's password and key are in the answer and nowhere else.
 *  Undefined: there is one already. Call it inside `whileAlone`. */
export async function createFirstAccount(db: Db, now: Date): Promise<FirstAccount | undefined> {
  if (await hasAccount(db.write)) return undefined
  const password = newPassword()
  const passwordHash = await hashPassword(password)
  return transaction(db, async (trx) => {
    const ids = await insertAccount(trx, { name: 'My account', email: EMAIL, fullName: 'Account Owner', passwordHash }, now)
    const key = { userId: ids.userId, name: 'First key', accessLevel: 'full_access' } as const
    const { token } = await issueApiKey(accountScope(trx, ids.accountId), key, now)
    return { ...ids, email: EMAIL, password, token }
  })
}
