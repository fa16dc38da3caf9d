import type { Knex } from 'knex'

/** What the request log does not store: requests with 429 like an earlier one, and bodies beyond the daily limit. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('request_log', (table) => {
    table.integer('repeats').notNullable().defaultTo(0)
    table.integer('omitted_bytes').notNullable().defaultTo(0)
  })
}
