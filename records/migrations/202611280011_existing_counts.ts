import type { Knex } from 'knex'
import { countExisting } from './count-tools.ts'

/** After the triggers and their locks are committed: counting ten million records must not keep changes
 *  waiting. */
export async function up(knex: Knex): Promise<void> {
  await countExisting(knex, 'participants', 'status')
  await countExisting(knex, 'tasks', 'status')
  await countExisting(knex, 'jobs', 'status')
  await countExisting(knex, 'job_applications', 'status')
  await countExisting(knex, 'payments', 'status')
  await countExisting(knex, 'events', 'event_type')
}
