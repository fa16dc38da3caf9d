import type { Knex } from 'knex'
import { isPostgres, KEYS, UNIQUE } from './account-first.ts'

export const isConcurrent = true

/** PostgreSQL: the indexes of keys that begin with the account. A later migration makes them keys. */
export async function up(knex: Knex): Promise<void> {
  if (!isPostgres(knex)) return
  const indexes = [
    ...Object.entries(KEYS).map(([table, key]) => [table, table, key.join(', ')]),
    ...UNIQUE,
  ]
  for (const [table, name, columns] of indexes) {
    // An attempt that was interrupted leaves an index that PostgreSQL does not use.
    await knex.raw(`drop index concurrently if exists ${name}_key`)
    await knex.raw(
      `create unique index concurrently ${name}_key on ${table} (account_id, ${columns})`,
    )
  }
}
