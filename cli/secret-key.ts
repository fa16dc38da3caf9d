import { Refused } from '../errors.ts'
import { withSetupLock } from '../records/database/migrate.ts'
import {
  abandonLostKey,
  checkRotated,
  type Reencrypted,
  reencryptSecrets,
  startRotation,
} from '../webhooks/rotate-secret-key.ts'
import { proveSecretKeys } from '../webhooks/secret-keys.ts'
import { commandGroup, databaseCommand } from './commands.ts'
import type { CommandDatabase } from './installation.ts'

const rotate = databaseCommand({
  name: 'rotate',
  summary: 'encrypt all signing secrets with a new key',
  description:
    'Encrypt all signing secrets with a new key. The service may run meanwhile, and an interrupted ' +
    'rotation continues when you run this again.',
  examples: ['SECRET_KEY=… SECRET_KEY_PREVIOUS=… muster secret-key rotate'],
  notes: `With SECRET_KEY:
  1. Set SECRET_KEY to a new key and SECRET_KEY_PREVIOUS to the present one, and restart every node.
  2. Run this command with the same two settings.
  3. Remove SECRET_KEY_PREVIOUS, and restart every node.

Without SECRET_KEY, this command writes the new key to DATA_DIR/secret.key and keeps the previous one in
DATA_DIR/secret.key.previous. A running service reads the new key by itself.

Keep the previous key for as long as you keep older backups.`,
  async run(database, { json = false }: { json?: boolean }) {
    await prepareRotation(database)
    const { db, config, print } = database
    const onProgress = (done: number, total: number): void => {
      if (!json) print(`Encrypted the secrets of ${done} of ${total} webhooks.`)
    }
    const result = await reencryptSecrets(db, config.secretKeys, onProgress)
    return { document: result, text: formatResult(database, result) }
  },
})

/** Starts or continues a rotation. Creates a new key if it needs one. The lock prevents two commands from
 *  creating a key each. */
function prepareRotation({ db, config }: CommandDatabase): Promise<void> {
  const { secretKeys, secretKeyFiles } = config
  return withSetupLock(config.database, async () => {
    // A key that does not encrypt all secrets yet is already the new one: the operator has set it,
    // or an interrupted rotation has created it.
    const needsNewKey = await checkRotated(db, secretKeys)
    if (needsNewKey) {
      if (!secretKeyFiles)
        throw new Refused(
          'SECRET_KEY encrypts all signing secrets already. To rotate it, set SECRET_KEY to a new key and ' +
            'SECRET_KEY_PREVIOUS to the present one, restart every node, and run this command again.',
        )
      // `secretKeys` is the same object as `secretKeyFiles`, so it has the new key from now on.
      secretKeyFiles.replace()
    }
    await startRotation(db, secretKeys)
  })
}

function formatResult({ config }: CommandDatabase, { webhooks, unreadable }: Reencrypted): string {
  return [
    `The new key encrypts the signing secrets of ${webhooks} webhooks.`,
    config.secretKeyFiles
      ? 'Back up DATA_DIR/secret.key. Keep DATA_DIR/secret.key.previous for as long as you keep older backups.'
      : 'Remove SECRET_KEY_PREVIOUS and restart every node. Keep the previous key for as long as you keep older ' +
        'backups.',
    ...(unreadable.length > 0
      ? [
          'No key can read the secrets of these webhooks, so their deliveries are paused. For each webhook, ' +
            'run the command below, then run it again with --activate. If the webhook has headers of its own, ' +
            'set them again with "muster webhook update ID --header":',
          ...unreadable.map((id) => `  muster webhook rotate ${id}`),
        ]
      : []),
  ].join('\n')
}

const reset = databaseCommand({
  name: 'reset',
  summary: 'start over after the key was lost',
  description:
    'Start over after SECRET_KEY was lost. All signing secrets stay unreadable: the deliveries of each ' +
    'webhook are paused until you rotate its signing secret. No delivery is lost.',
  declare: (command) => command.option('--confirm', 'confirm that the key is lost'),
  examples: ['muster secret-key reset --confirm'],
  async run({ db, config }, { confirm = false }: { confirm?: boolean }) {
    const { secretKeys, secretKeyFiles } = config
    if (!confirm)
      throw new Refused(
        'This makes all signing secrets unreadable for good. Look for the key in your backups first. ' +
          'If it is lost, add --confirm.',
      )
    await withSetupLock(config.database, async () => {
      secretKeyFiles?.createMissing()
      await abandonLostKey(db, secretKeys)
    })
    // Throws unless the key fits the database now.
    await proveSecretKeys(db, secretKeys)
    return {
      document: { reset: true },
      text: [
        `${secretKeys.place} is the key of this database now. Start the service, then rotate the signing`,
        'secret of each webhook, in the console or with:',
        '  muster webhook rotate ID',
        '  muster webhook rotate ID --activate',
        'Set the headers of webhooks again, too:  muster webhook update ID --header',
      ].join('\n'),
    }
  },
})

export const addCommand = commandGroup(
  'secret-key',
  'Manage SECRET_KEY, which encrypts the signing secrets of all webhooks.',
  [rotate, reset],
)
