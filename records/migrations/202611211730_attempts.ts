import type { Knex } from 'knex'

/** Attempts come by the thousand in a second, each with a delivery that the same transaction has just
 *  changed. PostgreSQL would look it up once more for each of them, a tenth of what storing an attempt
 *  costs; to SQLite it is next to nothing. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client !== 'pg') return
  await knex.schema.alterTable('attempts', (table) => table.dropForeign('delivery_id'))
}

export async function down(knex: Knex): Promise<void> {
  if (knex.client.config.client !== 'pg') return
  await knex.schema.alterTable('attempts', (table) => {
    table.foreign('delivery_id').references('deliveries.id').onDelete('cascade')
  })
}
