import type { Knex } from 'knex'

/** The sessions of workers in PostgreSQL, with the attempts that they have leased. An embedded queue starts
 *  empty. Unlogged: without a row, the leases of a process that has died expire. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client !== 'pg') return
  await knex.raw('create unlogged table worker_sessions (id uuid primary key, jobs json not null)')
}
