/** Looks up the records that a command names. Throws `Refused` if one does not exist. */
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import {
  type Account,
  findAccountOf,
  listAccountIds,
  listAccounts,
  type OwnedTable,
} from '../records/accounts.ts'
import type { Db } from '../records/database/open.ts'
import { findUserByEmail, type User } from '../records/users.ts'

/** The description of arguments and options that `lookUpAccount` reads. */
export const ACCOUNT_MEANING = 'the ID or the name of the account'

/** `account` is an ID, or a name that only one account has. */
export async function lookUpAccount(db: Db, account: string): Promise<Account> {
  const by = isUuid(account) ? { id: account } : { name: account }
  const [found, ...others] = await listAccounts(db.read, by)
  if (!found) throw new Refused(`There is no account ${account}`)
  if (others.length > 0)
    throw new Refused(
      `${others.length + 1} accounts have the name ${account}. Use the ID of one of them: ` +
        [found, ...others].map(({ id }) => id).join(', '),
    )
  return found
}

/** The IDs of all accounts, or of the one that the option `--account` names. */
export async function lookUpAccountIds(db: Db, account: string | undefined): Promise<string[]> {
  return account === undefined
    ? await listAccountIds(db.read)
    : [(await lookUpAccount(db, account)).id]
}

export async function lookUpUser(db: Db, email: string): Promise<User> {
  const user = await findUserByEmail(db.read, email)
  if (!user) throw new Refused(`There is no user with the email ${email}`)
  return user
}

// Each returns the ID of the account that the record belongs to.
export const lookUpWebhookAccount = newLookUp('webhook', 'webhooks')
export const lookUpDeliveryAccount = newLookUp('delivery', 'deliveries')
export const lookUpBulkJobAccount = newLookUp('bulk job', 'bulk_jobs')

function newLookUp(noun: string, table: OwnedTable): (db: Db, id: string) => Promise<string> {
  return async (db, id) => {
    const accountId = isUuid(id) ? await findAccountOf(db.read, table, id) : undefined
    if (accountId === undefined) throw new Refused(`There is no ${noun} ${id}`)
    return accountId
  }
}
