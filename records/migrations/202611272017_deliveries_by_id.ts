import type { Knex } from 'knex'

/** For the list of all deliveries of an account. SQLite reads the primary key in this order: with the
 *  index, it would prefer it to that of a webhook. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client === 'pg')
    await knex.raw('create index deliveries_by_id on deliveries (account_id, id)')
}
