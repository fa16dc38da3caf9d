import type { Knex } from 'knex'

export const isConcurrent = true

/** Finds the changes that a user made in the console, or that a key made. The entry of a key counts as one
 *  of the key alone, so each event is in the index once. */
export async function up(knex: Knex): Promise<void> {
  const isPostgres = knex.client.config.client === 'pg'
  // An attempt that was interrupted leaves an index that PostgreSQL does not use.
  if (isPostgres) await knex.raw('drop index concurrently if exists events_by_actor')
  await knex.raw(
    `create index ${isPostgres ? 'concurrently' : ''} events_by_actor
     on events (account_id, coalesce(api_key_id, user_id), id)`,
  )
}
