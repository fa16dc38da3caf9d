import type { Knex } from 'knex'
import { newSchema } from './schema-tools.ts'

/** The tables whose records get an ID of the client's own system, as participants have it. */
const TABLES = ['tasks', 'jobs', 'job_applications', 'payments']

export async function up(knex: Knex): Promise<void> {
  const { text, unique, sortIndex } = newSchema(knex)
  for (const name of TABLES) {
    await knex.schema.alterTable(name, (table) => void text(table, 'external_id').nullable())
    await unique(name, 'external_id', 'account_id, external_id', 'external_id is not null')
  }
  // For filters by the time of the last update. The other tables have this index already.
  for (const name of ['exports', 'payments']) await sortIndex(name, 'updated_at')
}
