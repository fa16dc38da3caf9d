import { Refused } from '../errors.ts'
import { accountTransaction } from '../records/database/scope.ts'
import { activateSecret, prepareSecret } from '../records/webhook-secrets.ts'
import { findSealingKey } from '../webhooks/secret-keys.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'
import { auditWebhook } from './audit.ts'
import { databaseCommand } from './commands.ts'
import type { CommandDatabase } from './installation.ts'
import { lookUpWebhookAccount } from './lookup.ts'
import type { Output } from './shell.ts'

export const rotate = databaseCommand({
  name: 'rotate',
  summary: 'rotate the signing secret without downtime',
  description:
    'Rotate the signing secret without downtime. Run this once to prepare a new secret, add it ' +
    'to your receiver beside the current one, then run this again with --activate.',
  declare: (command) =>
    command
      .argument('<id>', 'the webhook')
      .option('--activate', 'sign with the prepared secret from the next attempt on'),
  examples: ['muster webhook rotate ID', 'muster webhook rotate ID --activate'],
  run: (database, id: string, { activate = false }: { activate?: boolean }) =>
    activate ? activateNextSecret(database, id) : prepareNextSecret(database, id),
})

async function prepareNextSecret(
  { db, config, now }: CommandDatabase,
  id: string,
): Promise<Output> {
  const accountId = await lookUpWebhookAccount(db, id)
  const secret = newSecret()
  await accountTransaction(db, accountId, async (scope) => {
    const sealed = sealSecret(await findSealingKey(scope.trx, config.secretKeys), id, secret)
    const webhook = await prepareSecret(scope, id, sealed, now())
    if (!webhook) throw new Refused(`There is no webhook ${id}`)
    await auditWebhook(scope, webhook, { verb: 'secret_prepared' }, now())
  })
  return {
    document: { id, next_secret: secret },
    text: [
      `This is the next signing secret of webhook ${id}. Copy it now. You will not see it again:`,
      '',
      `  ${secret}`,
      '',
      'The current secret stays active. Add the next one to your receiver, then activate it:',
      `  muster webhook rotate ${id} --activate`,
    ].join('\n'),
  }
}

async function activateNextSecret({ db, now }: CommandDatabase, id: string): Promise<Output> {
  const accountId = await lookUpWebhookAccount(db, id)
  await accountTransaction(db, accountId, async (scope) => {
    const activated = await activateSecret(scope, id, now())
    if (!activated) throw new Refused(`There is no webhook ${id}`)
    await auditWebhook(scope, activated, { verb: 'secret_activated' }, now())
  })
  return {
    document: { id, activated: true },
    text: `Webhook ${id} signs with its new secret from the next attempt on.`,
  }
}
