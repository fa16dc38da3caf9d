import type { Knex } from 'knex'
import { createSearchIndex } from './search-index.ts'

export const isConcurrent = true

/** The search works without the index, too, so no error keeps the upgrade from going on: the database
 *  may not permit the extension, or may wait for a long transaction. `muster doctor` reports a missing
 *  index. */
export async function up(knex: Knex): Promise<void> {
  const isPostgres = knex.client.config.client === 'pg'
  if (isPostgres) await knex.raw('create extension if not exists pg_trgm').catch(() => undefined)
  for (const table of ['participants', 'jobs']) {
    if (!isPostgres) {
      await createSearchIndex(knex, table)
      continue
    }
    // An attempt that was interrupted leaves an index that PostgreSQL does not use.
    await knex
      .raw(`drop index concurrently if exists ${table}_search`)
      .then(() => createSearchIndex(knex, table, { concurrently: true }))
      .catch(() => undefined)
  }
}
