import type { Command } from 'commander'
import { isSpaceReturned } from '../records/database/free-space.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { convertIfNeeded } from './file-conversion.ts'
import { type CommandDatabase, examples, type Output, type Shell } from './shell.ts'

export function addMigrate(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description(
      'Run the pending migrations. Every other command does so too; use this as a deployment step.',
    )
    .addHelpText(
      'after',
      `${examples(
        'muster migrate',
        'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… muster migrate',
      )}
In embedded mode, while the service is stopped, this also converts a file of an earlier version once: then the
file returns the space of deleted rows. The conversion needs free space of about twice the contents.
`,
    )
    .action(
      shell.action(({ json = false }: { json?: boolean }) =>
        shell.withDatabase((database) => migrateCommand(shell, database, json)),
      ),
    )
}

async function migrateCommand(
  shell: Shell,
  { db, config: { database }, appliedMigrations }: CommandDatabase,
  json: boolean,
): Promise<Output> {
  await assertSchema(db, database)
  const lines =
    appliedMigrations.length === 0
      ? ['The tables are up to date.']
      : [['The tables are up to date. Migrations that ran:', ...appliedMigrations].join('\n  ')]
  const document = { migrations: appliedMigrations }
  if (!('dataDir' in database)) return { document, text: lines.join('\n') }
  const print = json ? () => undefined : shell.print
  const conversion = await convertIfNeeded(db, database.dataDir, print)
  if (conversion !== undefined) lines.push(conversion)
  return {
    document: { ...document, returns_free_space: await isSpaceReturned(db) },
    text: lines.join('\n'),
  }
}
