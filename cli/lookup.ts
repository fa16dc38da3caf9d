/** Looks up the records that a command names. Throws `Refused` if one does not exist. */
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { type Account, isAccount, listAccounts } from '../records/accounts.ts'
import { findAccountOfBulkJob } from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type Scope } from '../records/database/scope.ts'
import { findAccountOfDelivery } from '../records/deliveries.ts'
import { findAccountOfWebhook } from '../records/webhooks.ts'

export async function assertAccount(db: Db, id: string): Promise<void> {
  if (!isUuid(id) || !(await isAccount(db.read, id))) throw new Refused(`There is no account ${id}`)
}

/** `account`: an ID, or a name that only one account has. */
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

/** The ID of the account that the webhook belongs to. */
export async function lookUpWebhookAccount(db: Db, webhookId: string): Promise<string> {
  const accountId = isUuid(webhookId) ? await findAccountOfWebhook(db.read, webhookId) : undefined
  if (accountId === undefined) throw new Refused(`There is no webhook ${webhookId}`)
  return accountId
}

/** The ID of the account that the delivery belongs to. */
export async function lookUpDeliveryAccount(db: Db, deliveryId: string): Promise<string> {
  const accountId = isUuid(deliveryId)
    ? await findAccountOfDelivery(db.read, deliveryId)
    : undefined
  if (accountId === undefined) throw new Refused(`There is no delivery ${deliveryId}`)
  return accountId
}

/** The ID of the account that the bulk job belongs to. */
export async function lookUpBulkJobAccount(db: Db, jobId: string): Promise<string> {
  const accountId = isUuid(jobId) ? await findAccountOfBulkJob(db.read, jobId) : undefined
  if (accountId === undefined) throw new Refused(`There is no bulk job ${jobId}`)
  return accountId
}

export function readScope(db: Db, accountId: string): Scope {
  return accountScope({ dialect: db.dialect, sql: db.read }, accountId)
}
