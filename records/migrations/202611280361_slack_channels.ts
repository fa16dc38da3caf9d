import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('webhooks', (table) => {
    table.text('format').notNullable().defaultTo('event')
    // The whole URL of a webhook with the format `slack`. Its path is a secret.
    table.text('url_encrypted')
    // When the last message was scheduled.
    table.bigInteger('digest_at')
  })
  await knex.schema.createTable('held_notices', (table) => {
    table.uuid('id').primary()
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
    table.uuid('webhook_id').notNullable().references('webhooks.id').onDelete('cascade')
    table.text('event_type').notNullable()
    table.uuid('resource_id').notNullable()
    table.text('text').notNullable()
    table.index(['webhook_id', 'account_id', 'id'], 'held_notices_by_webhook')
  })
}
