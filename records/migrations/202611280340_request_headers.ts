import type { Knex } from 'knex'

/** A column that can be null and has no default is added at once, whatever the size of the table. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('request_log', (table) => {
    // JSON: pairs of name and value. Null: not stored.
    table.text('request_headers').nullable()
    table.text('response_headers').nullable()
  })
}
