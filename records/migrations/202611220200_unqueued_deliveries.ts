import type { Knex } from 'knex'

/** Its condition differs from that of `deliveries_waiting`, so that a look at the first that wait of one webhook cannot take this index, as
 *  PostgreSQL's planner would: by it, it would walk past all that waits of the others. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('drop index deliveries_to_queue')
  await knex.raw('create index deliveries_to_queue on deliveries (next_attempt_at, id) where queued_at is null and next_attempt_at > 0')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index deliveries_to_queue')
  await knex.raw(
    'create index deliveries_to_queue on deliveries (next_attempt_at, id, webhook_id) where queued_at is null and next_attempt_at is not null',
  )
}
