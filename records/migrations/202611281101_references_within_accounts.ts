import type { Knex } from 'knex'
import { changeTables, isPostgres, REFERENCES, TABLES } from './account-first.ts'

/** PostgreSQL: new rows refer to rows of their account only. The next migration checks the earlier rows. */
export async function up(knex: Knex): Promise<void> {
  if (!isPostgres(knex)) return
  await changeTables(
    knex,
    'share row exclusive',
    TABLES,
    REFERENCES.map(
      ({ table, to, onDelete = 'no action' }) =>
        `alter table ${table} add constraint ${table}_${to}_foreign foreign key (account_id, ${to}_id)
         references ${to}s (account_id, id) on delete ${onDelete} not valid`,
    ),
  )
}
