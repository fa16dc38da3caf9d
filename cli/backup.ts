import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { writeBackup } from '../records/database/backup.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addBackup(program: Command, shell: Shell): void {
  program
    .command('backup')
    .description(
      'Write all records, as they are at this moment, into a new SQLite file. Safe beside a running server.',
    )
    .argument('<file>', 'the file to make; an existing one is left alone')
    .addHelpText(
      'after',
      `${examples('muster backup muster-2026-11-21.sqlite')}
To restore: stop the server, move DATA_DIR/muster.sqlite* away and put the file there as muster.sqlite.
Signing secrets are encrypted with DATA_DIR/secret.key (or SECRET_KEY): keep that too, in another place.
`,
    )
    .action(
      shell.action(async (given: string): Promise<Output> => {
        const { database } = await shell.config()
        if (!('dataDir' in database))
          throw new Refused(
            'The records are in PostgreSQL: back them up with pg_dump, for example  pg_dump --format=custom "$DATABASE_URL"',
          )
        const file = resolve(given)
        const byteSize = await shell.records(({ db }) => writeBackup(db, file))
        return {
          document: { file, byte_size: byteSize },
          text: [
            `The records are in ${file} (${byteSize} bytes).`,
            `Keep ${join(database.dataDir, 'secret.key')}, or your SECRET_KEY, in another place: the signing secrets are encrypted with it.`,
          ].join('\n'),
        }
      }),
    )
}
