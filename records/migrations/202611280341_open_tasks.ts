import type { Knex } from 'knex'

export const isConcurrent = true

/** Finds the unfinished tasks that are due first, among any number of finished ones. */
export async function up(knex: Knex): Promise<void> {
  const isPostgres = knex.client.config.client === 'pg'
  // An attempt that was interrupted leaves an index that PostgreSQL does not use.
  if (isPostgres) await knex.raw('drop index concurrently if exists tasks_unfinished')
  await knex.raw(
    `create index ${isPostgres ? 'concurrently' : ''} tasks_unfinished
     on tasks (account_id, due_at, id) where status in ('open', 'in_progress')`,
  )
}
