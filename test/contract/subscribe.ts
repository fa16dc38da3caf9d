/** Webhooks of accounts. */
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import type { TestAccount, TestApp } from '../helpers.ts'

/** Creates a webhook for all events. Returns its ID. */
export async function subscribe(
  app: TestApp,
  { accountId }: TestAccount,
  url: string,
): Promise<string> {
  const secret = newSecret()
  const input = { url, description: '', eventTypes: ['*'], createdBy: null }
  const webhook = await transaction(app.db, (trx) =>
    insertWebhook(
      writeScope(trx, accountId),
      input,
      (id) => sealSecret(app.config.secretKeys.newest(), id, secret),
      new Date(),
    ),
  )
  return webhook.id
}
