import type { Knex } from 'knex'
import { countChanges } from './count-tools.ts'

/** The counts of records. `version` is a random number that each change adds: the sum over a list is a version
 *  of the list. It differs also from a sum before a failover that lost changes. */
export async function up(knex: Knex): Promise<void> {
  const postgres = knex.client.config.client === 'pg'
  const text = postgres ? 'text collate "C"' : 'text'
  // Without a reference to accounts, which would cost every change a look-up: the counted records have one.
  await knex.schema.createTable('record_counts', (table) => {
    table.uuid('account_id').notNullable()
    table.specificType('list', text).notNullable()
    table.specificType('value', text).notNullable()
    // PostgreSQL has several rows for a value: their sum counts.
    if (postgres) table.specificType('id', 'bigint generated always as identity')
    table.bigInteger('records').notNullable()
    table.bigInteger('version').notNullable()
    table.primary(['account_id', 'list', 'value', ...(postgres ? ['id'] : [])])
  })
  if (postgres) await createAddUp(knex)
  await countChanges(knex, 'participants', 'status')
  await countChanges(knex, 'tasks', 'status')
  await countChanges(knex, 'jobs', 'status')
  await countChanges(knex, 'job_applications', 'status')
  await countChanges(knex, 'payments', 'status')
  await countChanges(knex, 'events', 'event_type')
}

/** Replaces rows by their sum. Passes by the rows that another transaction is adding up. */
async function createAddUp(knex: Knex): Promise<void> {
  await knex.raw(`
    create function add_up_record_counts(account uuid, counted text) returns void language sql as $$
      with found as (
        select id from record_counts where account_id = account and list = counted
        limit 1000 for update skip locked
      ), removed as (
        delete from record_counts using found
        where record_counts.account_id = account and record_counts.list = counted
          and record_counts.id = found.id
        returning value, records, version
      )
      insert into record_counts (account_id, list, value, records, version)
      select account, counted, value, sum(records), sum(version) from removed group by value
    $$`)
}
