import { Clock } from '../records/database/clock.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { splitByWeek } from '../records/weeks.ts'
import { databaseCommand } from './commands.ts'

export const addCommand = databaseCommand({
  name: 'migrate',
  description:
    'Run the pending migrations. A start of the service and "muster account create" do so, too. All three create ' +
    'the database if there is none. Use this command as a separate step of a deployment.',
  declare(command) {
    command.option(
      '--weekly',
      'on PostgreSQL, also split events, deliveries, attempts and the request log into partitions of a week. ' +
        'Start this version on all nodes first: earlier versions refuse such a database',
    )
  },
  examples: [
    'muster migrate',
    'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… muster migrate',
  ],
  schema: 'migrate',
  // The migrations ran when the database was opened.
  async run({ db, appliedMigrations: migrations }, { weekly = false }: { weekly?: boolean }) {
    await assertSchema(db)
    // A first partition that ends too late, because the clock of this machine is wrong, would stay as long.
    const split = weekly ? await splitByWeek(db, (await Clock.open(db)).now().getTime()) : []
    return {
      document: { migrations, ...(weekly && { split }) },
      text: [
        migrations.length === 0
          ? 'The tables are up to date.'
          : ['The tables are up to date. Migrations that ran:', ...migrations].join('\n  '),
        ...(split.length > 0 ? [`Split by week: ${split.join(', ')}.`] : []),
      ].join('\n'),
    }
  },
})
