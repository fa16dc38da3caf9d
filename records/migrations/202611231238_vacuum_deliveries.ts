import type { Knex } from 'knex'

/** Each delivery is updated about twice, and no update is HOT. At 20 %, the default, a table of 10 million
 *  deliveries has 2 million dead rows before a vacuum. The first search for due attempts of a webhook reads them
 *  all: measured, 56 ms for 116,000 dead rows, and 0.03 ms after a vacuum. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client === 'pg')
    await knex.raw(
      'alter table deliveries set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)',
    )
}
