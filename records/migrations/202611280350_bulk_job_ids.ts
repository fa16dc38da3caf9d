import type { Knex } from 'knex'

/** The bulk job that last created or retried a delivery. Null for other deliveries, and for those of
 *  a job that a node of the previous version ran. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table deliveries add column bulk_job_id uuid')
}
