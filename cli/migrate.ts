import type { Command } from 'commander'
import { assertSchema } from '../records/database/schema-difference.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addMigrate(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description(
      'Run the pending migrations. Every other command does so too; use this as a deployment step.',
    )
    .addHelpText(
      'after',
      examples(
        'muster migrate',
        'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… muster migrate',
      ),
    )
    .action(
      shell.action(() =>
        shell.withDatabase(async ({ db, config, appliedMigrations }): Promise<Output> => {
          await assertSchema(db, config.database)
          const text =
            appliedMigrations.length === 0
              ? 'The tables are up to date.'
              : ['The tables are up to date. Migrations that ran:', ...appliedMigrations].join(
                  '\n  ',
                )
          return { document: { migrations: appliedMigrations }, text }
        }),
      ),
    )
}
