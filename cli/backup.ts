import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { backupName, deleteOldBackups, writeBackup } from '../records/database/backup.ts'
import { recordBackup } from '../records/database/last-backup.ts'
import { examples, formatTime, type Output, parseInteger, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('backup')
    .description(
      'Copy a snapshot of all records into a new SQLite file, and check the copy. The service may run meanwhile.',
    )
    .argument('<path>', 'the file to create, which must not exist; with --keep, a folder')
    .option(
      '--keep <n>',
      'name the file after the time, and keep the newest n backups of the folder',
      parseInteger(1, 100_000),
    )
    .addHelpText(
      'after',
      `${examples('muster backup muster-2026-11-21.sqlite', 'muster backup --keep 14 /var/backups/muster')}
To restore: see "Restore" in docs/operations.md. Start the service with DELIVERIES=paused, so that it sends nothing
before "muster deliveries unpause".
Also back up DATA_DIR/secret.key (or SECRET_KEY) in another place: it encrypts the signing secrets.
`,
    )
    .action(
      shell.action((path: string, options: { keep?: number }) => backUp(shell, path, options)),
    )
}

async function backUp(shell: Shell, path: string, { keep }: { keep?: number }): Promise<Output> {
  const { database } = await shell.config()
  if (!('dataDir' in database))
    throw new Refused(
      'The records are in PostgreSQL. Use pg_dump:  pg_dump --format=custom "$DATABASE_URL"',
    )
  const { dataDir } = database
  // A backup comes before the migrations of an upgrade, so it works without them.
  return shell.withDatabase(async ({ db, now }) => {
    const takenAt = now()
    const file = keep === undefined ? resolve(path) : resolve(path, backupName(takenAt))
    const { byteSize, accounts, newestEventAt } = await writeBackup(db, file)
    await recordBackup(dataDir, { file, takenAt: takenAt.getTime() })
    const deleted = keep === undefined ? [] : await deleteOldBackups(file, keep)
    const newestEvent = formatTime(newestEventAt)
    return {
      document: { file, byte_size: byteSize, accounts, newest_event_at: newestEvent, deleted },
      text: [
        `The records are in ${file} (${byteSize} bytes). The copy has no damage.`,
        `Accounts: ${accounts}. Newest event: ${newestEvent ?? 'none'}.`,
        ...deleted.map((old) => `Deleted ${old}.`),
        `Also back up ${join(dataDir, 'secret.key')} (or SECRET_KEY): it encrypts the signing secrets.`,
      ].join('\n'),
    }
  }, 'any')
}
