import type { Knex } from 'knex'

/** A row is the order to erase an account, its progress, and afterwards the one entry that remains of the account. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('account_deletions', (table) => {
    // The ID of the account. No reference: the row outlives the account.
    table.uuid('id').primary()
    table.bigInteger('requested_at').notNullable()
    table.bigInteger('removed_rows').notNullable().defaultTo(0)
    table.bigInteger('completed_at').nullable()
  })
  await knex.raw(
    'create index account_deletions_unfinished on account_deletions (id) where completed_at is null',
  )
}
