import type { Knex } from 'knex'

/** PostgreSQL looked up the event of each new delivery, which the same transaction had just inserted.
 *  Without the key, retention can remove events without reading their deliveries. SQLite keeps the key: it
 *  costs little there, and only a copy of the table could remove it. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client !== 'pg') return
  // In the order in which a change locks them. Otherwise the two could deadlock.
  await knex.raw('lock table events, deliveries in access exclusive mode')
  await knex.raw('alter table deliveries drop constraint deliveries_event_id_foreign')
}
