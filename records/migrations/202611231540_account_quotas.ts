import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
  // Only the quotas that an operator has set: the others have the value of the settings.
  await knex.schema.createTable('account_quotas', (table) => {
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
    table.text('name').notNullable()
    table.bigInteger('value').notNullable()
    table.primary(['account_id', 'name'])
  })
}
