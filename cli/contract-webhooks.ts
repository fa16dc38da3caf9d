/** The webhooks and deliveries of an account, which the API does not have yet, for contract tests. */

import { listAttempts } from '../records/attempts.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, accountTransaction, type WriteScope } from '../records/database/scope.ts'
import { findDelivery } from '../records/deliveries.ts'
import { attemptNow, resendDelivery, retryDelivery } from '../records/delivery-commands.ts'
import { activateSecret, prepareSecret } from '../records/webhook-secrets.ts'
import { deleteWebhook, disableWebhook, enableWebhook, insertWebhook } from '../records/webhooks.ts'
import type { ControlledWebhook, WebhookAccount } from '../scripts/contract/webhook-account.ts'
import type { Config } from '../server/config.ts'
import { emitTest } from '../webhooks/emit.ts'
import { findSealingKey } from '../webhooks/secret-keys.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'

type Command = (scope: WriteScope, id: string, now: Date) => Promise<unknown>

export function openWebhookAccount(
  { db, config: { secretKeys } }: { db: Db; config: Pick<Config, 'secretKeys'> },
  { accountId, key }: { accountId: string; key: string },
): WebhookAccount {
  const read = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  const write = <T>(run: (scope: WriteScope) => Promise<T>): Promise<T> =>
    accountTransaction(db, accountId, run)
  const command = (run: Command) => (id: string) => write((scope) => run(scope, id, new Date()))

  async function createWebhook(
    fields: Parameters<WebhookAccount['createWebhook']>[0],
  ): Promise<ControlledWebhook> {
    const secret = newSecret()
    const webhook = { description: 'Contract tests', createdBy: null, ...fields }
    const { id } = await write(async (scope) => {
      const sealingKey = await findSealingKey(scope.trx, secretKeys)
      const seal = (newId: string) => sealSecret(sealingKey, newId, secret)
      return insertWebhook(scope, webhook, seal, new Date())
    })
    return {
      secret,
      disable: () => command(disableWebhook)(id),
      enable: () => command(enableWebhook)(id),
      async prepareSecret() {
        const next = newSecret()
        await write(async (scope) => {
          const sealingKey = await findSealingKey(scope.trx, secretKeys)
          await prepareSecret(scope, id, sealSecret(sealingKey, id, next), new Date())
        })
        return next
      },
      activateSecret: () => command(activateSecret)(id),
      sendTest: () => command(emitTest)(id),
      async [Symbol.asyncDispose]() {
        await command(deleteWebhook)(id)
      },
    }
  }

  return {
    key,
    createWebhook,
    findDelivery: (id) => findDelivery(read, id),
    listAttempts: (id) => listAttempts(read, id),
    commands: {
      attemptNow: command(attemptNow),
      retry: command(retryDelivery),
      resend: command(resendDelivery),
    },
  }
}
