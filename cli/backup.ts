import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { writeBackup } from '../records/database/backup.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('backup')
    .description(
      'Copy a snapshot of all records into a new SQLite file. The service may run meanwhile.',
    )
    .argument('<file>', 'the file to create; it must not exist')
    .addHelpText(
      'after',
      `${examples('muster backup muster-2026-11-21.sqlite')}
To restore: stop the service, move DATA_DIR/muster.sqlite* away and copy the file to DATA_DIR/muster.sqlite. Then start
the service with DELIVERIES=paused, so that it sends nothing before "muster deliveries unpause".
Also back up DATA_DIR/secret.key (or SECRET_KEY) in another place: it encrypts the signing secrets.
`,
    )
    .action(
      shell.action(async (path: string): Promise<Output> => {
        const { database } = await shell.config()
        if (!('dataDir' in database))
          throw new Refused(
            'The records are in PostgreSQL. Use pg_dump:  pg_dump --format=custom "$DATABASE_URL"',
          )
        const file = resolve(path)
        const byteSize = await shell.withDatabase(({ db }) => writeBackup(db, file))
        return {
          document: { file, byte_size: byteSize },
          text: [
            `The records are in ${file} (${byteSize} bytes).`,
            `Also back up ${join(database.dataDir, 'secret.key')} (or SECRET_KEY): ` +
              'it encrypts the signing secrets.',
          ].join('\n'),
        }
      }),
    )
}
