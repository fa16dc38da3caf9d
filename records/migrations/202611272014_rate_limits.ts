import type { Knex } from 'knex'

/** The rate limit that an operator has set for a user. Null: that of the account or of the settings. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('users', (table) => {
    table.bigInteger('requests_per_minute').nullable()
  })
}
