/** The webhooks and deliveries of an account, which the API does not have yet, for contract tests. */

import { listAttempts } from '../records/attempts.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, accountTransaction, type WriteScope } from '../records/database/scope.ts'
import { findDelivery } from '../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  resendDelivery,
  retryDelivery,
} from '../records/delivery-commands.ts'
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
  const write = <T>(run: (scope: WriteScope) => Promise<T>): Promise<T> =>
    accountTransaction(db, accountId, run)
  const command = (run: Command) => (id: string) => write((scope) => run(scope, id, new Date()))

  async function createWebhook(
    fields: Parameters<WebhookAccount['createWebhook']>[0],
  ): Promise<ControlledWebhook> {
    const secret = newSecret()
    const sealer = async ({ trx }: WriteScope) => {
      const sealingKey = await findSealingKey(trx, secretKeys)
      return (id: string, text: string) => sealSecret(sealingKey, id, text)
    }
    const { id } = await write(async (scope) => {
      const seal = await sealer(scope)
      const webhook = { description: 'Contract tests', createdBy: null, ...fields }
      return insertWebhook(scope, webhook, (webhookId) => seal(webhookId, secret), new Date())
    })
    return {
      secret,
      disable: () => command(disableWebhook)(id),
      enable: () => command(enableWebhook)(id),
      async prepareSecret() {
        const next = newSecret()
        await write(async (scope) => {
          const seal = await sealer(scope)
          await prepareSecret(scope, id, seal(id, next), new Date())
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
    findDelivery: (id) =>
      findDelivery(accountScope({ dialect: db.dialect, sql: db.read }, accountId), id),
    listAttempts: (id) =>
      listAttempts(accountScope({ dialect: db.dialect, sql: db.read }, accountId), id),
    commands: {
      attemptNow: command(attemptNow),
      retry: command(retryDelivery),
      resend: command(resendDelivery),
      cancel: command(cancelDelivery),
    },
  }
}
