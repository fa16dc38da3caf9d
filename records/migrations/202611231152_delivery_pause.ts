import type { Knex } from 'knex'

/** At most one row: while it exists, no node makes an attempt. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('delivery_pauses', (table) => {
    table.integer('id').primary()
    table.bigInteger('paused_at').notNullable()
  })
}
