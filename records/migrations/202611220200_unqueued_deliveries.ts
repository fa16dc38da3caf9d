import type { Knex } from 'knex'

/** Its condition differs from that of `deliveries_waiting`, so that a look at the first that wait of one
 *  webhook cannot take this index, as PostgreSQL's planner would: by it, it would walk past all that
 *  waits of the others. The one that it replaces goes last: until then readers of the table wait for
 *  nothing. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    'create index deliveries_unqueued on deliveries (next_attempt_at, id) where queued_at is null and next_attempt_at > 0',
  )
  await knex.raw('drop index deliveries_to_queue')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(
    'create index deliveries_to_queue on deliveries (next_attempt_at, id, webhook_id) where queued_at is null and next_attempt_at is not null',
  )
  await knex.raw('drop index deliveries_unqueued')
}
