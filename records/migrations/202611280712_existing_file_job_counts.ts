import type { Knex } from 'knex'
import { countExisting } from './count-tools.ts'

/** After the triggers and their locks are committed. */
export async function up(knex: Knex): Promise<void> {
  await countExisting(knex, 'exports', 'status')
  await countExisting(knex, 'imports', 'status')
}
