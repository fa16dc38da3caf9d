import type { Command } from 'commander'
import { isSpaceReturned } from '../records/database/free-space.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { convertIfNeeded } from './file-conversion.ts'
import { type CommandDatabase, examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
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
In embedded mode, while the service is stopped, this also converts the database file of an earlier version, once:
from then on the file shrinks when rows are deleted. The conversion needs free space of about twice the contents.
`,
    )
    .action(
      shell.action(({ json = false }: { json?: boolean }) =>
        // Opening the database has run the migrations.
        shell.withDatabase((opened) => finishMigration(shell, opened, json)),
      ),
    )
}

/** Checks the schema and converts the database file. */
async function finishMigration(
  shell: Shell,
  { db, config: { database }, appliedMigrations }: CommandDatabase,
  json: boolean,
): Promise<Output> {
  await assertSchema(db, database)
  const migrations =
    appliedMigrations.length === 0
      ? 'The tables are up to date.'
      : ['The tables are up to date. Migrations that ran:', ...appliedMigrations].join('\n  ')
  const lines = [migrations]
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
