import type { Knex } from 'knex'
import { countChanges } from './count-tools.ts'

/** Counts the exports and imports of an account. */
export async function up(knex: Knex): Promise<void> {
  await countChanges(knex, 'exports', 'status')
  await countChanges(knex, 'imports', 'status')
}
