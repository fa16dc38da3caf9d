import type { Knex } from 'knex'

export const isConcurrent = true

/** To count the deliveries of a bulk job by their state without reading their rows. */
export async function up(knex: Knex): Promise<void> {
  const isPostgres = knex.client.config.client === 'pg'
  // An attempt that was interrupted leaves an index that PostgreSQL does not use.
  if (isPostgres) await knex.raw('drop index concurrently if exists deliveries_by_bulk_job')
  await knex.raw(
    `create index ${isPostgres ? 'concurrently' : ''} deliveries_by_bulk_job
     on deliveries (account_id, bulk_job_id, state, next_attempt_at) where bulk_job_id is not null`,
  )
}
