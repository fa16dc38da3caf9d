import type { Knex } from 'knex'
import { countExisting } from './count-tools.ts'

/** After the triggers and their locks are committed: counting ten million deliveries must not keep events
 *  waiting. */
export async function up(knex: Knex): Promise<void> {
  await countExisting(knex, 'deliveries', 'cast(webhook_id as text)')
}
