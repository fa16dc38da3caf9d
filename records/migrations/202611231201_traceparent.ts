import type { Knex } from 'knex'

/** The trace of the request that caused the event of a delivery. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('deliveries', (table) => {
    table.text('traceparent')
  })
}
