import type { Knex } from 'knex'

export const isConcurrent = true

/** Replaces the index by actor alone, with which a rare type was searched among all changes of a key. */
export async function up(knex: Knex): Promise<void> {
  const concurrently = knex.client.config.client === 'pg' ? 'concurrently' : ''
  const name = 'events_by_actor_and_type'
  // An attempt that was interrupted leaves an index that PostgreSQL does not use.
  if (concurrently) await knex.raw(`drop index concurrently if exists ${name}`)
  await knex.raw(
    `create index ${concurrently} ${name}
     on events (account_id, coalesce(api_key_id, user_id), event_type, id)`,
  )
  await knex.raw(`drop index ${concurrently} if exists events_by_actor`)
}
