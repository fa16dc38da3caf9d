/** Creates webhooks for contract tests of this installation. */
import type { Db } from '../records/database/open.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
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
  const { id } = await transaction(db, async (trx) => {
    const key = await findSealingKey(trx, config.secretKeys)
    return insertWebhook(
      writeScope(trx, accountId),
      { url, description: 'Contract tests', eventTypes: ['*'], createdBy: null },
      (webhookId) => sealSecret(key, webhookId, secret),
      new Date(),
    )
  })
  return {
    secret,
    async [Symbol.asyncDispose]() {
      await transaction(db, (trx) => deleteWebhook(writeScope(trx, accountId), id, new Date()))
    },
  }
}
