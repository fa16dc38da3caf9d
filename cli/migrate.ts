import type { Command } from 'commander'
import { isSpaceReturned } from '../records/database/free-space.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { convertIfNeeded } from './file-conversion.ts'
import { type CommandDatabase, examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description(
      'Run the pending migrations. Other commands that open the database do so, too. Use this one as a ' +
        'separate step of a deployment.',
    )
    .addHelpText(
      'after',
      `${examples(
        'muster migrate',
        'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… muster migrate',
      )}
In embedded mode, while the service is stopped, this also converts the database file of an earlier version once. From
then on, the file shrinks when rows are deleted. The conversion needs free space of about twice the contents.
`,
    )
    .action(
      shell.action(({ json = false }: { json?: boolean }) =>
        // `withDatabase` runs the migrations.
        shell.withDatabase((opened) => finishMigration(shell, opened, json)),
      ),
    )
}

/** Checks the schema. In embedded mode, also converts the database file if it needs that. */
async function finishMigration(
  shell: Shell,
  { db, config: { database }, appliedMigrations: migrations }: CommandDatabase,
  json: boolean,
): Promise<Output> {
  await assertSchema(db)
  const text =
    migrations.length === 0
      ? 'The tables are up to date.'
      : ['The tables are up to date. Migrations that ran:', ...migrations].join('\n  ')
  if (!('dataDir' in database)) return { document: { migrations }, text }
  const print = json ? () => undefined : shell.print
  const conversion = await convertIfNeeded(db, database.dataDir, print)
  return {
    document: { migrations, returns_free_space: await isSpaceReturned(db) },
    text: conversion === undefined ? text : `${text}\n${conversion}`,
  }
}
