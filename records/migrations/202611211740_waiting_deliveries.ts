import type { Knex } from 'knex'

/** For a look at the first deliveries that wait of each webhook, past any number that wait of another. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    'create index deliveries_waiting on deliveries (webhook_id, next_attempt_at, id) where queued_at is null and next_attempt_at is not null',
  )
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index deliveries_waiting')
}
