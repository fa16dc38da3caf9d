import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { activateSecret, prepareSecret } from '../records/webhook-secrets.ts'
import { findSealingKey } from '../webhooks/secret-keys.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'
import { lookUpWebhookAccount } from './lookup.ts'
import { examples, type Output, type Shell } from './shell.ts'
import { auditWebhook } from './webhook-audit.ts'

export function addRotate(webhook: Command, shell: Shell): void {
  webhook
    .command('rotate')
    .summary('rotate the signing secret without downtime')
    .description(
      'Rotate the signing secret without downtime. Run this once to prepare a new secret, add it ' +
        'to your endpoint beside the current one, then run this again with --activate.',
    )
    .argument('<id>', 'the webhook')
    .option('--activate', 'sign with the prepared secret from the next attempt on')
    .addHelpText(
      'after',
      examples(
        'muster webhook rotate 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11',
        'muster webhook rotate 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11 --activate',
      ),
    )
    .action(
      shell.action((id: string, { activate = false }: { activate?: boolean }) =>
        activate ? activateNextSecret(shell, id) : prepareNextSecret(shell, id),
      ),
    )
}

function prepareNextSecret(shell: Shell, id: string): Promise<Output> {
  return shell.withDatabase(async ({ db, config, now }) => {
    const accountId = await lookUpWebhookAccount(db, id)
    const secret = newSecret()
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      const sealed = sealSecret(await findSealingKey(trx, config.secretKeys), id, secret)
      const webhook = await prepareSecret(scope, id, sealed, now())
      if (!webhook) throw new Refused(`There is no webhook ${id}`)
      await auditWebhook(scope, webhook, 'secret_prepared', { now: now() })
    })
    return {
      document: { id, next_secret: secret },
      text: [
        `The next signing secret of webhook ${id}. Copy it now. You will not see it again:`,
        '',
        `  ${secret}`,
        '',
        'The current secret stays active. Add the new one to your endpoint, then activate it:',
        `  muster webhook rotate ${id} --activate`,
      ].join('\n'),
    }
  })
}

function activateNextSecret(shell: Shell, id: string): Promise<Output> {
  return shell.withDatabase(async ({ db, now }) => {
    const accountId = await lookUpWebhookAccount(db, id)
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      const activated = await activateSecret(scope, id, now())
      await auditWebhook(scope, activated, 'secret_activated', { now: now() })
    })
    return {
      document: { id, activated: true },
      text: `Webhook ${id} signs with its new secret from the next attempt on.`,
    }
  })
}
