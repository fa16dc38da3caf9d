import type { Command } from 'commander'
import { assertSchema } from '../records/database/schema-difference.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description(
      'Run the pending migrations. Other commands that open the database do so, too. Use this one as a ' +
        'separate step of a deployment.',
    )
    .addHelpText(
      'after',
      examples(
        'muster migrate',
        'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… muster migrate',
      ),
    )
    .action(
      // `databaseAction` runs the migrations.
      shell.databaseAction(async ({ db, appliedMigrations: migrations }): Promise<Output> => {
        await assertSchema(db)
        return {
          document: { migrations },
          text:
            migrations.length === 0
              ? 'The tables are up to date.'
              : ['The tables are up to date. Migrations that ran:', ...migrations].join('\n  '),
        }
      }),
    )
}
