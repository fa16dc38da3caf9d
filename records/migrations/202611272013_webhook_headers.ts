import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('webhooks', (table) => {
    // JSON: encrypted values by header name.
    table.text('headers_encrypted').notNullable().defaultTo('{}')
  })
}
