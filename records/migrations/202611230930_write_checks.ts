import type { Knex } from 'knex'

/** One row that /readyz updates, to find out whether the database accepts writes. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('write_checks', (table) => {
    table.bigInteger('checks').notNullable()
  })
  await knex('write_checks').insert({ checks: 0 })
}
