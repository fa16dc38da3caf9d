/** Creates webhooks for contract tests of this installation. */
import type { Db } from '../records/database/open.ts'
import { accountTransaction } from '../records/database/scope.ts'
import { deleteWebhook, insertWebhook } from '../records/webhooks.ts'
import type { TestedWebhook } from '../scripts/contract/receiver.ts'
import type { Config } from '../server/config.ts'
import { findSealingKey } from '../webhooks/secret-keys.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'

/** A webhook of the account, which is subscribed to all events until its disposal. */
export async function createContractWebhook(
  { db, config }: { db: Db; config: Pick<Config, 'secretKeys'> },
  accountId: string,
  url: string,
): Promise<TestedWebhook> {
  const secret = newSecret()
  const { id } = await accountTransaction(db, accountId, async (scope) => {
    const key = await findSealingKey(scope.trx, config.secretKeys)
    return insertWebhook(
      scope,
      { url, description: 'Contract tests', eventTypes: ['*'], createdBy: null },
      (webhookId) => sealSecret(key, webhookId, secret),
      new Date(),
    )
  })
  return {
    secret,
    async [Symbol.asyncDispose]() {
      await accountTransaction(db, accountId, (scope) => deleteWebhook(scope, id, new Date()))
    },
  }
}
